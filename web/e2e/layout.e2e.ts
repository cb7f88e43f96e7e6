import { expect, expectAccessible, test } from "./harness";

// inspector: What it does (works by keyboard alone, with a screen reader, dark and light)
test("the frame leads to every view by keyboard, and says where it is", async ({ page, site }) => {
  await page.goto(site);
  await expect(page.getByRole("heading", { level: 1, name: "Sessions" })).toBeVisible();
  const views = page.getByRole("navigation", { name: "Views" });
  await views.getByRole("link", { name: "Agents" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Agents" })).toBeFocused();
  await expect(page).toHaveTitle("Agents · acpd");
  await expect(views.getByRole("link", { name: "Agents" })).toHaveAttribute("aria-current", "page");
  await expectAccessible(page);
});

// inspector: What it does (dark and light)
test("the colours are the system's until others are chosen, which stay", async ({ page, site }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(site);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByRole("button", { name: /^Colours: system/ }).click();
  await expect.poll(ground).not.toBe(dark);
  await page.reload();
  await expect(page.getByRole("button", { name: /^Colours: light/ })).toBeVisible();
  expect(await ground()).not.toBe(dark);
});

// inspector: What it does (dark and light, a phone; axe: nothing serious)
test("every view can be read in the dark, and on a phone", async ({ page, site, session }) => {
  await session("title Asks\nask execute rm");
  await session("title Broke\nexit 3");
  await session("title Works\nhang");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 360, height: 780 });
  for (const view of ["Sessions", "New session", "Agents", "Daemon"]) {
    await page.goto(`${site}/#/${view === "New session" ? "start" : view.toLowerCase()}`);
    await expect(page.getByRole("heading", { level: 1, name: view })).toBeVisible();
    await expect(page.getByText("Loading…")).toHaveCount(0);
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(360);
  }
});

// inspector: Stack (a place that is not there is said, not shown empty)
test("an unknown place says so and leads back", async ({ page, site }) => {
  await page.goto(`${site}/#/nothing`);
  await expect(page.getByRole("heading", { level: 1, name: "Not found" })).toBeVisible();
  await page.getByRole("link", { name: "To the sessions", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Sessions" })).toBeVisible();
});
