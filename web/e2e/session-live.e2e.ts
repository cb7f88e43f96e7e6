import { startDaemon } from "./daemon";
import { expect } from "./harness";
import { steps, stepsTest } from "./steps";

interface Logged {
  seq: number;
  message?: { params?: { update?: { content?: { text?: string } } } };
}

// inspector: What it does (reconnects by cursor without a flash or a doubled line)
stepsTest("a daemon that is killed in mid-turn comes back without a lost or doubled line", async ({ page, site, session, daemon, call }) => {
  const id = await session(steps({ chunks: 400, every: 10, text: "line # of the turn\n\n" }), { agent: "steps" });
  await page.goto(`${site}/#/sessions/${id}`);
  const log = page.getByRole("log");
  await expect(log).toContainText(/line \d\d+ of the turn/);
  await log.evaluate((element) => element.setAttribute("data-same", "yes"));
  await daemon.stop("SIGKILL");
  await expect(page.getByText("Reconnecting…")).toBeVisible();
  await expect(log).toContainText("of the turn");
  const again = await startDaemon({ home: daemon.home, listen: new URL(daemon.url).host });
  try {
    // The turn has gone on, and goes on.
    await expect(log).toContainText("line 399 of the turn");
    await expect(log).toHaveAttribute("data-same", "yes");
    const told = await lines(call, id);
    expect(told).toHaveLength(400);
    await expect.poll(() => shown(page, told.length)).toEqual(told);
  } finally {
    await again.stop();
  }
});

async function lines(call: <T>(method: string, path: string) => Promise<T>, id: string): Promise<string[]> {
  const { events } = await call<{ events: Logged[] }>("GET", `/v1/sessions/${id}/events?limit=1000`);
  return events.flatMap((event) => event.message?.params?.update?.content?.text?.trim() ?? []);
}

/** All lines of the list, read while it is scrolled through. */
async function shown(page: import("@playwright/test").Page, most: number): Promise<string[]> {
  return page.getByRole("log").evaluate(async (log, enough) => {
    const found: string[] = [];
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    log.scrollTop = 0;
    for (let at = 0; at < 20 * enough; at += 1) {
      await frame();
      const rows = [...log.querySelectorAll<HTMLElement>("[data-index]")];
      for (const row of rows) {
        const index = Number(row.dataset["index"]);
        const text = row.innerText.trim();
        if (/^line \d+ of the turn$/.test(text)) found[index] = text;
      }
      if (log.scrollTop + log.clientHeight >= log.scrollHeight - 1) break;
      log.scrollTop += log.clientHeight / 2;
    }
    return found.filter((line) => line !== undefined);
  }, most);
}

// inspector: What it does (reconnects; shows what it has while it loads)
stepsTest("a session that is opened while the daemon is away is shown when it is back", async ({ page, site, session, daemon }) => {
  const id = await session(steps({ chunks: 1, text: "here again" }), { agent: "steps" });
  await page.goto(`${site}/#/sessions`);
  await expect(page.getByRole("table", { name: "Sessions" })).toBeVisible();
  // The view is loaded when it is first shown; what comes from the daemon afterwards is under test.
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByRole("log")).toContainText("here again");
  await page.goto(`${site}/#/sessions`);
  await daemon.stop("SIGKILL");
  await page.goto(`${site}/#/sessions/${id}`);
  await expect(page.getByText("The daemon is away; this goes on when it is back.")).toBeVisible();
  const again = await startDaemon({ home: daemon.home, listen: new URL(daemon.url).host });
  try {
    await expect(page.getByRole("log")).toContainText("here again");
  } finally {
    await again.stop();
  }
});
