import { AbortedError, type AcpdClient, type AcpdError, isProblem, type SessionInfo } from "acpd-client";
import { isAway } from "../api/errors";
import type { LoggedEvent } from "./fold/transcript";
import { Transcript } from "./fold/transcript";

/** How often a session that has ended is looked at: another client may take it up. */
const LOOK_MS = 4000;
/** Events behind which the daemon says something else of the session. */
const TELLING = new Set(["run_started", "prompt", "turn_ended"]);
/** How often a daemon that is away is asked at first. */
const AGAIN_MS = 1000;
/** While a long session is read, it is shown so often. */
const SHOW_MS = 200;

/** What the feed is doing. */
export type FeedState =
  | { readonly state: "loading" | "live" | "ended" | "removed" }
  /** The daemon is away, and waited for. */
  | { readonly state: "waiting" }
  | { readonly state: "failed"; readonly error: AcpdError };

/**
 * A session as it happens: its events, folded. What is drawn follows `frame`, which moves once per frame however many
 * events came. Reading goes on over restarts of the daemon and over the ends of runs until `stop` is called.
 */
export class Feed {
  readonly transcript = new Transcript();
  /** All events as they came, in order. */
  readonly events: LoggedEvent[] = [];
  #frame = $state(0);
  #state = $state.raw<FeedState>({ state: "loading" });
  #info = $state.raw<SessionInfo | undefined>(undefined);
  readonly #stop = new AbortController();
  #isAsked = false;
  #isCaughtUp = false;
  #shownAt = performance.now();
  #wake: (() => void) | undefined;

  constructor(
    readonly id: string,
    private readonly client: AcpdClient,
  ) {
    void this.#run();
  }

  /** Changes when what is to be drawn does. */
  get frame(): number {
    return this.#frame;
  }

  get state(): FeedState {
    return this.#state;
  }

  /** What the daemon says of the session; refreshed when a turn or a run begins or ends. */
  get info(): SessionInfo | undefined {
    return this.#info;
  }

  /** Looks at once whether the session goes on, as after it was resumed. */
  look(): void {
    this.#wake?.();
  }

  stop(): void {
    this.#stop.abort();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    try {
      await this.#begin();
      while (!this.#stop.signal.aborted && (await this.#follow()) && (await this.#untilItGoesOn()));
    } catch (error) {
      if (error instanceof AbortedError) return;
      this.#state = { state: "failed", error: error as AcpdError };
      this.#show();
    }
  }

  /** Reads to the end of a run; false when there will be nothing more. */
  async #follow(): Promise<boolean> {
    const { signal } = this.#stop;
    const events = this.client.events(this.id, {
      after: this.transcript.seq,
      signal,
      retryForMs: Infinity,
      onConnection: (connection) => this.#connected(connection.state === "open"),
    });
    for (;;) {
      const next = await events.next();
      if (next.done === true) {
        const { reason } = next.value;
        this.#isCaughtUp = true;
        this.#state = { state: reason };
        this.#show();
        if (reason === "ended") await this.refresh().catch(() => undefined);
        return reason === "ended";
      }
      this.#take(next.value);
    }
  }

  #connected(isOpen: boolean): void {
    if (!isOpen) this.#state = { state: "waiting" };
    else if (this.#state.state === "waiting") this.#state = { state: this.#isCaughtUp ? "live" : "loading" };
  }

  #take(event: LoggedEvent): void {
    this.events.push(event);
    this.transcript.apply(event);
    if (TELLING.has(event.kind) && this.#isCaughtUp) void this.refresh().catch(() => undefined);
    if (!this.#isCaughtUp && event.seq >= (this.#info?.eventCount ?? 0)) {
      this.#isCaughtUp = true;
      this.#state = { state: "live" };
    }
    if (this.#isCaughtUp || performance.now() - this.#shownAt > SHOW_MS) this.#show();
  }

  /** Has the next frame show it; a page that is not seen has none, and needs none. */
  #show(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(() => {
      this.#isAsked = false;
      this.#shownAt = performance.now();
      this.#frame += 1;
    });
  }

  /** Asks for the session until there is a daemon to answer. */
  async #begin(): Promise<void> {
    for (;;) {
      try {
        return await this.refresh();
      } catch (error) {
        if (!isAway(error)) throw error;
        this.#state = { state: "waiting" };
        await this.#pause(AGAIN_MS);
      }
    }
  }

  /** Asks the daemon what it says of the session now. */
  async refresh(): Promise<void> {
    this.#info = await this.client.getSession(this.id, { signal: this.#stop.signal });
  }

  /** Looks again and again at a session that has ended; false when it was removed. */
  async #untilItGoesOn(): Promise<boolean> {
    do {
      await this.#pause(document.hidden ? LOOK_MS * 5 : LOOK_MS);
      try {
        await this.refresh();
      } catch (error) {
        if (!isProblem(error, "session_not_found")) continue;
        this.#state = { state: "removed" };
        return false;
      }
    } while (!this.#stop.signal.aborted && this.#info?.ended !== false);
    return true;
  }

  /** Waits so long, or until it is woken. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
