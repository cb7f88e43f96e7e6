import { createHash } from "node:crypto";

/** @type {import("@sveltejs/vite-plugin-svelte").SvelteConfig} */
export default {
  compilerOptions: {
    // Names of styles depend on their text alone, so that a build is the same in every directory.
    cssHash: ({ css }) => `s-${createHash("sha256").update(css).digest("hex").slice(0, 8)}`,
  },
};
