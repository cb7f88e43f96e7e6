// One line after another to the same place: when one is lost, the next is opened.
//
// Invariant: whatever goes over a link is answered, fails, or waits for a line that is being opened, which is bounded.
// Boundary: knows nothing of ACP; what a line is and how one is opened is the caller's.

import { AbortedError, AcpdError, NetworkError } from "../errors.js";
import type { ConnectionState } from "../follow.js";
import { persistently } from "../retry.js";
import { tell } from "../telling.js";

/** A line that is open. */
export interface Line {
  /** Resolves when it is lost or closed. */
  readonly closed: Promise<void>;
  close(): void;
  /** What a failure of something on it was: `lost`, so that it is not known what became of it, or an answer. */
  failure(error: unknown): AcpdError | "lost";
}

/** How a link is kept. */
export interface LinkOptions<Of extends Line> {
  /** Opens a line; fails with an error of this package. */
  readonly open: (signal: AbortSignal) => Promise<Of>;
  /** How long the first line is tried for, in milliseconds. */
  readonly firstForMs: number;
  /** How long each later one is tried for, in milliseconds. */
  readonly retryForMs: number;
  readonly onConnection: ((state: ConnectionState) => void) | undefined;
}

/** A line that is lost so soon behind a request, in milliseconds, may have been lost by it. */
const AT_ONCE = 2_000;
/** So often in a row, and it was: a message that is too long for acpd, say. */
const TIMES = 5;

export class Link<Of extends Line> {
  readonly #options: LinkOptions<Of>;
  readonly #stop = new AbortController();
  /** The line that is open, or the one that is being opened. */
  #line: Promise<Of>;
  /** Resolves when there will be no more lines: with the reason, or without one when it was closed. */
  readonly ended: Promise<AcpdError | undefined>;

  /** Begins to open the first line. */
  constructor(options: LinkOptions<Of>) {
    this.#options = options;
    this.#line = this.#open(options.firstForMs);
    this.ended = this.#keep();
  }

  /** The line that is open; waits for one that is being opened. */
  line(signal?: AbortSignal): Promise<Of> {
    return unlessAborted(this.#line, signal);
  }

  /** Does what can be done twice: it is done again on the next line when a line is lost. */
  async repeat<Answer>(does: (line: Of) => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
    for (let atOnce = 0; atOnce < TIMES; ) {
      const line = await this.line(signal);
      const begun = Date.now();
      const outcome = await attempt(line, does, signal);
      if (outcome !== "lost") return outcome.answer;
      atOnce = Date.now() - begun < AT_ONCE ? atOnce + 1 : 0;
      await this.#lose(line);
    }
    throw new NetworkError(`the connection was lost ${TIMES} times, each time right behind this request`);
  }

  /** Does what may be done once: when the line is lost in the middle, that is an error. */
  async once<Answer>(does: (line: Of) => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
    const line = await this.line(signal);
    const outcome = await attempt(line, does, signal);
    if (outcome !== "lost") return outcome.answer;
    await this.#lose(line);
    throw new NetworkError("the connection was lost before the answer came: it may have been done or not");
  }

  /** Closes the line; what waits fails with an `AbortedError`. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the connection was closed"));
    const line = await this.#line.catch(() => undefined);
    line?.close();
    await this.ended;
  }

  // Nothing is done on it any more; `#keep` has begun to open the next one when this returns.
  async #lose(line: Of): Promise<void> {
    line.close();
    await line.closed;
    await Promise.resolve();
  }

  async #keep(): Promise<AcpdError | undefined> {
    try {
      for (;;) {
        const line = await this.#line;
        await line.closed;
        this.#line = this.#open(this.#options.retryForMs);
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      if (error instanceof AcpdError) return error;
      throw error;
    }
  }

  async #open(forMs: number): Promise<Of> {
    const { open, onConnection } = this.#options;
    const { signal } = this.#stop;
    if (signal.aborted) throw new AbortedError(signal);
    const waiting = (error: AcpdError, retryInMs: number): void => {
      tell(() => onConnection?.({ state: "waiting", error, retryInMs }));
    };
    const line = await persistently(() => open(signal), forMs, signal, waiting);
    tell(() => onConnection?.({ state: "open" }));
    return line;
  }
}

type Outcome<Answer> = { readonly answer: Answer } | "lost";

async function attempt<Of extends Line, Answer>(
  line: Of,
  does: (line: Of) => Promise<Answer>,
  signal: AbortSignal | undefined,
): Promise<Outcome<Answer>> {
  try {
    return { answer: await unlessAborted(does(line), signal) };
  } catch (error) {
    if (signal?.aborted) throw new AbortedError(signal);
    if (error instanceof AcpdError) throw error;
    const failure = line.failure(error);
    if (failure === "lost") return failure;
    throw failure;
  }
}

function unlessAborted<Answer>(answer: Promise<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new AbortedError(signal));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
