import { expect, test } from "./harness";
import { steps, stepsTest } from "./steps";

const LONG = Array.from({ length: 60 }, (_, line) => `Step ${line + 1}: do it`).join("\n");

// inspector: Session view (a prompt is one thing, however many paragraphs it has), W1
test("a prompt with blank lines is one bubble, and a long one is folded", async ({ page, site, session }) => {
  const id = await session();
  await page.goto(`${site}/#/sessions/${id}`);
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  const bubbles = page.locator(".text.user");
  await prompt.fill("Please fix the parser.\n\nSteps:\n\n1. read it\n\n2. mend it");
  await prompt.press("Enter");
  await expect(bubbles).toHaveCount(1);
  await expect(bubbles).toHaveText(/^You\s*Please fix the parser\.\s+Steps:\s+1\. read it\s+2\. mend it/);
  await expect(page.getByText("You", { exact: true })).toHaveCount(1);

  await prompt.fill(LONG);
  await prompt.press("Enter");
  await expect(bubbles).toHaveCount(2);
  const long = bubbles.last();
  await expect(long).toContainText("Step 12: do it…");
  await expect(long).not.toContainText("Step 13");
  await long.getByRole("button", { name: "Show all 60 lines" }).click();
  await expect(long).toContainText("Step 60: do it");
  await long.getByRole("button", { name: "Show less" }).click();
  await expect(long).not.toContainText("Step 60");
  // What is searched for is shown, wherever it is.
  await page.getByRole("searchbox").fill("Step 45");
  await page.keyboard.press("Enter");
  await expect(long).toContainText("Step 60");
});

// inspector: Session view (a prompt of several blocks is one message), W1
test("blocks of one prompt are under one name", async ({ page, site, session, call }) => {
  const id = await session();
  const link = { type: "resource_link", uri: "file:///srv/parse.ts", name: "parse.ts" };
  const text = (words: string) => ({ type: "text", text: words });
  await call("POST", `/v1/sessions/${id}/prompt`, { prompt: [text("Look at"), link, text("and mend it."), text("Then test.")] }, { "Acpd-Client": "editor" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.locator(".text.user")).toHaveCount(2);
  await expect(page.locator(".text.user").last()).toHaveText(/^\s*and mend it\.\s+Then test\.\s*$/);
  await expect(page.getByText("editor", { exact: true })).toHaveCount(1);
});

// inspector: Session view (the reason of a failure, and what to do), W3
stepsTest("a failed turn says why, and is tried again with all that was in its prompt", async ({ page, site, session, call }) => {
  const fail = { code: -32603, message: "Internal error", data: { details: "429 Too Many Requests: rate limited, retry in 20s" } };
  const prompt = steps({ fail }, { chunks: 1, text: "It worked." });
  const id = await session(undefined, { agent: "steps" });
  await call("POST", `/v1/sessions/${id}/prompt`, { prompt: [{ type: "text", text: prompt }, { type: "resource_link", uri: "file:///srv/a.ts", name: "a.ts" }] });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByRole("log").getByText("The turn failed: Internal error: 429 Too Many Requests: rate limited, retry in 20s")).toBeVisible();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.locator(".text.agent")).toHaveText(/It worked\./);
  await expect(page.getByRole("button", { name: "Try again" })).toHaveCount(0);
  const { events } = await call<{ events: { kind: string; prompt?: unknown }[] }>("GET", `/v1/sessions/${id}/events`);
  const [first, second] = events.filter(({ kind }) => kind === "prompt").map((event) => event.prompt);
  expect(second).toEqual(first);
});
