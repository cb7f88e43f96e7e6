import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The daemon that answers `/v1` and `/acp` while developing. */
const daemon = process.env["ACPD_URL"] ?? "http://127.0.0.1:2273";

/** Has the first paint wait for the script, which knows the chosen theme; a page has no inline script that could. */
const renderBlocking: Plugin = {
  name: "render-blocking",
  transformIndexHtml: {
    order: "post",
    handler: (html) => html.replace('<script type="module"', '<script type="module" blocking="render"'),
  },
};

export default defineConfig({
  plugins: [svelte(), renderBlocking],
  resolve: {
    // The SDK as it lies in this repository, not as it was published; what it imports is what is installed here.
    alias: { "acpd-client": fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url)) },
    dedupe: ["@agentclientprotocol/sdk"],
  },
  build: {
    // What an evergreen browser of 2023 knows.
    target: "es2022",
    // A `data:` address for a font or a style would be against the policy that the daemon sends.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    proxy: {
      // The name in Host stays what the page's origin is, as the daemon demands.
      "/v1": { target: daemon, ws: true },
      "/acp": { target: daemon, ws: true },
    },
  },
  // A machine may be busy with other things.
  test: { include: ["src/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
});
