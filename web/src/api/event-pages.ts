/**
 * A session's events page by page, in the form of an answer whose body is the event stream: for browsers behind a proxy that
 * lets no WebSocket through. It holds no connection between two looks, so that any number of tabs can follow sessions.
 */

/** How often it is asked whether there are more, in milliseconds; a page that nobody sees asks less. */
const EVERY_MS = 1000;
const EVERY_UNSEEN_MS = 5000;
/** Events of a page. */
const PAGE = 1000;

/** A request for this path, of which only the answer's head is there. */
export type Ask = (path: string) => Promise<Response>;

/** What matters of a session. */
interface Progress {
  readonly eventCount: number;
  readonly ended: boolean;
}

/** The events of the session at `path` behind the number `after`, up to the end of its run. An answer that is no success is given as it is. */
export async function openEventPages(path: string, after: number, ask: Ask, wait: (ms: number) => Promise<void> = sleep): Promise<Response> {
  const first = await ask(path);
  if (!first.ok) return first;
  let progress: Progress | undefined = (await first.json()) as Progress;
  let reached = after;
  let isCancelled = false;
  const encoder = new TextEncoder();

  /** What comes next: events, or a comment that says that somebody is there; nothing behind the end. */
  async function next(): Promise<string | undefined> {
    progress ??= await json<Progress>(path, ask);
    const { eventCount, ended } = progress;
    progress = undefined;
    if (eventCount > reached) {
      const { events } = await json<{ events: readonly { seq: number }[] }>(`${path}/events?after=${reached}&limit=${PAGE}`, ask);
      reached = events.at(-1)?.seq ?? reached;
      return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    }
    if (ended) return undefined;
    await wait(isUnseen() ? EVERY_UNSEEN_MS : EVERY_MS);
    return ": here\n\n";
  }

  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const text = await next();
      if (isCancelled) return;
      if (text === undefined) controller.close();
      else controller.enqueue(encoder.encode(text));
    },
    cancel() {
      isCancelled = true;
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

async function json<Answer>(path: string, ask: Ask): Promise<Answer> {
  const response = await ask(path);
  if (!response.ok) throw new TypeError(`${path} was answered with ${response.status}`);
  return (await response.json()) as Answer;
}

function isUnseen(): boolean {
  return typeof document !== "undefined" && document.hidden;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
