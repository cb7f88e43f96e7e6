import { api } from "../api/api";
import type { Session } from "acpd-client";
import type { Newest } from "../sessions/ordering";
import { poll } from "./poll";

/** How often the newest changes are asked for, in milliseconds. */
const EVERY_MS = 2000;
/** Sessions that are asked for at once. */
const PAGE = 50;
/** Changes that are looked at behind a long silence; a reader that is told of as many may have missed others. */
export const MOST_CHANGES = 500;

/** Hears of sessions that have changed since the last time, the latest first, and of the newest of all. */
export type Listener = (changed: readonly Session[], newest: Newest, signal: AbortSignal) => void | Promise<void>;

/** The newest changes of all sessions, asked for once for all parts of the pages that want to know. */
class Changes {
  readonly #listeners = new Set<Listener>();
  #stop: (() => void) | undefined;
  /** The newest change that is known. */
  #top = "";

  /** Tells this listener until the returned function is called. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#stop ??= poll((signal) => this.#look(signal), EVERY_MS);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  async #look(signal: AbortSignal): Promise<void> {
    const newest = await newestSince(this.#top, signal);
    const changed = newest.sessions.filter((session) => session.updatedAt > this.#top);
    this.#top = newest.sessions[0]?.updatedAt ?? this.#top;
    await Promise.all([...this.#listeners].map((listener) => listener(changed, newest, signal)));
  }
}

/** The newest sessions, at least those that have changed after `top`; without one: a page. */
async function newestSince(top: string, signal: AbortSignal): Promise<Newest> {
  const sessions: Session[] = [];
  let cursor: string | undefined;
  while (sessions.length < MOST_CHANGES) {
    const answer = await api.sessionsPage({}, { limit: PAGE, signal, ...(cursor === undefined ? {} : { cursor }) });
    sessions.push(...answer.sessions);
    cursor = answer.nextCursor;
    const last = sessions.at(-1);
    if (cursor === undefined) return { sessions, whole: true };
    if (top === "" || last === undefined || last.updatedAt <= top) break;
  }
  return { sessions, whole: false };
}

export const changes = new Changes();
