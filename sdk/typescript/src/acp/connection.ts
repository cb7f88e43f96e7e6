// A conversation with acpd over ACP that outlives its connections.
//
// Invariant: a session that is attached is loaded again on each new connection before anything else is said of it; a
// prompt is sent again under its key until it is answered, or there will be no more connections.

import type {
  AgentRequestMethod,
  AgentRequestParamsByMethod,
  AgentRequestResponsesByMethod,
  InitializeResponse,
  LoadSessionResponse,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  ResumeSessionRequest,
  ResumeSessionResponse,
} from "@agentclientprotocol/sdk";
import { type AcpdError, NetworkError } from "../errors.js";
import type { Http } from "../http.js";
import { checkedKey, newKey } from "../keys.js";
import { sessionPath } from "../paths.js";
import { tell } from "../telling.js";
import type { Prompt, SessionInfo, Whereabouts } from "../types.js";
import { AcpLine, META } from "./line.js";
import { Link } from "./link.js";
import type { ConnectOptions, NewAcpSession } from "./options.js";

/** How long the first connection is tried for, in milliseconds. */
const FIRST_FOR = 10_000;
/** How long a later one is tried for, in milliseconds. */
const RETRY_FOR = 300_000;

/** What an operation takes. */
export interface AcpCallOptions {
  /** Gives up: the operation fails with an `AbortedError`. A prompt is withdrawn. */
  readonly signal?: AbortSignal;
}

/** What a load is told of a session, once more on each new connection. */
type Place = Required<Omit<Whereabouts, "permissionMode">>;

export class AcpConnection {
  readonly #http: Http;
  readonly #options: ConnectOptions;
  readonly #attached = new Map<string, Place>();
  /** Why sessions could not be gone on with. */
  readonly #lost = new Map<string, AcpdError>();
  readonly #link: Link<AcpLine>;
  #initialized: InitializeResponse | undefined;

  private constructor(http: Http, options: ConnectOptions) {
    this.#http = http;
    this.#options = options;
    this.#link = new Link({
      open: (signal) => this.#open(signal),
      firstForMs: options.retryForMs ?? FIRST_FOR,
      retryForMs: options.retryForMs ?? RETRY_FOR,
      onConnection: (state) => options.onConnection?.(state),
    });
  }

  /** Connects. Fails with an `AgentError` where the agent does not start. */
  static async open(http: Http, options: ConnectOptions): Promise<AcpConnection> {
    const connection = new AcpConnection(http, options);
    const { signal } = options;
    const close = (): void => void connection.close();
    signal?.addEventListener("abort", close, { once: true });
    void connection.closed.then(() => signal?.removeEventListener("abort", close));
    if (signal?.aborted) close();
    await connection.#link.line(signal);
    return connection;
  }

  /** What acpd and the agent said of themselves, on the last connection. */
  get initialized(): InitializeResponse {
    if (this.#initialized === undefined) throw new NetworkError("the connection was never open");
    return this.#initialized;
  }

  /** Resolves when the connection will not come back: with the reason, or without one when it was closed. */
  get closed(): Promise<AcpdError | undefined> {
    return this.#link.ended;
  }

  /** Closes the connection. Its sessions live on; what waits for an answer fails with an `AbortedError`. */
  close(): Promise<void> {
    return this.#link.close();
  }

  /** Creates a session, and attaches to it. */
  async newSession(session: NewAcpSession, { signal }: AcpCallOptions = {}): Promise<NewSessionResponse> {
    const { permissionMode, partition, title, closeAfterTurn, ...where } = session;
    const place = placeOf(where, session.cwd);
    const own = { permissionMode, partition, title, closeAfterTurn };
    const params = { ...mutable(place), _meta: { [META]: own } };
    const answer = await this.#link.once((line) => line.agent.request("session/new", params), signal);
    this.#attached.set(answer.sessionId, place);
    return answer;
  }

  /**
   * Attaches to a session, after its whole history: `onReplay` and all of its updates come first. One that has ended is
   * taken up by a new run, if that can be; `_meta["sandboxagent.dev"].resumable` is `false` where it cannot.
   */
  async load(
    sessionId: string,
    where: Whereabouts = {},
    { signal }: AcpCallOptions = {},
  ): Promise<LoadSessionResponse> {
    const place = await this.#place(sessionId, where, signal);
    const answer = await this.#link.repeat((line) => this.#load(line, sessionId, place), signal);
    this.#attach(sessionId, place);
    return answer;
  }

  /** Attaches to a session without its history; fails where it cannot be taken up. */
  async resume(
    sessionId: string,
    where: Whereabouts = {},
    { signal }: AcpCallOptions = {},
  ): Promise<ResumeSessionResponse> {
    const place = await this.#place(sessionId, where, signal);
    const params: ResumeSessionRequest = { sessionId, ...mutable(place) };
    const answer = await this.#link.repeat((line) => line.agent.request("session/resume", params), signal);
    this.#attach(sessionId, place);
    return answer;
  }

  /**
   * Prompts, and waits for the end of the turn. When the connection is lost meanwhile, the prompt is sent again on the
   * next one under the same key: the agent gets it once, and the answer is that of its turn. Fails with an
   * `AgentError` when the turn failed or ended with its run, and with the reason when there is no next connection.
   */
  prompt(
    sessionId: string,
    prompt: Prompt,
    options: AcpCallOptions & { readonly idempotencyKey?: string } = {},
  ): Promise<PromptResponse> {
    const { signal, idempotencyKey = newKey() } = options;
    const own = { idempotencyKey: checkedKey(idempotencyKey) };
    const params: PromptRequest = { sessionId, prompt: blocksOf(prompt), _meta: { [META]: own } };
    const withdrawal = signal === undefined ? {} : { cancellationSignal: signal, stopWaitingOnCancel: true };
    return this.#link.repeat((line) => {
      const lost = this.#lost.get(sessionId);
      return lost ? Promise.reject(lost) : line.agent.request("session/prompt", params, withdrawal);
    }, signal);
  }

  /** Has the running turn end. */
  cancel(sessionId: string, { signal }: AcpCallOptions = {}): Promise<void> {
    return this.#link.repeat((line) => line.agent.notify("session/cancel", { sessionId }), signal);
  }

  /** Stops a session; it can be taken up again. */
  async closeSession(sessionId: string, { signal }: AcpCallOptions = {}): Promise<void> {
    await this.#link.repeat((line) => line.agent.request("session/close", { sessionId }), signal);
    this.#attached.delete(sessionId);
  }

  /** Stops watching a session, which lives on. */
  async detach(sessionId: string, { signal }: AcpCallOptions = {}): Promise<void> {
    this.#attached.delete(sessionId);
    const method = "_sandboxagent/session/detach";
    await this.#link.repeat((line) => line.agent.request(method, { sessionId }), signal);
  }

  /** Any other request of ACP: `session/set_mode`, `authenticate`. It is sent once. */
  request<Method extends AgentRequestMethod>(
    method: Method,
    params: AgentRequestParamsByMethod[Method],
    options?: AcpCallOptions,
  ): Promise<AgentRequestResponsesByMethod[Method]>;
  request(method: string, params?: unknown, options?: AcpCallOptions): Promise<unknown>;
  request(method: string, params?: unknown, { signal }: AcpCallOptions = {}): Promise<unknown> {
    return this.#link.once((line) => line.agent.request(method, params), signal);
  }

  async #open(signal: AbortSignal): Promise<AcpLine> {
    // A WebSocket that is refused does not say why; this does.
    await this.#http.json({ method: "GET", path: "/v1/whoami", signal });
    const line = await AcpLine.open(this.#http, this.#options, this.#attached, signal);
    this.#initialized = line.initialized;
    try {
      await Promise.all(Array.from(this.#attached, ([id, place]) => this.#loadAgain(line, id, place)));
      return line;
    } catch (error) {
      line.close();
      throw error;
    }
  }

  async #loadAgain(line: AcpLine, sessionId: string, place: Place): Promise<void> {
    try {
      await this.#load(line, sessionId, place);
    } catch (error) {
      const failure = line.failure(error);
      if (failure === "lost") throw new NetworkError("the connection was lost again", { cause: error });
      this.#attached.delete(sessionId);
      this.#lost.set(sessionId, failure);
      tell(() => this.#options.onSessionLost?.(sessionId, failure));
    }
  }

  #load(line: AcpLine, sessionId: string, place: Place): Promise<LoadSessionResponse> {
    tell(() => this.#options.onReplay?.(sessionId));
    return line.agent.request("session/load", { sessionId, ...mutable(place) });
  }

  #attach(sessionId: string, place: Place): void {
    this.#lost.delete(sessionId);
    this.#attached.set(sessionId, place);
  }

  async #place(sessionId: string, where: Whereabouts, signal: AbortSignal | undefined): Promise<Place> {
    if (where.cwd !== undefined) return placeOf(where, where.cwd);
    const path = sessionPath(sessionId);
    return placeOf(where, (await this.#http.json<SessionInfo>({ method: "GET", path, signal })).cwd);
  }
}

function placeOf({ additionalDirectories = [], mcpServers = [] }: Whereabouts, cwd: string): Place {
  return { cwd, additionalDirectories, mcpServers };
}

// As the SDK's types want it.
function mutable({ cwd, additionalDirectories, mcpServers }: Place) {
  return { cwd, additionalDirectories: [...additionalDirectories], mcpServers: [...mcpServers] };
}

function blocksOf(prompt: Prompt): PromptRequest["prompt"] {
  return typeof prompt === "string" ? [{ type: "text", text: prompt }] : [...prompt];
}
