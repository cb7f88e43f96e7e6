import { NoConnection, problemOf } from "./errors";
import type { Agent, AgentCheck, Health, KnownToken, NewSession, Session, SessionFilter, SessionsPage, Stats, Whoami } from "./types";

/** What the client needs of the page: the token, and an ear for how it went. */
export interface Surroundings {
  token: () => string | undefined;
  /** Called for each request: with the status of the answer, or without one when there was none. */
  heard: (status: number | undefined, error?: Error) => void;
}

/** The requests of the pages. Each throws `ApiError`, `NoConnection`, or the reason of the signal. */
export class Client {
  constructor(private readonly around: Surroundings) {}

  sessions(filter: SessionFilter, signal?: AbortSignal): Promise<SessionsPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) if (value !== undefined && value !== "") query.set(name, String(value));
    return this.#ask("GET", `/v1/sessions?${query}`, { signal });
  }

  createSession(session: NewSession, key: string, signal?: AbortSignal): Promise<Session> {
    return this.#ask("POST", "/v1/sessions", { body: session, headers: { "Idempotency-Key": key }, signal });
  }

  async agents(signal?: AbortSignal): Promise<Agent[]> {
    return (await this.#ask<{ agents: Agent[] }>("GET", "/v1/agents", { signal })).agents;
  }

  checkAgent(name: string, signal?: AbortSignal): Promise<AgentCheck> {
    return this.#ask("POST", `/v1/agents/${encodeURIComponent(name)}/check`, { body: {}, signal });
  }

  stats(signal?: AbortSignal): Promise<Stats> {
    return this.#ask("GET", "/v1/stats", { signal });
  }

  async tokens(signal?: AbortSignal): Promise<KnownToken[]> {
    return (await this.#ask<{ tokens: KnownToken[] }>("GET", "/v1/tokens", { signal })).tokens;
  }

  whoami(signal?: AbortSignal): Promise<Whoami> {
    return this.#ask("GET", "/v1/whoami", { signal });
  }

  health(signal?: AbortSignal): Promise<Health> {
    return this.#ask("GET", "/v1/health", { signal });
  }

  /** A token for the single-use code of `acpd open`. */
  async open(code: string): Promise<string> {
    return (await this.#ask<{ token: string }>("POST", "/v1/open", { body: { code } })).token;
  }

  async #ask<T>(method: string, path: string, options: AskOptions): Promise<T> {
    const token = this.around.token();
    const headers = new Headers({ Accept: "application/json", ...options.headers });
    if (token !== undefined) headers.set("Authorization", `Bearer ${token}`);
    const init: RequestInit = { method, headers, signal: options.signal ?? null };
    if (options.body !== undefined) {
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(options.body);
    }
    const [status, text] = await this.#send(path, init);
    if (status < 200 || status > 299) {
      const error = problemOf(status, text);
      this.around.heard(status, error);
      throw error;
    }
    this.around.heard(status);
    return JSON.parse(text) as T;
  }

  async #send(path: string, init: RequestInit): Promise<[number, string]> {
    try {
      const response = await fetch(path, init);
      return [response.status, await response.text()];
    } catch (error) {
      if (init.signal?.aborted === true) throw error;
      this.around.heard(undefined);
      throw new NoConnection(error);
    }
  }
}

interface AskOptions {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}
