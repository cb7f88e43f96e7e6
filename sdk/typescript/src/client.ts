// `AcpdClient`: all of REST, one method each.
//
// Boundary: says what is asked; `http.ts` sends it, `follow.ts` follows events, `retry.ts` repeats.

import type { AcpConnection } from "./acp/connection.js";
import type { ConnectOptions } from "./acp/options.js";
import { type AcpdError, ProtocolError, SessionRemovedError } from "./errors.js";
import { type AcpdEvent, type EventsPage, withQuestion } from "./events.js";
import { type EventsEnd, follow, type FollowOptions, numberOf } from "./follow.js";
import { baseOf, type Call, checkedName, checkedToken, failureOf, type Fetch, Http } from "./http.js";
import { checkedKey, newKey } from "./keys.js";
import { itemsOf } from "./pages.js";
import { agentPath, sessionPath } from "./paths.js";
import { checkedPatience, persistently } from "./retry.js";
import type * as types from "./types.js";

/** Where the daemon is, and what is shown to it. */
export interface AcpdClientOptions {
  /** Such as `http://127.0.0.1:2273`. Empty, in a page that acpd serves: where the page came from. */
  readonly url: string;
  /** A token, where the daemon wants one. */
  readonly token?: string;
  /** Whose prompts, answers and ends these are, in events: 1 to 40 visible ASCII characters. Default: `REST`. */
  readonly name?: string;
  /** Stands in for the platform's `fetch`, as where a proxy or a Unix socket is in between. */
  readonly fetch?: Fetch;
}

/** What every operation takes. */
export interface CallOptions {
  /** Gives up: the operation fails with an `AbortedError`. What the daemon has begun goes on. */
  readonly signal?: AbortSignal;
}

/** What a page takes. */
export interface PageOptions extends CallOptions {
  /** The `nextCursor` of the page before. */
  readonly cursor?: string;
  /** Items of a page at most. */
  readonly limit?: number;
}

/** What takes effect once, however often it is sent. */
export interface RepeatOptions extends CallOptions {
  /** Its name, 1 to 255 visible ASCII characters. Default: a new one. The same key again is the same request. */
  readonly idempotencyKey?: string;
  /** How long it is sent again while the daemon is away, in milliseconds; 0: once only. Default: 10 s. */
  readonly retryForMs?: number;
}

/** Which prompt is cancelled. */
export interface CancelOptions extends CallOptions {
  /** The key that it was sent under: one that waits leaves the line, one that runs is cancelled. Default: the running turn. */
  readonly idempotencyKey?: string;
}

/** What is told of a session's end. */
export interface EndListener {
  /** It has ended so. */
  ended(info: types.TerminationInfo): void;
  /** That cannot be seen any more: the session was removed, the daemon stayed away, or refuses. */
  failed(error: AcpdError): void;
}

const REPEAT_FOR = 10_000;

/** A client of one daemon. It holds no connection of its own. Every failure is an `AcpdError`. */
export class AcpdClient {
  readonly #http: Http;

  /** Throws an `ArgumentError` when `url` is no address, `token` no token or `name` no name. */
  constructor(options: AcpdClientOptions) {
    const { url, token, fetch, name } = options;
    this.#http = new Http(baseOf(url), checkedToken(token), fetch, checkedName(name));
  }

  /** Sessions, the latest change first. Pages are asked for as they are needed; `limit` is the size of one, to 500. */
  listSessions(
    filter: types.SessionsFilter = {},
    options: PageOptions = {},
  ): AsyncGenerator<types.Session, void, undefined> {
    const page = (cursor: string | undefined) => this.sessionsPage(filter, { ...options, ...cursorOf(cursor) });
    return itemsOf(page, ({ sessions }) => sessions);
  }

  /** One page of sessions. */
  sessionsPage(filter: types.SessionsFilter = {}, options: PageOptions = {}): Promise<types.SessionsPage> {
    return this.#get("/v1/sessions", options, { ...filter, ...pageOf(options) });
  }

  /** A session, with its snapshot: what a late viewer needs. */
  async getSession(sessionId: string, options: CallOptions = {}): Promise<types.SessionInfo> {
    return this.#get(sessionPath(sessionId), options);
  }

  /**
   * Creates a session; the turn of its prompt, if it has one, has begun then. While the daemon cannot be reached it is
   * tried again: one session at most comes of it.
   */
  async createSession(session: types.NewSession, options: RepeatOptions = {}): Promise<types.SessionInfo> {
    return this.#repeat("/v1/sessions", session, options);
  }

  /**
   * Begins a turn, or waits in line for one; what comes of it is in the events. While the daemon cannot be reached it
   * is tried again: the agent gets the prompt once at most. A `problem` of the code `session_ended` started nothing.
   */
  async prompt(sessionId: string, prompt: types.Prompt, options: RepeatOptions = {}): Promise<types.PromptAccepted> {
    return this.#repeat(sessionPath(sessionId, "/prompt"), { prompt }, options);
  }

  /** Answers a question of the agent: `question` is the `seq` of the event that asks. The first answer counts. */
  async answer(
    sessionId: string,
    question: number,
    outcome: types.PermissionOutcome | types.ElicitationOutcome,
    options: CallOptions = {},
  ): Promise<void> {
    return this.#post(sessionPath(sessionId, "/answer"), options, { question, outcome });
  }

  /**
   * Has the running turn end, or takes back the prompt under a key, whether it waits in line or runs. A `problem` of the
   * code `prompt_over`: there is none, or its turn is over.
   */
  async cancel(sessionId: string, options: CancelOptions = {}): Promise<void> {
    const { idempotencyKey } = options;
    const json = idempotencyKey === undefined ? undefined : { idempotencyKey: checkedKey(idempotencyKey) };
    return this.#post(sessionPath(sessionId, "/cancel"), options, json);
  }

  /** Stops a session; it can be taken up again. */
  async closeSession(sessionId: string, options: CallOptions = {}): Promise<void> {
    return this.#post(sessionPath(sessionId, "/close"), options);
  }

  /** Ends a session for good. */
  async terminateSession(sessionId: string, options: CallOptions = {}): Promise<void> {
    return this.#post(sessionPath(sessionId, "/terminate"), options);
  }

  /** Closes a session and removes it with its history. */
  async deleteSession(sessionId: string, options: CallOptions = {}): Promise<void> {
    return this.#http.done({ method: "DELETE", path: sessionPath(sessionId), signal: options.signal });
  }

  /** Takes up a session that has ended, in a new run. One that is live goes on undisturbed. */
  async resume(
    sessionId: string,
    where: types.Whereabouts = {},
    options: CallOptions = {},
  ): Promise<types.SessionInfo> {
    const path = sessionPath(sessionId, "/resume");
    return this.#http.json({ method: "POST", path, json: where, signal: options.signal });
  }

  /** A new session with a copy of the history. */
  async fork(sessionId: string, where: types.Whereabouts = {}, options: CallOptions = {}): Promise<types.SessionInfo> {
    const path = sessionPath(sessionId, "/fork");
    return this.#http.json({ method: "POST", path, json: where, signal: options.signal });
  }

  /**
   * Everything that happens in a session, from the first event or behind `after`, to the end of its run: each event
   * once, in order, over however many connections that takes, and over restarts of the daemon. Ends when the session
   * has ended and all was given, or when it was removed; the generator's return value says which.
   */
  events(sessionId: string, options: FollowOptions = {}): AsyncGenerator<AcpdEvent, EventsEnd, undefined> {
    numberOf(options.after ?? 0);
    checkedPatience(options.retryForMs ?? 0);
    return follow(this.#http, sessionPath(sessionId), options);
  }

  /** A page of what has happened in a session, behind `after`; at most 1000 events. Follows nothing. */
  async eventsPage(
    sessionId: string,
    options: CallOptions & { readonly after?: number | string; readonly limit?: number } = {},
  ): Promise<EventsPage> {
    const { after, limit } = options;
    const page = await this.#get<EventsPage>(sessionPath(sessionId, "/events"), options, { after, limit });
    page.events.forEach(withQuestion);
    return page;
  }

  /** Waits for the end of a session's run, and tells how it ended; at once, when it has. */
  async waitForEnd(
    sessionId: string,
    options: Omit<FollowOptions, "after"> = {},
  ): Promise<types.TerminationInfo> {
    const look = (): Promise<types.SessionInfo> => this.getSession(sessionId, options);
    const session = await persistently(look, options.retryForMs ?? REPEAT_FOR, options.signal);
    if (session.ended && session.terminationInfo) return session.terminationInfo;
    const events = this.events(sessionId, { ...options, after: session.eventCount });
    for await (const event of events) {
      if (event.kind === "ended") return event.terminationInfo;
    }
    throw new SessionRemovedError(sessionId);
  }

  /**
   * Has a listener told once how a session's run ends. Returns what stops that; the listener is not told then, nor
   * when the signal is aborted.
   */
  onSessionEnded(
    sessionId: string,
    listener: EndListener,
    options: Omit<FollowOptions, "after"> = {},
  ): () => void {
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    options.signal?.addEventListener("abort", abort, { once: true });
    if (options.signal?.aborted) abort();
    const told = this.waitForEnd(sessionId, { ...options, signal: stop.signal }).then(
      (info) => () => listener.ended(info),
      (error: AcpdError) => () => listener.failed(error),
    );
    void told.then((tell) => {
      options.signal?.removeEventListener("abort", abort);
      if (!stop.signal.aborted) tell();
    });
    return abort;
  }

  /**
   * A session as a file, as it is read: `new Response(stream).text()` has all of it. A stream that fails in the middle
   * is no whole file. With `details`, `markdown` also has what tool calls changed, and what they and terminals wrote.
   */
  async exportSession(
    sessionId: string,
    options: CallOptions & { readonly format?: types.ExportFormat; readonly details?: boolean } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const { format, details, signal } = options;
    const path = sessionPath(sessionId, "/export");
    const headers = { Accept: "*/*" };
    const response = await this.#http.open({ method: "GET", path, query: { format, details }, headers, signal });
    if (response.body === null) throw new ProtocolError("the answer has no body", response.status);
    return typed(response.body, signal);
  }

  /** Takes over a session from a file of the form `jsonl`. */
  importSession(file: NonNullable<RequestInit["body"]>, options: CallOptions = {}): Promise<types.SessionInfo> {
    const headers = { "Content-Type": "application/x-ndjson" };
    const { signal } = options;
    return this.#http.json({ method: "POST", path: "/v1/import", body: file, headers, signal });
  }

  /** Turns in which all these words stand, the latest first; `limit` is the size of a page, to 100. */
  search(text: string, options: PageOptions = {}): AsyncGenerator<types.SearchHit, void, undefined> {
    const page = (cursor: string | undefined) => this.searchPage(text, { ...options, ...cursorOf(cursor) });
    return itemsOf(page, ({ hits }) => hits);
  }

  /** One page of what was found, and whether older sessions are still missing from it. */
  searchPage(text: string, options: PageOptions = {}): Promise<types.SearchPage> {
    return this.#get("/v1/search", options, { text, ...pageOf(options) });
  }

  /** Removes ended sessions, and says which. */
  prune(which: types.Prune = {}, options: CallOptions = {}): Promise<types.Pruned> {
    return this.#http.json({ method: "POST", path: "/v1/prune", json: which, signal: options.signal });
  }

  /** How each configured agent stands. */
  async agents(options: CallOptions = {}): Promise<readonly types.Agent[]> {
    return (await this.#get<{ agents: types.Agent[] }>("/v1/agents", options)).agents;
  }

  /** Starts an agent, asks it what it is, and stops it. That it does not work is an answer, not a failure. */
  async checkAgent(name: string, options: CallOptions = {}): Promise<types.AgentCheck> {
    return this.#http.json({ method: "POST", path: agentPath(name, "/check"), signal: options.signal });
  }

  /** A code that lets a page in, once: only over the Unix socket, to its owner. */
  issueCode(options: CallOptions = {}): Promise<types.Code> {
    return this.#http.json({ method: "POST", path: "/v1/codes", signal: options.signal });
  }

  /** A token for a code, which is used up. Needs no token. */
  open(code: string, options: CallOptions = {}): Promise<types.Opened> {
    return this.#http.json({ method: "POST", path: "/v1/open", json: { code }, signal: options.signal });
  }

  /** Who the caller is to the daemon, and what it may do. */
  whoami(options: CallOptions = {}): Promise<types.Whoami> {
    return this.#get("/v1/whoami", options);
  }

  /** The tokens by name; never a secret. */
  async tokens(options: CallOptions = {}): Promise<readonly types.KnownToken[]> {
    return (await this.#get<{ tokens: types.KnownToken[] }>("/v1/tokens", options)).tokens;
  }

  /** The nodes of the daemon's fleet. Fails with `no_fleet` when it is in none. */
  listNodes(options: CallOptions = {}): Promise<types.Nodes> {
    return this.#get("/v1/nodes", options);
  }

  /** Has a node of the fleet take no new sessions, until {@link undrainNode}; those that it has go on. */
  drainNode(name: string, options: CallOptions = {}): Promise<types.Node> {
    const path = `/v1/nodes/${encodeURIComponent(name)}/drain`;
    return this.#http.json({ method: "POST", path, signal: options.signal });
  }

  /** Has a node of the fleet take new sessions again. */
  undrainNode(name: string, options: CallOptions = {}): Promise<types.Node> {
    const path = `/v1/nodes/${encodeURIComponent(name)}/undrain`;
    return this.#http.json({ method: "POST", path, signal: options.signal });
  }

  /**
   * Removes a node of the fleet that is gone for good, with its sessions and their archive. Where sessions are `left`, the next call goes on.
   * Fails with `node_reachable` when it is there.
   */
  removeNode(name: string, options: CallOptions = {}): Promise<types.RemovedNode> {
    const path = `/v1/nodes/${encodeURIComponent(name)}`;
    return this.#http.json({ method: "DELETE", path, signal: options.signal });
  }

  /** The last hour of the daemon, and what is there now. */
  stats(options: CallOptions = {}): Promise<types.Stats> {
    return this.#get("/v1/stats", options);
  }

  /** Has the daemon read its configuration anew. */
  reload(options: CallOptions = {}): Promise<types.Reloaded> {
    return this.#http.json({ method: "POST", path: "/v1/reload", signal: options.signal });
  }

  /**
   * Has the daemon go on as the acpd that is installed now: its version. It takes clients again in a moment, and its sessions end
   * as at a restart. Fails with `handover_refused` when that acpd would not start.
   */
  handOver(options: CallOptions = {}): Promise<types.HandingOver> {
    return this.#http.json({ method: "POST", path: "/v1/handover", signal: options.signal });
  }

  /** Whether the daemon answers, and how it is. Needs no token. */
  health(options: CallOptions = {}): Promise<types.Health> {
    return this.#get("/v1/health", options);
  }

  /** Whether the daemon could take on work, and if not, why. Needs no token. */
  ready(options: CallOptions = {}): Promise<types.Ready> {
    return this.#http.json({ method: "GET", path: "/v1/ready", signal: options.signal }, [503]);
  }

  /**
   * Connects to an agent over ACP, by the official SDK, and comes back when the connection is lost. Fails with an
   * `AgentError` where the agent does not start.
   */
  async connect(options: ConnectOptions = {}): Promise<AcpConnection> {
    // Loaded when it is needed: REST is small without it.
    const acp = await import("./acp/connection.js");
    return acp.AcpConnection.open(this.#http, options);
  }

  #get<Answer>(path: string, { signal }: CallOptions, query: Call["query"] = {}): Promise<Answer> {
    return this.#http.json({ method: "GET", path, query, signal });
  }

  #post(path: string, { signal }: CallOptions, json?: unknown): Promise<void> {
    return this.#http.done({ method: "POST", path, json, signal });
  }

  #repeat<Answer>(path: string, json: unknown, options: RepeatOptions): Promise<Answer> {
    const { signal, retryForMs = REPEAT_FOR } = options;
    const key = checkedKey(options.idempotencyKey ?? newKey());
    const call: Call = { method: "POST", path, json, headers: { "Idempotency-Key": key }, signal };
    return persistently(() => this.#http.json<Answer>(call), retryForMs, signal);
  }
}

function pageOf({ cursor, limit }: PageOptions): { cursor: string | undefined; limit: number | undefined } {
  return { cursor, limit };
}

function cursorOf(cursor: string | undefined): Pick<PageOptions, "cursor"> {
  return cursor === undefined ? {} : { cursor };
}

// The same stream, with errors of this package.
function typed(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      const read = await reader.read().catch((error: unknown) => {
        throw failureOf(error, signal);
      });
      if (read.done) controller.close();
      else controller.enqueue(read.value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
