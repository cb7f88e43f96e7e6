import { expect, test } from "./harness";

interface Told {
  title: string;
  body: string;
}

// inspector: What it does (browser notifications when a session waits or ends; asked for by a button, never by itself)
test("notifications come once they are asked for, for what happens from then on", async ({ page, site, session, call }) => {
  // The browser of a test shows none: what would be shown is kept.
  await page.addInitScript(() => {
    const told: Told[] = [];
    let asked = 0;
    class Shown {
      static permission = "default";
      static requestPermission(): Promise<string> {
        asked += 1;
        Shown.permission = "granted";
        return Promise.resolve("granted");
      }
      constructor(title: string, options: { body: string }) {
        told.push({ title, body: options.body });
      }
    }
    Object.assign(window, { Notification: Shown, told, asked: () => asked });
  });
  const told = () => page.evaluate(() => (window as unknown as { told: Told[] }).told.map((one) => one.title));
  const asked = () => page.evaluate(() => (window as unknown as { asked: () => number }).asked());
  await session("title Before\nask edit a");
  await page.goto(site);
  await expect(page.getByText("Waits for you")).toBeVisible();
  expect(await asked()).toBe(0);

  const button = page.getByRole("button", { name: "Notify me when a session waits or ends" });
  await button.click();
  await expect(button).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByText("Notifications are on")).toBeVisible();
  // What it hears first is what is so already; one that was on its way before the button was pressed is not heard by it.
  await page.waitForResponse("**/v1/sessions?*");
  const id = await session("title Now\nask edit b");
  await expect.poll(told).toEqual(["Waits for you: Now"]);
  await call("POST", `/v1/sessions/${id}/close`, {});
  await expect.poll(told).toEqual(["Waits for you: Now", "Closed: Now"]);

  await button.click();
  await expect(button).toHaveAttribute("aria-pressed", "false");
});
