import { expect, type Page, test } from "./harness";

const FULL = process.env["ACPD_WEB_FULL"] === "1";
/** Sessions of the list; 10,000 by hand. */
const SESSIONS = FULL ? 10_000 : 450;
/** How long a task of the page may take, in milliseconds, where the machine does nothing else. */
const LONG_MS = 50;

const idOf = (index: number) => `01a207c0-b435-750c-8c3e-${index.toString(16).padStart(12, "0")}`;

function endOf(at: number) {
  return { reason: "completed", terminatedBy: "daemon", endedAt: new Date(at).toISOString(), cause: "client_close", turnActive: false, leaked: false };
}

/** A session with one turn, as a file that can be imported. */
function fileOf(index: number): string {
  const at = Date.UTC(2026, 0, 1) + index * 60_000;
  const lines = [
    { type: "acpd-export", version: 1, sessionId: idOf(index), agent: "example", cwd: `/srv/project-${index % 40}`, createdMs: at, title: `Session number ${index}`, events: 5 },
    { seq: 1, atMs: at, kind: "created", payload: { agent: "example", cwd: `/srv/project-${index % 40}`, by: "REST" } },
    { seq: 2, atMs: at, kind: "run_started", payload: {} },
    { seq: 3, atMs: at, kind: "prompt", payload: { turn: 1, by: "REST", prompt: [{ type: "text", text: "hello" }] } },
    { seq: 4, atMs: at + 1500, kind: "turn_ended", payload: { turn: 1, stopReason: "end_turn", result: { stopReason: "end_turn" } } },
    { seq: 5, atMs: at + 2000, kind: "ended", payload: endOf(at + 2000) },
  ];
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

async function importMany(url: string): Promise<void> {
  const indices = Array.from({ length: SESSIONS }, (_, index) => index);
  const take = async (): Promise<void> => {
    for (let index = indices.pop(); index !== undefined; index = indices.pop()) {
      const response = await fetch(`${url}/v1/import`, { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body: fileOf(index) });
      if (!response.ok) throw new Error(await response.text());
    }
  };
  await Promise.all(Array.from({ length: 8 }, take));
}

/** Scrolls step by step to the end of what is there, until that is the end of the list. */
async function scrollToEnd(page: Page): Promise<void> {
  const last = page.locator(`[aria-rowindex="${SESSIONS + 1}"]`);
  await expect(async () => {
    await page.evaluate(async () => {
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      while (scrollY + innerHeight < document.documentElement.scrollHeight - 2) {
        scrollBy(0, innerHeight * 2);
        await frame();
      }
    });
    await expect(last).toBeVisible({ timeout: 100 });
  }).toPass({ timeout: 60_000, intervals: [20] });
}

// inspector: Sessions view (10,000 sessions scroll), Budget (no long task)
test("a long list scrolls, with few rows drawn", async ({ page, site, daemon }) => {
  test.setTimeout(300_000);
  await importMany(daemon.url);
  await page.addInitScript(() => {
    const tasks: number[] = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
    Object.assign(window, { tasks });
  });
  await page.goto(site);
  const first = page.locator('[aria-rowindex="2"]');
  await expect(first).toBeVisible();
  await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks.splice(0));
  await scrollToEnd(page);
  const table = page.getByRole("table", { name: "Sessions" });
  expect(await table.getByRole("row").count()).toBeLessThan(60);
  await expect(page.getByText(`${SESSIONS.toLocaleString("en")} sessions`, { exact: true })).toBeVisible();
  if (FULL) {
    const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
    console.log(`tasks above ${LONG_MS} ms:`, tasks);
    expect(Math.max(0, ...tasks)).toBeLessThanOrEqual(LONG_MS);
  }
  await page.keyboard.press("Home");
  await expect(first).toBeVisible();

  // A row that is used for another session does not keep the focus.
  await first.getByRole("link").focus();
  await page.evaluate(() => scrollTo(0, 299 * 60));
  await expect(page.locator('[aria-rowindex="300"]')).toBeInViewport();
  await expect(page.locator("a:focus")).toHaveCount(0);

  // A step back finds the list where it was left.
  const row = page.locator('[aria-rowindex="300"]');
  await page.evaluate(() => scrollTo(0, 299 * 60));
  await row.getByRole("link").click();
  await expect(page).toHaveURL(/#\/sessions\/.+/);
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await page.goBack();
  await expect(row).toBeInViewport();
});
