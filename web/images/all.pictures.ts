// The pictures of docs/images, of every view: made by `cargo xtask images`, never by a test.

import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startDaemon } from "../e2e/daemon";
import { expect, test } from "../e2e/harness";
import { SCENES } from "./scenes";

const HERE = join(tmpdir(), "acpd");
const INTO = resolve(import.meta.dirname, "../../docs/images");
const [QUESTION = "", NOTES = "", UPDATE = ""] = Object.keys(SCENES);

test("pictures of every view", async ({ browser }) => {
  test.setTimeout(120_000);
  const scenes = join(HERE, "scenes.json");
  await mkdir(HERE, { recursive: true });
  await writeFile(scenes, JSON.stringify(SCENES));
  const args = [resolve(import.meta.dirname, "../e2e/agent.mjs"), scenes];
  const entry = (name: string): string => `[agents.${name}]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(args)}\n`;
  const config = `[server]\ndefault_agent = "coder"\n${entry("coder")}${entry("reviewer")}`;
  await writeFile(join(HERE, "config.toml"), config);
  const daemon = await startDaemon({ home: HERE, config });
  try {
    const post = async (path: string, body: unknown): Promise<{ sessionId: string }> => {
      const headers = { "Content-Type": "application/json", "Acpd-Client": "editor" };
      const response = await fetch(daemon.url + path, { method: "POST", headers, body: JSON.stringify(body) });
      expect(response.ok, await response.clone().text()).toBe(true);
      return (await response.json()) as { sessionId: string };
    };
    const begin = async (title: string, place: string, more: object): Promise<string> => {
      const cwd = join(HERE, place);
      await mkdir(cwd, { recursive: true });
      return (await post("/v1/sessions", { title, cwd, ...more })).sessionId;
    };
    await begin("Release notes for 1.4", "parser", { agent: "reviewer", prompt: NOTES });
    await begin("Dependencies of the website", "website", { prompt: UPDATE });
    const crashed = await begin("Nightly import", "import", { agent: "example", prompt: "crash" });
    const asked = await begin("Failing parser tests", "parser", { prompt: QUESTION });

    const shoot = async (name: string, scheme: "light" | "dark", path: string, ready: string, size = { width: 1280, height: 800 }): Promise<void> => {
      const page = await browser.newPage({ viewport: size, colorScheme: scheme, reducedMotion: "reduce" });
      await page.goto(`${daemon.url}/#${path}`);
      // The first chart comes half a minute after the daemon.
      await expect(page.getByText(ready).first()).toBeVisible({ timeout: 60_000 });
      await expect(page.getByRole("status").getByText("Loading")).toHaveCount(0);
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      await page.screenshot({ path: join(INTO, `${name}.png`), animations: "disabled" });
      await page.close();
    };
    await shoot("sessions", "light", "/sessions", "Crashed");
    await shoot("sessions-dark", "dark", "/sessions", "Crashed");
    await shoot("session", "light", `/sessions/${asked}`, "Allow this change");
    await shoot("question-phone", "dark", `/sessions/${asked}`, "Allow this change", { width: 390, height: 800 });
    await shoot("end", "light", `/sessions/${crashed}/end`, "What it wrote to stderr");
    await shoot("trace", "light", `/sessions/${asked}/trace`, "tool_call");
    await shoot("start", "light", "/start", "First prompt");
    await shoot("agents", "light", "/agents", "reviewer");
    await shoot("daemon", "light", "/daemon", "Commits to the log");
  } finally {
    await daemon.remove();
  }
});
