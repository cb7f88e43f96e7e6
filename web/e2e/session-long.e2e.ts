import type { Page } from "@playwright/test";
import { expect } from "./harness";
import { type Step, steps, stepsTest } from "./steps";

/** `ACPD_WEB_FULL=1`: the sizes and bounds of the design, on a machine that does nothing else. */
const isFull = process.env["ACPD_WEB_FULL"] === "1";
const EVENTS = isFull ? 10_000 : 1000;

interface Measured {
  openMs: number;
  longest: number;
}

// inspector: Budget (10,000 events open at the end in < 500 ms and scroll without a long task > 50 ms)
stepsTest(`${EVENTS} events open at their end, and scroll`, async ({ page, site, session, call }) => {
  const id = await session(steps(...mixed(EVENTS)), { agent: "steps" });
  await expect.poll(async () => (await call<{ state: string }>("GET", `/v1/sessions/${id}`)).state, { timeout: 60_000 }).toBe("idle");
  await page.addInitScript(() => {
    const tasks: number[] = [];
    (window as unknown as { tasks: number[] }).tasks = tasks;
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ entryTypes: ["longtask"] });
  });
  await page.goto(`${site}/#/sessions`);
  await expect(page.getByRole("table", { name: "Sessions" })).toBeVisible();
  const opened = await open(page, id);
  expect(await page.getByRole("log").locator("[data-index]").count()).toBeLessThan(100);
  const scrolled = await scroll(page);
  await page.getByRole("button", { name: "To the end" }).click();
  await expect(page.getByRole("log")).toContainText("Done");
  if (!isFull) return;
  console.log(`${EVENTS} events: open at the end in ${opened.openMs} ms, longest task ${opened.longest} ms; scrolling: longest task ${scrolled.longest} ms`);
  expect(opened.openMs).toBeLessThan(500);
  expect(scrolled.longest).toBeLessThan(50);
});

// inspector: Budget (200 updates/s stream without dropped frames); Session view (sticks to the end unless scrolled up)
stepsTest("a stream is followed at its end, and left alone when scrolled up", async ({ page, site, session, call }) => {
  const id = await session(undefined, { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  await call("POST", `/v1/sessions/${id}/prompt`, { prompt: steps({ chunks: isFull ? 2000 : 400, every: isFull ? 3 : 4, text: "words # of a text that goes on and on, " }, { chunks: 1, text: "\n\nthe last words" }) });
  const log = page.getByRole("log");
  await expect(log).toContainText(/words \d\d+ of a text/);
  const count = async () => (await call<{ eventCount: number }>("GET", `/v1/sessions/${id}`)).eventCount;
  const before = await count();
  const frames = await frameTimes(page, isFull ? 4000 : 300);
  const rate = Math.round(((await count()) - before) / (isFull ? 4 : 0.3));
  const place = () => log.evaluate((element) => ({ top: element.scrollTop, toEnd: element.scrollHeight - element.scrollTop - element.clientHeight }));
  await expect.poll(async () => (await place()).toEnd).toBeLessThan(60);
  await log.hover();
  await page.mouse.wheel(0, -400);
  let kept = Number.NaN;
  const isScrolled = async () => {
    const [before, { top, toEnd }] = [kept, await place()];
    kept = top;
    return toEnd > 100 && top === before;
  };
  await expect.poll(isScrolled, { intervals: [100] }).toBe(true);
  await expect(page.getByText("Waits for a prompt")).toBeVisible();
  expect(Math.abs((await log.evaluate((element) => element.scrollTop)) - kept)).toBeLessThan(80);
  await page.getByRole("button", { name: "To the end" }).click();
  await expect(log).toContainText("the last words");
  if (isFull) console.log(`streaming ${rate} updates/s: ${frames.length} frames in 4 s, ${frames.filter((ms) => ms > 25).length} over 25 ms, longest ${Math.round(Math.max(...frames))} ms`);
});

/** So many events of the kinds that a session has. */
function mixed(count: number): Step[] {
  const block = (at: number): Step[] => [
    { chunks: 10, text: `word # of paragraph ${at}, ` },
    { chunks: 1, text: "and its end.\n\n" },
    { update: { sessionUpdate: "tool_call", toolCallId: `t${at}`, title: `Read file ${at}`, kind: "read", status: "in_progress" } },
    { update: { sessionUpdate: "tool_call_update", toolCallId: `t${at}`, status: "completed", content: [{ type: "content", content: { type: "text", text: `file ${at}` } }] } },
    { chunks: 5, text: `and # more **bold** of ${at} ` },
    { chunks: 1, text: "\n\n```ts\nconst a = 1;\n```\n\n" },
    { update: { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } } },
  ];
  return Array.from({ length: count / 20 }, (_, at) => block(at)).flat();
}

function open(page: Page, id: string): Promise<Measured> {
  return page.evaluate(async (session) => {
    const { tasks } = window as unknown as { tasks: number[] };
    tasks.length = 0;
    const start = performance.now();
    location.hash = `#/sessions/${session}`;
    for (;;) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const log = document.querySelector("[role=log]");
      if (log?.textContent.includes("Done") === true && log.scrollHeight - log.scrollTop - log.clientHeight < 60) break;
    }
    return { openMs: Math.round(performance.now() - start), longest: Math.max(0, ...tasks) };
  }, id);
}

/** Scrolls up by a screen ten times a second, as one who looks for something does. */
function scroll(page: Page): Promise<Measured> {
  return page.evaluate(async () => {
    const { tasks } = window as unknown as { tasks: number[] };
    await new Promise((resolve) => setTimeout(resolve, 300));
    tasks.length = 0;
    const log = document.querySelector("[role=log]");
    for (let at = 0; at < 180 && log !== null && log.scrollTop > 0; at += 1) {
      log.scrollTop -= log.clientHeight / 6;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return { openMs: 0, longest: Math.max(0, ...tasks) };
  });
}

function frameTimes(page: Page, forMs: number): Promise<number[]> {
  return page.evaluate(async (length) => {
    const times: number[] = [];
    const start = performance.now();
    for (let last = start; last - start < length; ) {
      const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
      times.push(now - last);
      last = now;
    }
    return times;
  }, forMs);
}
