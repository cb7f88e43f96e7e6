// One request to the daemon and what is made of its answer.
//
// Invariant: what comes out is an answer that succeeded, or an error of `errors.ts`.

import { AbortedError, type AcpdError, ArgumentError, NetworkError, ProblemError, ProtocolError } from "./errors.js";
import { type JsonRecord, readRecord } from "./records.js";
import type { ProblemDocument } from "./types.js";

/** A `fetch`, as browsers and Node.js have it. */
export type Fetch = (input: string, init: RequestInit) => Promise<Response>;

/** What a request can be narrowed by. What is `undefined` is left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** One request. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** Begins with a slash. */
  readonly path: string;
  readonly query?: Query;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is, instead of `json`. */
  readonly body?: NonNullable<RequestInit["body"]>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** A daemon, by its address, and one that may talk to it. */
export class Http {
  /** What all paths follow. */
  readonly base: string;
  readonly token: string | undefined;
  readonly fetch: Fetch;
  readonly #name: string | undefined;

  constructor(base: string, token?: string, send?: Fetch, name?: string) {
    this.base = base;
    this.token = token;
    this.#name = name;
    // A browser's `fetch` must be called as a function of its window.
    this.fetch = send ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** The answer, if it succeeded, or has one of the statuses `also`; its body is not read yet. */
  async open(call: Call, also: readonly number[] = []): Promise<Response> {
    const response = await this.#send(call);
    if (response.ok || also.includes(response.status)) return response;
    throw problemOf(response, await textOf(response, call.signal));
  }

  /** The JSON object that is the answer. */
  async json<Answer>(call: Call, also: readonly number[] = []): Promise<Answer> {
    const response = await this.open(call, also);
    const answer = readRecord(await textOf(response, call.signal));
    if (answer === undefined) {
      throw new ProtocolError(`${call.method} ${call.path}: the answer is no JSON object`, response.status);
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the document of REST says what it is
    return answer as Answer;
  }

  /** Waits for an answer that succeeded and says nothing. */
  async done(call: Call): Promise<void> {
    const response = await this.open(call);
    await textOf(response, call.signal);
  }

  async #send(call: Call): Promise<Response> {
    const { signal } = call;
    if (signal?.aborted) throw new AbortedError(signal);
    try {
      return await this.fetch(this.base + call.path + queryString(call.query), requestOf(call, this.token, this.#name));
    } catch (error) {
      throw failureOf(error, signal);
    }
  }
}

/** What a failure of the platform is. */
export function failureOf(error: unknown, signal?: AbortSignal): AcpdError {
  if (signal?.aborted) return new AbortedError(signal);
  return new NetworkError(`acpd cannot be reached: ${wordsOf(error)}`, { cause: error });
}

/** The base of all paths: the address without a slash at its end. */
export function baseOf(url: string): string {
  if (url === "" && "location" in globalThis) return url;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isHttp = parsed?.protocol === "http:" || parsed?.protocol === "https:";
  if (parsed === undefined || !isHttp || parsed.search !== "" || parsed.hash !== "" || parsed.username !== "") {
    const fix = "an address such as http://127.0.0.1:2273 is required, or nothing in a page that acpd serves";
    throw new ArgumentError("url", fix);
  }
  return parsed.href.replace(/\/+$/, "");
}

/** The token, if it can be one; a line end of the file that it was read from is not part of it. */
export function checkedToken(token: string | undefined): string | undefined {
  const read = token?.trimEnd();
  if (read === undefined || /^[!-~]+$/.test(read)) return read;
  throw new ArgumentError("token", "visible ASCII characters are required, such as `acpd token new` prints");
}

/** What a client calls itself, if the daemon takes it. */
export function checkedName(name: string | undefined): string | undefined {
  if (name === undefined || (name.length <= 40 && /^[!-~]+( [!-~]+)*$/.test(name))) return name;
  throw new ArgumentError("name", "1 to 40 visible ASCII characters and single spaces are required");
}

// Node.js wants to be told that a stream is sent before the answer is read; the types of browsers do not know it yet.
type Init = RequestInit & { duplex?: "half" };

function requestOf(call: Call, token: string | undefined, name: string | undefined): Init {
  const headers = new Headers({ Accept: "application/json", ...call.headers });
  if (name !== undefined) headers.set("Acpd-Client", name);
  if (token !== undefined) headers.set("Authorization", `Bearer ${token}`);
  const init: Init = { method: call.method, headers, cache: "no-store" };
  if (call.signal !== undefined) init.signal = call.signal;
  if (call.body instanceof ReadableStream) init.duplex = "half";
  if (call.body !== undefined) return { ...init, body: call.body };
  // Every POST has this type, with a body or without: no form of a foreign page can send it.
  if (call.method === "POST") headers.set("Content-Type", "application/json");
  if (call.json !== undefined) init.body = JSON.stringify(call.json);
  return init;
}

function queryString(query: Query | undefined): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) asked.set(name, String(value));
  }
  const text = asked.toString();
  return text === "" ? text : `?${text}`;
}

async function textOf(response: Response, signal?: AbortSignal): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw failureOf(error, signal);
  }
}

function problemOf(response: Response, text: string): AcpdError {
  const { status } = response;
  const document = readRecord(text);
  if (document === undefined || !isProblemDocument(document)) {
    return new ProtocolError(`acpd does not answer so: status ${status}`, status);
  }
  return new ProblemError({ ...document, status }, retryAfter(response.headers.get("Retry-After")));
}

// acpd gives seconds; a proxy that gives a date is not followed.
function retryAfter(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}

/** Whether it has the members that everything here builds on; the others are what the document of REST says. */
export function isProblemDocument(value: JsonRecord): value is JsonRecord & ProblemDocument {
  return typeof value["type"] === "string" && typeof value["detail"] === "string";
}

// What Node.js calls "fetch failed" has the reason in its cause.
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}
