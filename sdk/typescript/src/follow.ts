// The events of a session as one sequence, over as many connections as it takes.
//
// Invariant: `hearing.ts` decides; this opens, reads, waits, and keeps the number of the last event that was given.

import { AbortedError, AcpdError, ArgumentError } from "./errors.js";
import type { AcpdEvent } from "./events.js";
import { afterClosed, afterFailure, afterLook, hear, type Next } from "./hearing.js";
import { failureOf, type Http } from "./http.js";
import { delayAfter, pause } from "./retry.js";
import { SseParser } from "./sse.js";
import type { SessionInfo } from "./types.js";

/** acpd says something every 15 s; a connection on which so many milliseconds are silent is dead. */
const SILENCE = 45_000;

/** How long a daemon that is away is waited for unless the caller says otherwise, in milliseconds. */
const PATIENCE = 300_000;

/** How the connection of a stream is doing. */
export type ConnectionState =
  | { readonly state: "open" }
  /** It was lost, or did not come about; the next try is in so many milliseconds. */
  | { readonly state: "waiting"; readonly error: AcpdError; readonly retryInMs: number };

/** How events are followed. */
export interface FollowOptions {
  /** Begin behind this event: a `seq`, or the `nextCursor` of a page. Default: from the first event. */
  readonly after?: number | string;
  readonly signal?: AbortSignal;
  /** How long a daemon that is away is waited for, in milliseconds; `Infinity` is for ever. Default: 5 minutes. */
  readonly retryForMs?: number;
  /** Is told when the connection is there, is lost, and is there again. */
  readonly onConnection?: (state: ConnectionState) => void;
}

/** How a sequence of events ended: with the session's run, or because the session was removed. */
export type EventsEnd = { readonly reason: "ended" | "removed"; readonly after: number };

/** Follows a session, whose path this is. */
export async function* follow(
  http: Http,
  path: string,
  options: FollowOptions,
): AsyncGenerator<AcpdEvent, EventsEnd, undefined> {
  const reader = new Reader(http, path, options);
  for (;;) {
    const ended = yield* reader.stream();
    const next = ended.next === "look" ? await reader.look() : ended;
    if (next.next === "ended" || next.next === "removed") return { reason: next.next, after: reader.after };
    if (next.next === "fail") throw next.error;
    if (next.next === "again") await reader.wait(next.error, next.afterMs);
  }
}

/** The number in a cursor: `12`, or `12@SESSION`. */
export function numberOf(after: number | string): number {
  const number = typeof after === "number" ? after : Number(/^(\d+)(@.+)?$/.exec(after)?.[1] ?? NaN);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new ArgumentError("after", "the `seq` of an event, 0, or the `nextCursor` of a page is required");
}

class Reader {
  /** The last event that was given. */
  after: number;
  readonly #http: Http;
  readonly #path: string;
  readonly #options: FollowOptions;
  /** Whether the session was there once. */
  #found = false;
  /** Tries since the last event. */
  #tries = 0;
  /** When the daemon was last heard of. */
  #heardAt = Date.now();

  constructor(http: Http, path: string, options: FollowOptions) {
    this.after = numberOf(options.after ?? 0);
    this.#http = http;
    this.#path = path;
    this.#options = options;
  }

  /** Gives the events of one connection, then says what is next. */
  async *stream(): AsyncGenerator<AcpdEvent, Next, undefined> {
    const connection = new Connection(this.#options.signal);
    const { signal } = connection;
    const query = { after: this.after };
    const headers = { Accept: "text/event-stream" };
    try {
      const response = await this.#http.open({ method: "GET", path: `${this.#path}/events`, query, headers, signal });
      this.#found = true;
      this.#options.onConnection?.({ state: "open" });
      return yield* this.#events(connection.texts(response));
    } catch (error) {
      return this.#failed(error);
    } finally {
      connection.end();
    }
  }

  /** What a session says whose stream has ended without a word. */
  async look(): Promise<Next> {
    const { signal } = this.#options;
    try {
      return afterLook(await this.#http.json<SessionInfo>({ method: "GET", path: this.#path, signal }), this.after);
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** Waits before the next try; fails when the daemon has been away for too long. */
  async wait(error: AcpdError, asked?: number): Promise<void> {
    this.#tries += 1;
    const retryInMs = asked ?? delayAfter(error, this.#tries, Math.random());
    const { signal, retryForMs = PATIENCE, onConnection } = this.#options;
    if (Date.now() + retryInMs > this.#heardAt + retryForMs) throw error;
    onConnection?.({ state: "waiting", error, retryInMs });
    await pause(retryInMs, signal);
  }

  async *#events(texts: AsyncIterable<string>): AsyncGenerator<AcpdEvent, Next, undefined> {
    const parser = new SseParser();
    for await (const text of texts) {
      this.#heardAt = Date.now();
      for (const message of parser.push(text)) {
        const heard = hear(message, this.after);
        if (heard.what === "closed") return afterClosed(heard.closed);
        if (heard.what === "repeat") continue;
        this.after = heard.event.seq;
        this.#tries = 0;
        yield heard.event;
        if (this.#options.signal?.aborted) throw new AbortedError(this.#options.signal);
      }
    }
    return { next: "look" };
  }

  #failed(error: unknown): Next {
    // What is none of this package's errors was thrown by the caller's own function.
    if (!(error instanceof AcpdError)) throw error;
    if (this.#options.signal?.aborted) throw new AbortedError(this.#options.signal);
    return afterFailure(error, this.#found);
  }
}

/** One connection: ends with the caller's signal, and when it is silent for too long. */
class Connection {
  readonly #caller: AbortSignal | undefined;
  readonly #own = new AbortController();
  readonly #abort = (): void => this.#own.abort(this.#caller?.reason);

  constructor(caller: AbortSignal | undefined) {
    this.#caller = caller;
    if (caller?.aborted) this.#abort();
    else caller?.addEventListener("abort", this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  end(): void {
    this.#caller?.removeEventListener("abort", this.#abort);
    this.#own.abort();
  }

  /** The body, as it comes. Time in which nothing is asked for does not count as silence. */
  async *texts(response: Response): AsyncGenerator<string, void, undefined> {
    if (response.body === null) return;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await this.#read(reader);
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadableStreamReadResult<Uint8Array>> {
    const timer = setTimeout(() => this.#own.abort(), SILENCE);
    try {
      return await reader.read();
    } catch (error) {
      throw failureOf(error, this.#caller);
    } finally {
      clearTimeout(timer);
    }
  }
}
