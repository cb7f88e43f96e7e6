import { startDaemon } from "./daemon";
import { expect, test } from "./harness";

// inspector: What it does (reconnects without a flash; shows what it has)
test("the list stays while the daemon is away, and goes on when it is back", async ({ page, site, daemon, session }) => {
  await session("title Stays\nhello");
  await page.goto(site);
  const row = page.getByRole("row").filter({ hasText: "Stays" });
  await expect(row).toContainText("Done");
  await row.evaluate((element) => element.setAttribute("data-same", "yes"));
  await daemon.stop("SIGKILL");
  await expect(page.getByText("Reconnecting…")).toBeVisible();
  await expect(row).toBeVisible();

  const next = await startDaemon({ home: daemon.home, listen: new URL(daemon.url).host });
  try {
    await expect(page.getByText("Reconnecting…")).toBeHidden();
    // Its agent has waited, and it goes on.
    await expect(row).toContainText("Done");
    await expect(row).toHaveAttribute("data-same", "yes");
  } finally {
    await next.stop();
  }
});

// inspector: What it does (errors in words with what to do)
test("a page that finds no daemon says what to do, and begins by itself when there is one", async ({ page, site }) => {
  let asked = 0;
  await page.route("**/v1/**", (route) => {
    asked += 1;
    return route.abort();
  });
  await page.goto(site);
  await expect(page.getByRole("alert")).toContainText("acpd serve");
  await expect(page.getByText("Reconnecting…")).toBeVisible();
  // Two questions and then pauses, not one after the other.
  expect(asked).toBeLessThan(20);
  await page.unroute("**/v1/**");
  await expect(page.getByRole("heading", { name: "No session yet" })).toBeVisible();
});

// inspector: Daemon view (health)
test("the daemon's page says when there is none", async ({ page, site, daemon }) => {
  await page.goto(`${site}/#/daemon`);
  const health = page.getByText("Health").locator("..");
  await expect(health).toContainText("Well");
  await daemon.stop("SIGKILL");
  await expect(health).toContainText("Does not answer");
  const next = await startDaemon({ home: daemon.home, listen: new URL(daemon.url).host });
  try {
    await expect(health).toContainText("Well");
  } finally {
    await next.stop();
  }
});
