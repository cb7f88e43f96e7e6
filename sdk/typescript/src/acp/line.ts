// One connection of ACP that is initialized.

import type {
  ClientConnection,
  ClientContext,
  InitializeRequest,
  InitializeResponse,
} from "@agentclientprotocol/sdk";
import {
  AbortedError,
  AcpdError,
  AgentError,
  isTransient,
  NetworkError,
  ProblemError,
  ProtocolError,
} from "../errors.js";
import { type Http, isProblemDocument } from "../http.js";
import { isRecord } from "../records.js";
import { dialogue } from "./dialogue.js";
import type { Line } from "./link.js";
import type { ConnectOptions } from "./options.js";
import { type HttpWitness, openStream, platformWebSocket, type Transport } from "./transport.js";

type Sdk = typeof import("@agentclientprotocol/sdk");

/** What a line hears of its sessions. */
export interface Sessions {
  has(sessionId: string): boolean;
  delete(sessionId: string): unknown;
}

export class AcpLine implements Line {
  readonly #sdk: Sdk;
  readonly #connection: ClientConnection;
  /** What acpd and the agent said of themselves. */
  readonly initialized: InitializeResponse;

  private constructor(sdk: Sdk, connection: ClientConnection, initialized: InitializeResponse) {
    this.#sdk = sdk;
    this.#connection = connection;
    this.initialized = initialized;
  }

  /** Connects and initializes. Fails with an error of this package. */
  static async open(
    http: Http,
    options: ConnectOptions,
    sessions: Sessions,
    signal: AbortSignal,
  ): Promise<AcpLine> {
    // Loaded when it is needed: it is most of what a page would have to load.
    const sdk = await import("@agentclientprotocol/sdk");
    const stop = new AbortController();
    let refusal: AgentError | undefined;
    const witness: HttpWitness = {
      ended: (sessionId) => {
        if (sessionId === undefined || sessions.has(sessionId)) stop.abort();
      },
      refused: (error) => (refusal = error),
    };
    const stream = await openStream(transportOf(options), { http, agent: options.agent }, options.WebSocket, witness);
    const app = dialogue(sdk, options, (sessionId) => sessions.delete(sessionId));
    const connection = app.connect(stream);
    const abort = (): void => connection.close();
    for (const cause of [stop.signal, signal]) cause.addEventListener("abort", abort);
    void connection.closed.then(() => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
    try {
      const initialized = await connection.agent.request("initialize", introduction(sdk, options));
      return new AcpLine(sdk, connection, initialized);
    } catch (error) {
      const failure = refusal ?? failureOf(sdk, connection, error);
      connection.close();
      if (signal.aborted) throw new AbortedError(signal);
      throw failure === "lost" ? new NetworkError("the connection was lost before it began", { cause: error }) : failure;
    }
  }

  get agent(): ClientContext {
    return this.#connection.agent;
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  close(): void {
    this.#connection.close();
  }

  failure(error: unknown): AcpdError | "lost" {
    return failureOf(this.#sdk, this.#connection, error);
  }
}

/** WebSocket where there is one: browsers open few HTTP connections at a time to one place. */
function transportOf({ transport, WebSocket }: ConnectOptions): Transport {
  return transport ?? (WebSocket !== undefined || platformWebSocket() !== undefined ? "websocket" : "http");
}

function introduction(sdk: Sdk, options: ConnectOptions): InitializeRequest {
  const { clientInfo = { name: "acpd-client", version: VERSION }, clientCapabilities = {} } = options;
  const elicitation = { ...clientCapabilities.elicitation, form: {} };
  const offered = options.onElicitation === undefined ? clientCapabilities : { ...clientCapabilities, elicitation };
  const joining = options.joins === undefined ? {} : { _meta: { [META]: { joins: options.joins } } };
  return { protocolVersion: sdk.PROTOCOL_VERSION, clientInfo, clientCapabilities: offered, ...joining };
}

/** Where acpd's own members are in ACP's messages. */
export const META = "sandboxagent.dev";
/** The version of this package. */
export const VERSION = "0.1.0";

function failureOf(sdk: Sdk, connection: ClientConnection, error: unknown): AcpdError | "lost" {
  if (connection.signal.aborted || !(error instanceof sdk.RequestError)) return "lost";
  const { code, message, data } = error;
  // Over HTTP the SDK answers some requests itself, in the place of acpd, when they or their answers could not travel.
  if (code === -32603 && message === "ACP session SSE stream closed") return "lost";
  const refusal = code === -32603 ? problemIn(data) : undefined;
  if (refusal !== undefined) return isTransient(refusal) ? "lost" : refusal;
  return new AgentError(message, code, data, { cause: error });
}

// What acpd says to a POST that it does not take.
function problemIn(data: unknown): ProblemError | ProtocolError | undefined {
  if (!isRecord(data) || typeof data["status"] !== "number") return undefined;
  const { status, body } = data;
  return isRecord(body) && isProblemDocument(body) ? new ProblemError(body) : new ProtocolError(`status ${status}`, status);
}
