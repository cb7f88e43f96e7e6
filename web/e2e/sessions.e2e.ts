import { expect, expectAccessible, test } from "./harness";

// inspector: Sessions view (waiting-for-you first, how it ended at a glance)
test("sessions stand in the order in which they matter, and say how they ended", async ({ page, site, session }) => {
  await session("title Ended badly\nexit 3");
  await session("title Closed by itself", { closeAfterTurn: true });
  await session("title Asks\nask execute rm");
  await session("title Done\nhello");
  await page.goto(site);
  const rows = page.getByRole("table", { name: "Sessions" }).getByRole("row");
  await expect(rows).toHaveCount(5);
  await expect(rows.nth(1)).toContainText("Waits for you");
  await expect(rows.nth(1)).toContainText("Asks");
  await expect(rows.filter({ hasText: "Ended badly" })).toContainText("Crashed: exit 3");
  await expect(rows.filter({ hasText: "Closed by itself" })).toContainText("Closed");
  await expect(page.getByText("4 sessions, 1 waiting for you")).toBeVisible();
  await expectAccessible(page);
  await rows.filter({ hasText: "Ended badly" }).getByRole("link").click();
  await expect(page).toHaveURL(/#\/sessions\/[0-9a-f-]+$/);
});

// inspector: Sessions view (live updates without a flash)
test("what changes is shown without a reload, and what stays is not drawn again", async ({ page, site, session, call }) => {
  const first = await session("title First\nhello");
  await page.goto(site);
  const rows = page.getByRole("table", { name: "Sessions" }).getByRole("row");
  const row = rows.filter({ hasText: "First" });
  await expect(row).toContainText("Done");
  await row.evaluate((element) => element.setAttribute("data-same", "yes"));
  await session("title Second\nask edit a");
  await expect(rows.nth(1)).toContainText("Second");
  await expect(row).toHaveAttribute("data-same", "yes");
  await call("POST", `/v1/sessions/${first}/close`, {});
  await expect(row).toContainText("Closed");
  await call("DELETE", `/v1/sessions/${first}`);
  await expect(rows).toHaveCount(2);
});

// inspector: Sessions view (filter by state, agent, directory, text); contract 7.3, `q=`
test("filters stand in the address and are the daemon's", async ({ page, site, session }) => {
  await session("title Red apple\nhello");
  await session("title Green pear\nask edit a");
  await page.goto(site);
  const rows = page.getByRole("table", { name: "Sessions" }).getByRole("row");
  await expect(rows).toHaveCount(3);
  await page.keyboard.press("/");
  await page.keyboard.type("pear");
  await expect(rows).toHaveCount(2);
  await expect(page).toHaveURL(/#\/sessions\?q=pear$/);
  await page.getByLabel("State").selectOption("Ended");
  await expect(page.getByText("No session is like that.")).toBeVisible();
  await page.getByRole("button", { name: "Clear" }).click();
  await expect(rows).toHaveCount(3);
  await page.goto(`${site}/#/sessions?state=waiting`);
  await expect(rows).toHaveCount(2);
  await expect(rows.nth(1)).toContainText("Green pear");
});

// inspector: What it does (a phone)
test("the list fits a phone", async ({ page, site, session }) => {
  await page.setViewportSize({ width: 360, height: 780 });
  await session(`title ${"A long title ".repeat(12)}\nhello`);
  await page.goto(site);
  await expect(page.getByRole("link", { name: /A long title/ })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  const cells = page.getByRole("row").nth(1).getByRole("cell");
  for (const cell of await cells.all()) expect((await cell.boundingBox())?.height ?? 0).toBeLessThan(48);
  await expectAccessible(page);
});
