import { test as base, expect, type Page } from "@playwright/test";
import axe from "axe-core";
import { type Daemon, type DaemonOptions, startDaemon } from "./daemon";

interface Fixtures {
  /** How the daemon of the test is started: `test.use({ daemonOptions: { config } })`. */
  daemonOptions: DaemonOptions;
  daemon: Daemon;
  /** The address of the pages: the daemon serves those that were built last. */
  site: string;
  /** A request to the daemon; an answer that is no success fails the test. */
  call: <T = unknown>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<T>;
  /** Creates a session of the example agent, with this prompt if there is one, and gives its id. */
  session: (prompt?: string, more?: Record<string, unknown>) => Promise<string>;
}

/** A test with a daemon of its own, which serves the built pages. Nothing of a page may break the policy, or throw. */
export const test = base.extend<Fixtures>({
  daemonOptions: [{}, { option: true }],
  daemon: async ({ daemonOptions }, use) => {
    const daemon = await startDaemon(daemonOptions);
    try {
      await use(daemon);
    } finally {
      await daemon.remove();
    }
  },
  site: async ({ daemon }, use) => {
    await use(daemon.url);
  },
  call: async ({ daemon }, use) => {
    await use(<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => call<T>(daemon.url, method, path, body, headers));
  },
  session: async ({ daemon, call }, use) => {
    await use(async (prompt, more) => {
      const created = await call<{ sessionId: string }>("POST", "/v1/sessions", { cwd: daemon.project, ...(prompt === undefined ? {} : { prompt }), ...more });
      return created.sessionId;
    });
  },
  page: async ({ page }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && message.text().includes("Content Security Policy")) wrong.push(message.text());
    });
    await use(page);
    expect(wrong).toEqual([]);
  },
});

export { expect, type Page };

/** Fails with what axe finds that is serious. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run(document));
  const serious = violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}

async function call<T>(url: string, method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
