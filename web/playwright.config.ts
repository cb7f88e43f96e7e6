import { defineConfig } from "@playwright/test";

/** The browser: what is installed. Playwright's own are not downloaded. */
const chromium = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "e2e",
  testMatch: "*.e2e.ts",
  outputDir: "node_modules/.cache/e2e",
  fullyParallel: false,
  workers: 2,
  forbidOnly: true,
  reporter: [["line"]],
  // A machine may be busy with other things; what does not come at all takes longer.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  use: {
    headless: true,
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: chromium,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
