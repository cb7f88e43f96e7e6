import { expect, expectAccessible, test } from "./harness";

const step = (at: number, sessions: number) => ({
  at: new Date(at).toISOString(),
  sessions,
  running: 1,
  waiting: 0,
  agentProcesses: sessions,
  viewers: 0,
  memoryBytes: 40 * 2 ** 20,
  openFiles: 30,
  queueBytes: 0,
  turns: 2,
  turnsEnded: 2,
  runs: 0,
  events: 10,
  eventBytes: 2048,
  requests: 5,
  commits: 4,
  commitUs: 1000,
});

// inspector: Daemon view (the last hour as small charts, with text for screen readers)
test("the last hour is drawn, and told", async ({ page, site }) => {
  // A daemon of an hour's age cannot be waited for: its own answer is given a past.
  await page.route("**/v1/stats", async (route) => {
    const stats = (await (await route.fetch()).json()) as { stepMs: number; steps: unknown[] };
    const now = Date.now();
    await route.fulfill({ json: { ...stats, steps: Array.from({ length: 360 }, (_, index) => step(now - (359 - index) * stats.stepMs, index < 180 ? 2 : 5)) } });
  });
  await page.goto(`${site}/#/daemon`);
  await expect(page.getByText("Health").locator("..")).toContainText("Well");
  await expect(page.getByText("Version").locator("..")).toContainText(/\d+\.\d+/);
  await expect(page.getByRole("img", { name: /^Live sessions in the last hour: all: now 5, at most 5 at \d\d:\d\d, at least 2/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Turns in the last hour: 12 per minute since/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Commits to the log in the last hour: 0.25 ms each since/ })).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("img", { name: /^Live sessions/ }).hover({ position: { x: 5, y: 20 } });
  await expect(page.getByRole("figure").filter({ hasText: "Live sessions" })).toContainText(/at \d\d:\d\d.*2/s);
});

// inspector: Daemon view (tokens by name and scope)
test("a daemon without tokens says what that means", async ({ page, site }) => {
  await page.goto(`${site}/#/daemon`);
  await expect(page.getByText("whatever can reach the daemon may do everything")).toBeVisible();
  // A command that can be pasted: its scope is required.
  await expect(page.locator("code").filter({ hasText: "token new" })).toHaveText("acpd token new me --scope admin");
});
