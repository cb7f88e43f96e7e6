import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** The pictures of docs/images: `cargo xtask images`. */
export default defineConfig({ ...tests, testDir: "images", testMatch: "*.pictures.ts", workers: 1 });
