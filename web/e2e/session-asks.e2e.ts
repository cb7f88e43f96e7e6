import { type Page } from "@playwright/test";
import { expect, expectAccessible, test } from "./harness";
import { EDIT, OPTIONS, steps, stepsTest } from "./steps";

const PHONE = { width: 360, height: 740 };
const dock = (page: Page) => page.getByRole("region", { name: /^Question/ });

// inspector: Session view (questions answerable by keyboard); What it does (works on a phone)
test("a question is answered by keyboard on a phone, and says who answered", async ({ page, site, session }) => {
  await page.setViewportSize(PHONE);
  const id = await session("ask edit Change the file\nall done");
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(dock(page)).toContainText("Change the file");
  await expect(dock(page).getByRole("button", { name: /^[1-4]/ })).toHaveCount(4);
  for (const button of await dock(page).getByRole("button").all()) await expect(button).toBeInViewport();
  await expectAccessible(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);

  // It does not take the focus, and what is typed behind something is no answer.
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.focus();
  await page.keyboard.type("q12");
  await expect(prompt).toHaveValue("q12");
  await expect(dock(page)).toBeVisible();

  await prompt.blur();
  await page.keyboard.press("q");
  await expect(dock(page)).toBeFocused();
  await page.keyboard.press("3");
  await expect(dock(page)).toHaveCount(0);
  await expect(page.getByText("permission selected reject-once")).toBeVisible();
  await expect(page.getByRole("button", { name: /question Change the file Reject once by you/ })).toBeVisible();
});

// inspector: Session view (questions answerable by keyboard): from where one writes, and back to it
test("Esc leaves the prompt, a digit answers while it is empty, and the focus comes back", async ({ page, site, session }) => {
  const id = await session();
  await page.goto(`${site}/#/sessions/${id}`);
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  const ask = async (title: string): Promise<void> => {
    await prompt.fill(`ask edit ${title}`);
    await prompt.press("Enter");
    await expect(dock(page)).toContainText(title);
  };
  // The focus is still in the box, which is empty.
  await ask("First");
  await expect(prompt).toBeFocused();
  await page.keyboard.press("3");
  await expect(dock(page)).toHaveCount(0);
  await expect(page.getByText("permission selected reject-once")).toBeVisible();
  await expect(prompt).toBeFocused();
  await expect(prompt).toHaveValue("");

  // By way of the card, with a draft that stays.
  await ask("Second");
  await page.keyboard.type("later");
  await page.keyboard.press("Escape");
  await expect(dock(page)).toBeFocused();
  await page.keyboard.press("1");
  await expect(dock(page)).toHaveCount(0);
  await expect(page.getByText("permission selected allow-once")).toBeVisible();
  await expect(prompt).toBeFocused();
  await expect(prompt).toHaveValue("later");

  // A button that is pressed goes with the question; the focus does not.
  await ask("Third");
  await dock(page).getByRole("button", { name: /Reject once/ }).focus();
  await page.keyboard.press("Enter");
  await expect(dock(page)).toHaveCount(0);
  await expect(prompt).toBeFocused();

  // Without a question Esc leads to the transcript, whose keys mean something then.
  await page.keyboard.press("Escape");
  await expect(page.getByRole("log", { name: "Transcript" })).toBeFocused();
  await page.keyboard.press("/");
  const search = page.getByRole("searchbox", { name: "Search in this session" });
  await search.pressSequentially("1q");
  await page.keyboard.press("Escape");
  await expect(search).toHaveValue("");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("log", { name: "Transcript" })).toBeFocused();
});

// inspector: Session view (cancel by keyboard)
for (const [name, press] of [
  ["Esc Esc", async (page: Page) => { await page.keyboard.press("Escape"); await page.keyboard.press("Escape"); }],
  ["Ctrl+.", (page: Page) => page.keyboard.press("Control+.")],
] as const) {
  test(`${name} cancels the turn, from the prompt`, async ({ page, site, session }) => {
    const id = await session("hang");
    await page.goto(`${site}/#/sessions/${id}`);
    await expect(page.getByRole("button", { name: "Cancel the turn" })).toBeVisible();
    const prompt = page.getByRole("textbox", { name: "Prompt" });
    await prompt.fill("kept");
    // On a busy machine two keys may be a second apart, which is not twice in a row.
    await expect(async () => {
      await prompt.focus();
      await press(page);
      await expect(page.getByText("Cancelled", { exact: true }).first()).toBeVisible({ timeout: 5_000 });
    }).toPass({ timeout: 60_000 });
    await expect(prompt).toHaveValue("kept");
  });
}

// inspector: Session view (two browsers on one session: first answer wins and the other sees who answered)
test("the first of two answers counts, and the other browser sees whose it was", async ({ page, context, site, session }) => {
  const id = await session("ask execute Do it");
  const other = await context.newPage();
  for (const each of [page, other]) await each.goto(`${site}/#/sessions/${id}`);
  await expect(dock(other)).toBeVisible();
  await dock(page).getByRole("button", { name: /Allow once/ }).click();
  await expect(dock(other)).toHaveCount(0);
  await expect(other.getByRole("button", { name: /question Do it Allow once by inspector-[0-9a-f]{4}$/ })).toBeVisible();
  await expect(page.getByRole("button", { name: /Allow once by you/ })).toBeVisible();
});

// contract 7.3, question_closed: an answer that is late says so
test("a late answer is told that another client was faster", async ({ page, site, session, call }) => {
  const id = await session("ask execute Do it");
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(dock(page)).toBeVisible();
  const question = (await call<{ snapshot: { openPermissionRequests: { request: number }[] } }>("GET", `/v1/sessions/${id}`)).snapshot.openPermissionRequests[0]?.request;
  await page.route("**/answer", async (route) => {
    await call("POST", `/v1/sessions/${id}/answer`, { question, outcome: { outcome: "selected", optionId: "reject-once" } });
    await route.continue();
  });
  await dock(page).getByRole("button", { name: /Allow once/ }).click();
  await expect(page.getByRole("status").filter({ hasText: "Another client was faster" })).toBeVisible();
  await expect(page.getByText("permission selected reject-once")).toBeVisible();
  await expect(page.getByRole("button", { name: /Reject once by REST$/ })).toBeVisible();
});

// inspector: Session view (forms answered in place by the schema's fields)
stepsTest("a form is filled in place, and what is wrong is said at its field", async ({ page, site, session, call }) => {
  const requestedSchema = {
    type: "object",
    required: ["host", "env"],
    properties: {
      host: { type: "string", title: "Host", description: "Its name in DNS" },
      env: { type: "string", title: "Environment", oneOf: [{ const: "s", title: "Staging" }, { const: "p", title: "Production" }] },
      count: { type: "integer", title: "Instances", minimum: 1, default: 2 },
      tls: { type: "boolean", title: "With TLS", default: true },
      zones: { type: "array", title: "Zones", items: { type: "string", enum: ["north", "south"] } },
    },
  };
  const id = await session(steps({ elicit: { mode: "form", message: "Where to?", requestedSchema } }), { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expectAccessible(page);
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("q");
  await expect(page.getByLabel("Host")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await dock(page).getByRole("button", { name: "Send" }).click();
  await expect(page.getByLabel("Host")).toBeFocused();
  await expect(dock(page)).toContainText("This is needed.");
  await page.keyboard.type("build-1");
  await page.getByLabel("Environment").selectOption({ label: "Production" });
  await page.getByLabel("Instances").fill("3");
  await page.getByLabel("south").check();
  await page.getByLabel("south").press("Enter");
  await expect(dock(page)).toHaveCount(0);
  const { events } = await call<{ events: { kind: string; result?: unknown }[] }>("GET", `/v1/sessions/${id}/events`);
  expect(events.find((event) => event.kind === "elicitation_resolved")?.result).toEqual({
    action: "accept",
    content: { host: "build-1", env: "p", count: 3, tls: true, zones: ["south"] },
  });
});

// inspector: Session view (every option and the raw input; diffs)
stepsTest("a change is shown as a diff where it is asked for, with its raw input", async ({ page, site, session }) => {
  const id = await session(steps({ update: { sessionUpdate: "tool_call", status: "pending", ...EDIT } }, { ask: { toolCall: EDIT, options: OPTIONS } }), { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(dock(page).locator(".removed")).toHaveText(/drop\(t\)/);
  await expect(dock(page).locator(".added")).toHaveText(/keep\(t\)/);
  await dock(page).getByText("Raw input").click();
  await expect(dock(page)).toContainText('"with": "keep(t)"');
  await expectAccessible(page);
  await page.getByRole("button", { name: /^edit Edit src/ }).click();
  await expect(page.getByRole("log").locator(".added")).toHaveText(/keep\(t\)/);
  await dock(page).getByRole("button", { name: /Yes, always/ }).click();
  await expect(page.getByRole("button", { name: /Yes, always by you/ })).toBeVisible();
});
