import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "acpd-client": fileURLToPath(new URL("src/index.ts", import.meta.url)) } },
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    poolOptions: { forks: { maxForks: 2 } },
    // A machine may be busy with other things; what does not come at all takes longer.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    typecheck: { enabled: false },
  },
});
