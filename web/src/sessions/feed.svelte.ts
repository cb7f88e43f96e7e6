import { access } from "../api/access.svelte";
import { api } from "../api/api";
import { inWords, isAbort } from "../api/errors";
import type { Session, SessionsFilter, SessionState } from "acpd-client";
import { MOST_CHANGES } from "../live/changes";
import { type Filters, isFiltered, toQuery } from "./filters";
import { compare, extended, type Known, type Newest, refreshed } from "./ordering";

/** Sessions of a page. */
const PAGE = 200;
/** States of which all sessions are wanted at once, since they stand in front. */
const FRONT: readonly SessionState[] = ["waiting", "running"];

/**
 * The list of sessions under filters, as far as it has been looked at. It goes on showing what it has while it loads,
 * and outlives the view, so that a step back finds it as it was.
 */
class SessionFeed {
  #known = $state.raw<Known>(new Map());
  #cursor = $state<string | undefined>(undefined);
  #loading = $state(false);
  #loaded = $state(false);
  #error = $state<string | undefined>(undefined);
  #filters: Filters | undefined;
  /** Whose sessions these are. */
  #token: string | undefined;
  #stop = new AbortController();
  readonly #list = $derived([...this.#known.values()].sort(compare));

  /** In the order in which they are shown. */
  get list(): readonly Session[] {
    return this.#list;
  }

  /** There are more behind them. */
  get more(): boolean {
    return this.#cursor !== undefined;
  }

  get loading(): boolean {
    return this.#loading;
  }

  /** Something was loaded ever. */
  get loaded(): boolean {
    return this.#loaded;
  }

  /** Why the last try to load failed, in words. */
  get error(): string | undefined {
    return this.#error;
  }

  /** Shows the list under these filters. */
  async show(filters: Filters): Promise<void> {
    const same = JSON.stringify(filters) === JSON.stringify(this.#filters) && this.#token === access.token;
    if (!same || this.#error !== undefined) await this.#begin(filters);
  }

  async #begin(filters: Filters): Promise<void> {
    this.#filters = filters;
    this.#token = access.token;
    this.#stop.abort();
    this.#stop = new AbortController();
    await this.#load(async (signal) => {
      const query = toQuery(filters);
      const [page, ...fronts] = await Promise.all([
        api.sessionsPage(query, { limit: PAGE, signal }),
        ...FRONT.filter((state) => mayHave(query, state)).map((state) => api.sessionsPage({ ...query, state }, { limit: PAGE, signal })),
      ]);
      this.#cursor = page.nextCursor;
      this.#known = fronts.reduce<Known>((known, front) => extended(known, front.sessions), extended(new Map(), page.sessions));
    });
  }

  /** Loads the next page, if there is one. */
  async extend(): Promise<void> {
    const filters = this.#filters;
    const cursor = this.#cursor;
    if (filters === undefined || cursor === undefined || this.#loading) return;
    await this.#load(async (signal) => {
      const page = await api.sessionsPage(toQuery(filters), { limit: PAGE, cursor, signal });
      this.#cursor = page.nextCursor;
      this.#known = extended(this.#known, page.sessions);
    });
  }

  /** Takes up what has changed. */
  async take(changed: readonly Session[], newest: Newest, signal: AbortSignal): Promise<void> {
    const filters = this.#filters;
    if (filters === undefined) return;
    if (this.#error !== undefined || changed.length >= MOST_CHANGES) return this.#begin(filters);
    if (this.#loading) return;
    const matching = isFiltered(filters) ? await this.#matching(toQuery(filters), changed.length, signal) : newest;
    if (this.#filters === filters && !this.#loading) this.#known = refreshed(this.#known, changed, matching);
  }

  /** The newest of the list, at least as many as have changed. */
  async #matching(query: SessionsFilter, changed: number, signal: AbortSignal): Promise<Newest> {
    const page = await api.sessionsPage(query, { limit: Math.max(50, changed), signal });
    return { sessions: page.sessions, whole: page.nextCursor === undefined };
  }

  async #load(task: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    this.#loading = true;
    this.#error = undefined;
    try {
      await task(signal);
      this.#loaded = true;
    } catch (error) {
      if (!isAbort(error)) this.#error = inWords(error);
    } finally {
      if (!signal.aborted) this.#loading = false;
    }
  }
}

/** Whether sessions in this state can be in an answer to the query, and not only them. */
function mayHave(query: SessionsFilter, state: SessionState): boolean {
  return query.state === undefined && !(query.ended === true && state !== "ended");
}

export const feed = new SessionFeed();
