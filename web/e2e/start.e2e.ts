import { expect, expectAccessible, test } from "./harness";

// inspector: Start view (first use: one click from nothing to a finished turn)
test("an empty daemon leads with one click to a finished turn", async ({ page, site, call }) => {
  await page.goto(site);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Run a turn with the example agent" }).click();
  await expect(page).toHaveURL(/#\/sessions\/[0-9a-f-]+$/);
  await expect(page.getByRole("log")).toContainText("3 of 3 done");
  await page.goto(site);
  await expect(page.getByRole("row").filter({ hasText: "A first turn" })).toContainText("Done");
  const { sessions } = await call<{ sessions: { lastTurn?: { stopReason?: string } }[] }>("GET", "/v1/sessions");
  expect(sessions.map((one) => one.lastTurn?.stopReason)).toEqual(["end_turn"]);
});

// inspector: Start view (agent, directory, permission mode, first prompt); by keyboard alone
test("a session begins as it was described", async ({ page, site, daemon, call }) => {
  await page.goto(`${site}/#/start`);
  await expect(page.getByLabel("Agent", { exact: true })).toHaveValue("example");
  await expectAccessible(page);
  await page.getByLabel("Directory").fill(daemon.project);
  await page.getByRole("radio", { name: /^Deny/ }).focus();
  await page.keyboard.press("Space");
  await page.getByLabel("First prompt").fill("ask edit notes");
  await page.keyboard.press("Control+Enter");
  await expect(page).toHaveURL(/#\/sessions\/[0-9a-f-]+$/);
  const { sessions } = await call<{ sessions: unknown[] }>("GET", "/v1/sessions");
  expect(sessions).toMatchObject([{ agent: "example", cwd: daemon.project, metadata: { permissionMode: "deny" } }]);
  await page.goto(`${site}/#/start`);
  await expect(page.getByLabel("First prompt")).toHaveValue("");
});

// inspector: Start view (errors in words, with what to do); nothing is sent that cannot be right
test("what is wrong is said where it is, and begins nothing", async ({ page, site, daemon, call }) => {
  await page.setViewportSize({ width: 900, height: 600 });
  await page.goto(`${site}/#/start`);
  const directory = page.getByLabel("Directory");
  await expect(directory).toHaveValue(daemon.home);
  await directory.fill("");
  await page.getByLabel("First prompt").fill("hello");
  await page.getByRole("button", { name: "Start with this prompt" }).click();
  await expect(directory).toBeFocused();
  await expect(page.getByText("Name a directory where acpd runs.")).toBeVisible();
  await directory.fill(`${daemon.home}/not-there`);
  await page.getByRole("button", { name: "Start with this prompt" }).click();
  await expect(page.getByRole("alert")).toContainText('not-there" is not a directory here');
  await expect(page.getByRole("alert")).toBeInViewport({ ratio: 1 });
  await directory.fill("not-there");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.reload();
  await expect(page.getByLabel("First prompt")).toHaveValue("hello");
  await expect(directory).toHaveValue("not-there");
  expect((await call<{ sessions: unknown[] }>("GET", "/v1/sessions")).sessions).toEqual([]);
});
