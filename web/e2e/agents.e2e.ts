import { expect, expectAccessible, test } from "./harness";

test.use({
  daemonOptions: {
    config: '[agents.broken]\ncommand = "sh"\nargs = ["-c", "echo out of paper >&2; exit 3"]\n',
  },
});

// inspector: Agents view (entries, what each supports, start a check)
test("an agent says what it supports, and a check says whether it works", async ({ page, site }) => {
  await page.goto(`${site}/#/agents`);
  const example = page.getByRole("region", { name: "example" });
  await expect(example.getByText("Default")).toBeVisible();
  await expect(example.getByText("Version").locator("..")).toContainText(/^Version\d/);
  const broken = page.getByRole("region", { name: "broken" });
  await expect(broken.getByText("Version").locator("..")).toContainText("told when it has run or was checked");
  await expectAccessible(page);
  await page.getByRole("button", { name: "Check example" }).click();
  await expect(example.getByRole("status")).toContainText("It works");
  await expect(example.getByText("Version").locator("..")).toContainText(/Example \d/);
  await expect(example.getByRole("listitem").filter({ hasText: "Fork" })).toContainText("yes");
  await expect(example.getByRole("listitem").filter({ hasText: "MCP over HTTP" })).toContainText("no");
  await page.reload();
  await expect(example.getByText("Version").locator(".."), "the daemon remembers").toContainText(/Example \d/);
});

// inspector: Agents view (health, last error)
test("an agent that does not start says why", async ({ page, site }) => {
  await page.goto(`${site}/#/agents`);
  await page.getByRole("button", { name: "Check broken" }).click();
  const broken = page.getByRole("region", { name: "broken" });
  await expect(broken.getByRole("status")).toContainText("It does not work");
  await expect(broken.getByRole("region", { name: "What it wrote to stderr" })).toContainText("out of paper");
  await expectAccessible(page);
  await page.reload();
  await expect(broken.getByText("Failing")).toBeVisible();
  await expect(broken.getByText("Last error")).toBeVisible();
});
