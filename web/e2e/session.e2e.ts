import { createHash } from "node:crypto";
import { expect, expectAccessible, test } from "./harness";
import { steps, stepsTest } from "./steps";

// inspector: Session view (prompt box with queue; streamed text; cancel)
test("prompts are written, wait their turn, and are cancelled", async ({ page, site, session }) => {
  const id = await session();
  await page.goto(`${site}/#/sessions/${id}`);
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.fill("say **hello** to all");
  await prompt.press("Enter");
  await expect(page.getByRole("log").locator("strong")).toHaveText("hello");
  await prompt.fill("hang");
  await page.getByRole("button", { name: "Send" }).click();
  await expect(page.getByText(/^Running ·/)).toBeVisible();
  await prompt.fill("the next one");
  await page.getByRole("button", { name: "Put in line" }).click();
  await expect(page.getByRole("list", { name: "What waits" })).toContainText("the next one");
  await page.getByRole("button", { name: "Cancel the turn" }).click();
  await expect(page.getByRole("list", { name: "What waits" })).toHaveCount(0);
  await expect(page.getByRole("log")).toContainText("the next one");
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  await expectAccessible(page);
});

// inspector: Session view (a queue; what waits is taken back, and its words with it)
test("a prompt that waits is taken back", async ({ page, site, session, call }) => {
  const id = await session("hang");
  await page.goto(`${site}/#/sessions/${id}`);
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  const waiting = page.getByRole("list", { name: "What waits" });
  for (const words of ["not now", "after that"]) {
    await prompt.fill(words);
    await page.getByRole("button", { name: "Put in line" }).click();
    await expect(waiting).toContainText(words);
  }
  await expect(waiting).toContainText("waits, 2 before it");
  await expectAccessible(page);
  await waiting.getByRole("listitem").filter({ hasText: "not now" }).getByRole("button", { name: "Take back" }).click();
  await expect(prompt).toHaveValue("not now");
  await expect(prompt).toBeFocused();
  await expect(waiting.getByRole("listitem")).toHaveCount(1);
  expect((await call<{ promptsWaiting: number }>("GET", `/v1/sessions/${id}`)).promptsWaiting).toBe(1);
  // What is being written stays, and what was taken back stands behind it.
  await waiting.getByRole("button", { name: "Take back" }).click();
  await expect(prompt).toHaveValue("not now\nafter that");
  await expect(waiting).toHaveCount(0);
  await expect(page.getByText(/of other clients/)).toHaveCount(0);
  await expect(page.getByText(/^Running ·/)).toBeVisible();
  await page.getByRole("button", { name: "Cancel the turn" }).click();
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  const { events } = await call<{ events: { kind: string }[] }>("GET", `/v1/sessions/${id}/events`);
  expect(events.filter((event) => event.kind === "prompt")).toHaveLength(1);
});

// contract 7.3, prompt: a prompt that waits is gone if the session ends before
test("a prompt whose session ends before its turn can be written again", async ({ page, site, session, call }) => {
  const id = await session("hang");
  await call("POST", `/v1/sessions/${id}/prompt`, { prompt: "of another client" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByText("1 of other clients waits in line.")).toBeVisible();
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.fill("not lost");
  await page.getByRole("button", { name: "Put in line" }).click();
  const waiting = page.getByRole("list", { name: "What waits" });
  await expect(waiting).toContainText("waits, 2 before it");
  await call("POST", `/v1/sessions/${id}/close`);
  await expect(waiting).toContainText("The session ended before it began.");
  await page.getByRole("button", { name: "Resume" }).click();
  await waiting.getByRole("button", { name: "Write it again" }).click();
  await expect(prompt).toHaveValue("not lost");
  await expect(waiting).toHaveCount(0);
});

// inspector: What it does (says what it cannot show)
test("a session that is not there says so, and offers no prompt", async ({ page, site }) => {
  await page.goto(`${site}/#/sessions/nowhere`);
  await expect(page.getByRole("alert")).toContainText("There is no session of that id.");
  await expect(page.getByRole("navigation", { name: "Parts of the session" })).toHaveCount(0);
  await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveCount(0);
  await page.getByRole("link", { name: "To the sessions", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Sessions" })).toBeVisible();
});

// inspector: Session view (images by paste; images of agents never loaded by themselves)
test("an image is pasted, shown and sent", async ({ page, site, session, call }) => {
  const id = await session();
  await page.goto(`${site}/#/sessions/${id}`);
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.evaluate((box) => {
    const bytes = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (c) => c.charCodeAt(0));
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([bytes], "dot.png", { type: "image/png" }));
    box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  });
  await expect(page.getByRole("img", { name: "dot.png" })).toBeVisible();
  await prompt.fill("look");
  await prompt.press("Enter");
  const sent = page.getByRole("log").getByRole("img", { name: "Attached" });
  await expect.poll(() => sent.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1);
  const { events } = await call<{ events: { kind: string; prompt?: { type: string }[] }[] }>("GET", `/v1/sessions/${id}/events`);
  expect(events.find((event) => event.kind === "prompt")?.prompt?.map((block) => block.type)).toEqual(["text", "image"]);
});

// inspector: Session view (images of agents are not loaded; markdown can do nothing)
stepsTest("markdown of an agent loads nothing and runs nothing", async ({ page, site, session }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const text = 'A ![picture](https://example.invalid/a.png) <img src="https://example.invalid/b.png" onerror="document.title=1"> <script>document.title=2</script> [bad](javascript:void) [good](https://example.invalid/)\n\n';
  const image = { type: "image", mimeType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" };
  const id = await session(steps({ chunks: 1, text }, { update: { sessionUpdate: "agent_message_chunk", content: image } }), { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  const log = page.getByRole("log");
  await expect(log.getByRole("link", { name: "Image: picture" })).toHaveAttribute("href", "https://example.invalid/a.png");
  await expect(log).toContainText('<img src="https://example.invalid/b.png"');
  await expect(log).toContainText("<script>document.title=2</script>");
  await expect(log.getByRole("link", { name: "good" })).toHaveAttribute("rel", /noopener/);
  await expect(log.getByText("bad", { exact: false }).first()).toBeVisible();
  await expect(log.locator("a[href^='javascript']")).toHaveCount(0);
  await expect(log.getByRole("img")).toHaveCount(0);
  await log.getByRole("button", { name: /^Show the image/ }).click();
  await expect(log.getByRole("img", { name: "From the agent" })).toBeVisible();
  expect(asked.filter((url) => url.includes("example.invalid"))).toEqual([]);
});

// inspector: Session view (terminals live with exit status; loaded when they are opened)
test("a terminal shows its output as a terminal would, and how it ended", async ({ page, site, session, call }) => {
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(request.url()));
  const id = await session("run sh -c 'printf \"\\\\033[31mred\\\\033[0m plain\\\\n10%%\\\\r100%%\\\\n\"; exit 3'");
  // A command that runs is shown open.
  await expect.poll(async () => (await call<{ state: string }>("GET", `/v1/sessions/${id}`)).state).toBe("idle");
  await page.goto(`${site}/#/sessions/${id}`);
  const execution = page.getByRole("button", { name: /^execute sh -c/ });
  await expect(execution).toBeVisible();
  expect(loaded.some((url) => url.includes("xterm"))).toBe(false);
  await execution.click();
  const output = page.getByRole("log").locator("figure pre");
  await expect(output.locator(".fg1")).toHaveText("red");
  await expect(output).toHaveText(/red plain\s+100%/);
  await expect(page.getByRole("figure")).toContainText("exit 3");
  await expectAccessible(page);
});

// inspector: End (by whom and why, code, stderr, what was left behind)
test("a crash is told by its record, and the session goes on", async ({ page, site, session }) => {
  const id = await session("fork setsid\ncrash");
  await page.goto(`${site}/#/sessions/${id}`);
  await page.getByRole("link", { name: "How it ended" }).click();
  const record = page.getByRole("region", { name: "How the runs ended" });
  await expect(record).toContainText("exit 1");
  await expect(record).toContainText("a process outlived the agent and was killed");
  await expect(record).toContainText("crash line 1\n");
  await expect(record).toContainText("150 lines between are not kept");
  await expect(record).toContainText("crash line 250");
  await expectAccessible(page);
  await page.getByRole("link", { name: "Transcript" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(page.getByText("Taken up again: Example")).toBeVisible();
  await page.getByRole("textbox", { name: "Prompt" }).fill("and on");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("log")).toContainText("Done");
});

// inspector: Session view (terminate, confirmed)
test("terminating asks first, and is for good", async ({ page, site, session }) => {
  const id = await session("hello");
  await page.goto(`${site}/#/sessions/${id}`);
  const menu = page.getByRole("button", { name: "What can be done with this session" });
  const terminate = page.getByRole("button", { name: /^Terminate/ });
  await menu.click();
  await terminate.click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  await menu.click();
  await terminate.click();
  await page.getByRole("dialog").getByRole("button", { name: "Terminate" }).click();
  await expect(page.getByRole("log")).toContainText("terminated");
  await menu.click();
  await expect(terminate).toHaveAttribute("aria-disabled", "true");
  await expect(page.getByRole("button", { name: /^Resume The session was ended for good/ })).toBeVisible();
});

// contract 1.7, 7.3: an admin removes a session with its history, when it has ended
test("deleting asks first, and nothing remains", async ({ page, site, session, call }) => {
  const id = await session("a session to delete");
  await page.goto(`${site}/#/sessions/${id}`);
  const menu = page.getByRole("button", { name: "What can be done with this session" });
  const remove = page.getByRole("button", { name: /^Delete/ });
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  await menu.click();
  await expect(remove).toHaveAttribute("aria-disabled", "true");
  await expect(remove).toContainText("Close it first.");
  await page.getByRole("button", { name: /^Close;/ }).click();
  await expect(page.getByText("Ended", { exact: true })).toBeVisible();
  await menu.click();
  await remove.click();
  const dialog = page.getByRole("dialog", { name: "Delete this session?" });
  await expect(dialog).toContainText("Nothing of it remains");
  await expectAccessible(page);
  await page.keyboard.press("Enter");
  await expect(dialog).toHaveCount(0);
  expect((await call<{ ended: boolean }>("GET", `/v1/sessions/${id}`)).ended).toBe(true);
  await menu.click();
  await remove.click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Sessions" })).toBeVisible();
  await expect(page.getByText("a session to delete")).toHaveCount(0);
  await expect(call("GET", `/v1/sessions/${id}`)).rejects.toThrow("404");
});

// inspector: Session view (fork; what an agent does not support is disabled and says why)
test("a fork is gone to", async ({ page, site, session }) => {
  const id = await session("hello");
  await page.goto(`${site}/#/sessions/${id}`);
  await page.getByRole("button", { name: "What can be done with this session" }).click();
  await page.getByRole("button", { name: "Fork" }).click();
  await expect(page.getByRole("link", { name: id.slice(-6) })).toBeVisible();
  expect(page.url()).not.toContain(id);
});

stepsTest("what an agent cannot do is disabled and says why", async ({ page, site, session }) => {
  const id = await session(undefined, { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByRole("button", { name: "Attach images" })).toBeDisabled();
  await expect(page.getByRole("button", { name: "Attach images" })).toHaveAttribute("title", "steps takes no images.");
  await page.getByRole("button", { name: "What can be done with this session" }).click();
  await expect(page.getByRole("button", { name: /^Fork steps cannot fork sessions/ })).toHaveAttribute("aria-disabled", "true");
});

// inspector: Session view (filters that keep the order; search within; jump to error)
test("the transcript is narrowed, searched and jumped through", async ({ page, site, session }) => {
  const id = await session(`think a thought\ntool Read it\ntool Read more\nneedle in the text\nstream 40 2000\nread /etc/hostname`);
  await page.goto(`${site}/#/sessions/${id}`);
  const log = page.getByRole("log");
  await expect(log).toContainText("Done");
  await page.getByRole("button", { name: "Tools" }).click();
  await expect(log.getByRole("button")).toHaveText([/Read it/, /Read more/]);
  await page.getByRole("button", { name: "Tools" }).click();
  await page.keyboard.press("/");
  await page.keyboard.type("needle in");
  await expect(page.getByText("2 found")).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(log.locator(".found")).toContainText("needle");
  await expect.poll(() => page.evaluate(() => CSS.highlights.get("found")?.size)).toBeGreaterThan(0);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Next error" }).click();
  await expect(log.locator(".found")).toContainText("outside the session's directories");
  await expectAccessible(page);
});

// inspector: Session view (a hit of a search leads to its place)
test("an address can name an event, which is then in view", async ({ page, site, session, call }) => {
  const id = await session("stream 60 2000");
  await expect.poll(async () => (await call<{ state: string }>("GET", `/v1/sessions/${id}`)).state).toBe("idle");
  await page.goto(`${site}/#/sessions/${id}?seq=3`);
  await expect(page.getByRole("log").locator(".found")).toBeInViewport();
  await expect(page.getByRole("log").locator(".found")).toContainText("stream 60 2000");
});

// inspector: Trace (waterfall, raw JSON beside it, pause, errors only)
test("the trace shows events with their raw form, pauses, and narrows to errors", async ({ page, site, session, call }) => {
  const id = await session("tool Read it\nread /etc/hostname");
  await page.goto(`${site}/#/sessions/${id}/trace`);
  const events = page.getByRole("log", { name: "Events" });
  await events.getByRole("button", { name: /prompt turn 1/ }).click();
  await expect(page.getByRole("region", { name: /^Event \d+, raw/ })).toContainText('"kind": "prompt"');
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("region", { name: /^Event 4, raw/ })).toContainText('"tool_call"');
  await expectAccessible(page);
  await page.getByRole("button", { name: "Pause" }).click();
  await call("POST", `/v1/sessions/${id}/prompt`, { prompt: "more" });
  await expect(page.getByText(/\d new/)).toBeVisible();
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(events.getByRole("button", { name: /prompt turn 2/ })).toBeVisible();
  await page.getByLabel("Errors only").check();
  await expect(events.getByRole("button")).toHaveCount(1);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export JSON Lines" }).click();
  expect((await download).suggestedFilename()).toBe(`${id}.jsonl`);
});

const secret = "acpd-web-watch-0123456789abcdef0123456789abcdef";
const observer = test.extend({
  daemonOptions: {
    config: `[tokens.watch]\nhash = "sha256:${createHash("sha256").update(secret).digest("hex")}"\nscope = "observe"\nsees = "all"\n[tokens.boss]\nhash = "sha256:${createHash("sha256").update(`${secret}-boss`).digest("hex")}"\nscope = "admin"\n`,
  },
});

// inspector: Session view (an observer sees no buttons that it may not press)
observer("an observer watches a question and is offered no answer", async ({ page, site, call, daemon }) => {
  const { sessionId } = await call<{ sessionId: string }>("POST", "/v1/sessions", { cwd: daemon.project, prompt: "ask edit Change it" }, { Authorization: `Bearer ${secret}-boss` });
  await page.goto(`${site}/#/sessions/${sessionId}`);
  await page.getByLabel("Token").fill(secret);
  await page.keyboard.press("Enter");
  const question = page.getByRole("region", { name: /^Question/ });
  await expect(question).toContainText("Your token may watch, not answer.");
  await expect(question.getByRole("button", { name: /Allow/ })).toHaveCount(0);
  await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Cancel the turn" })).toHaveCount(0);
  await page.getByRole("button", { name: "What can be done with this session" }).click();
  await expect(page.getByRole("button", { name: /Terminate|Close|Fork|Resume/ })).toHaveCount(0);
  await expectAccessible(page);
});

// inspector: Session view (copy as markdown)
test("a message and the whole session are copied as markdown", async ({ page, context, site, session }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const id = await session("# A **title** here");
  await page.goto(`${site}/#/sessions/${id}`);
  await page.getByRole("log").locator(".agent").hover();
  await page.getByRole("log").locator(".agent").getByRole("button", { name: /^Copy/ }).click();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(copied).toBe("# A **title** here");
  await page.getByRole("button", { name: "What can be done with this session" }).click();
  await page.getByRole("button", { name: "Copy as markdown" }).click();
  await expect.poll(copied).toContain("## ");
});

// inspector: Session view (mode and config options by the agent's own names)
test("modes and options are set by the agent's own names", async ({ page, site, session }) => {
  const id = await session();
  await page.goto(`${site}/#/sessions/${id}`);
  await page.getByRole("button", { name: /^permissions: ask me · mode Default/ }).click();
  const dialog = page.getByRole("dialog");
  await expectAccessible(page);
  await dialog.getByLabel("Mode", { exact: true }).selectOption({ label: "Plan" });
  await expect(page.getByRole("log")).toContainText(/Mode: Plan/);
  await dialog.getByLabel("Model", { exact: true }).selectOption({ label: "Example Large" });
  await expect(page.getByRole("log")).toContainText(/Model: Example Large/);
  await dialog.getByLabel("Shout").check();
  await expect(page.getByRole("log")).toContainText(/Shout: on/);
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("button", { name: "permissions: ask me · mode Plan · Model Example Large · Shout on" })).toBeVisible();
});

// inspector: Session view (prompt box): what is written is lost by nothing but sending it
test("what is written stays over a look elsewhere and a reload", async ({ page, site, session }) => {
  const [one, other] = [await session("hello"), await session("hello")];
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await page.goto(`${site}/#/sessions/${one}`);
  await prompt.fill("half a thought");
  await page.getByRole("link", { name: "Trace" }).click();
  await expect(prompt).toHaveCount(0);
  await page.getByRole("link", { name: "Transcript" }).click();
  await expect(prompt).toHaveValue("half a thought");
  await page.reload();
  await expect(prompt).toHaveValue("half a thought");
  await page.goto(`${site}/#/sessions/${other}`);
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  await expect(prompt).toHaveValue("");
  await page.goBack();
  await expect(prompt).toHaveValue("half a thought");
  await prompt.press("Enter");
  await expect(page.getByRole("log").getByText("half a thought")).toHaveCount(2);
  await page.reload();
  await expect(page.getByRole("log").getByText("half a thought")).toHaveCount(2);
  await expect(prompt).toHaveValue("");
});

// inspector: Session view (follows its end)
test("the end stays in sight while the prompt grows", async ({ page, site, session }) => {
  const id = await session("stream 300 40\nthe very last line");
  await page.goto(`${site}/#/sessions/${id}`);
  const end = page.getByRole("log").getByText(/^Done/);
  await expect(end).toBeInViewport();
  const room = await page.getByRole("log").evaluate((log) => log.clientHeight);
  await page.getByRole("textbox", { name: "Prompt" }).fill("two\nlines");
  await expect.poll(() => page.getByRole("log").evaluate((log) => log.clientHeight)).toBeLessThan(room);
  await expect.poll(() => page.getByRole("log").evaluate((log) => log.scrollHeight - log.clientHeight - log.scrollTop)).toBeLessThan(2);
  await expect(end).toBeInViewport({ ratio: 1 });
});

// inspector: Session view (terminate): a ladder takes its time, and is told of
test("an agent that hangs is being terminated", async ({ page, site, session }) => {
  const id = await session("ignore-sigterm\nignore-cancel\nhang");
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByText(/^Running ·/)).toBeVisible();
  await page.getByRole("button", { name: "What can be done with this session" }).click();
  await page.getByRole("button", { name: /^Terminate/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Terminate" }).click();
  await expect(page.getByText("Terminating…")).toHaveCount(2);
  await expect(page.getByRole("log")).toContainText("A client terminated it.");
  await expect(page.getByText("Terminating…")).toHaveCount(0);
  await expect(page.getByRole("textbox", { name: "Prompt" })).toHaveAttribute("placeholder", "The session has ended.");
});

// inspector: What it does (says what it cannot show)
test("a session that is deleted while it is shown says so", async ({ page, site, session, call }) => {
  const id = await session("hello");
  await page.goto(`${site}/#/sessions/${id}`);
  await call("POST", `/v1/sessions/${id}/close`);
  await expect(page.getByRole("log")).toContainText("A client closed it.");
  await call("DELETE", `/v1/sessions/${id}`);
  await expect(page.getByText("This session was removed.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Resume" })).toBeDisabled();
  await expect(page.getByRole("log")).toContainText("hello");
});
