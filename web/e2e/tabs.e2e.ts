import type { BrowserContext } from "@playwright/test";
import { expect, type Page, test } from "./harness";

/** More than the connections that a browser opens to one host over HTTP/1.1. */
const TABS = 8;

/** Tabs of one browser, each on a session of its own that waits for an answer. */
async function open(context: BrowserContext, site: string, session: (prompt: string) => Promise<string>): Promise<Page[]> {
  const ids = await Promise.all(Array.from({ length: TABS }, (_, tab) => session(`ask edit Change file ${tab}\nanswered ${tab}`)));
  const pages: Page[] = [];
  for (const [tab, id] of ids.entries()) {
    const page = await context.newPage();
    await page.goto(`${site}/#/sessions/${id}`);
    await expect(page.getByRole("region", { name: `Question: Change file ${tab}` })).toBeVisible();
    pages.push(page);
  }
  return pages;
}

/** What was said in a tab: once as the prompt, once as what the agent says to it. */
const said = (page: Page, tab: number) => page.locator(".text").filter({ hasText: `said in tab ${tab}` });

/** In each tab an answer and a prompt have their effect, and each event is there once. */
async function use(pages: readonly Page[]): Promise<void> {
  for (const [tab, page] of pages.entries()) {
    await page.getByRole("button", { name: /Allow once/ }).click();
    await expect(page.locator(".text.agent").filter({ hasText: `answered ${tab}` })).toHaveCount(1);
    await page.getByRole("textbox", { name: "Prompt" }).fill(`said in tab ${tab}`);
    await page.getByRole("textbox", { name: "Prompt" }).press("Enter");
    await expect(said(page, tab)).toHaveCount(2);
    await expect(page.getByText("No answer yet…")).toHaveCount(0);
  }
}

// quirk six-connections
// inspector: What it does (any number of tabs), R20
test("eight tabs of one browser on live sessions all work", async ({ context, site, session }) => {
  const pages = await open(context, site, session);
  await use(pages);
  // None has missed anything while the others were used; also a ninth page loads.
  for (const [tab, page] of pages.entries()) await expect(said(page, tab)).toHaveCount(2);
  const list = await context.newPage();
  await list.goto(site);
  await expect(list.getByRole("row")).toHaveCount(TABS + 1);
});

// inspector: What it does (any number of tabs), R20: also behind a proxy that lets no WebSocket through
test("eight tabs work without WebSockets", async ({ context, site, session }) => {
  // Playwright's pages would pass a refusal on as a socket that opens; here none does.
  await context.addInitScript(() => {
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
      constructor() {
        super(`ws://${location.host}/nothing-is-here`);
      }
    } as typeof WebSocket;
  });
  const pages = await open(context, site, session);
  await use(pages);
});

// inspector: What it does (a request that waits says why), R20
test("a request without an answer for two seconds says so, until it is answered", async ({ page, site }) => {
  await page.goto(site);
  await expect(page.getByRole("heading", { name: "No session yet" })).toBeVisible();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/v1/sessions?**", async (route) => {
    await held;
    await route.continue();
  });
  await expect(page.getByRole("alert")).toContainText("it opens six to a host");
  await expect(page.getByText("No answer yet…")).toBeVisible();
  release();
  await expect(page.getByRole("alert")).toHaveCount(0);
});
