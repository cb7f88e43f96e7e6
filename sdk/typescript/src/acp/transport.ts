// A stream of ACP's messages to the daemon, over WebSocket or HTTP, by the official SDK.

import type { Stream } from "@agentclientprotocol/sdk";
import type { WebSocketConstructor } from "@agentclientprotocol/sdk/experimental/ws-client";
import { AgentError, ArgumentError } from "../errors.js";
import type { Fetch, Http } from "../http.js";
import { isRecord, readRecord } from "../records.js";

export type { WebSocketConstructor };

/** How ACP's messages travel. */
export type Transport = "websocket" | "http";

/** Where they travel to. */
export interface Endpoint {
  readonly http: Http;
  /** The agent of the connection; absent: the daemon's default. */
  readonly agent: string | undefined;
}

/** What is seen of HTTP that the SDK does not tell. */
export interface HttpWitness {
  /** acpd has ended a stream of events: of that session, or of the connection. */
  ended(sessionId: string | undefined): void;
  /** acpd refuses to begin a connection, and why. */
  refused(error: AgentError): void;
}

/** Opens a stream. */
export async function openStream(
  transport: Transport,
  endpoint: Endpoint,
  WebSocket: WebSocketConstructor | undefined,
  witness: HttpWitness,
): Promise<Stream> {
  if (transport === "websocket") return openWebSocket(endpoint, WebSocket);
  const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
  const headers = endpoint.http.token === undefined ? {} : { Authorization: `Bearer ${endpoint.http.token}` };
  const send = watched(endpoint.http.fetch, witness);
  return createHttpStream(address(endpoint).href, { fetch: send, headers, cookies: "omit" });
}

async function openWebSocket(endpoint: Endpoint, WebSocket: WebSocketConstructor | undefined): Promise<Stream> {
  const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
  const url = address(endpoint);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  // A browser's WebSocket can set no header. acpd agrees to the other protocol: a token is not repeated.
  const protocols = endpoint.http.token === undefined ? ["acp"] : ["acp", `acpd.bearer.${endpoint.http.token}`];
  const platform = WebSocket ?? platformWebSocket();
  if (platform === undefined) throw new ArgumentError("WebSocket", "this platform has none; give one, or use http");
  return createWebSocketStream(url.href, { protocols, cookies: "omit", WebSocket: heard(platform) });
}

/** The platform's WebSocket, if it has one. */
export function platformWebSocket(): WebSocketConstructor | undefined {
  return typeof globalThis.WebSocket === "function" ? globalThis.WebSocket : undefined;
}

function address({ http, agent }: Endpoint): URL {
  const url = new URL(`${http.base === "" ? globalThis.location.origin : http.base}/acp`);
  if (agent !== undefined) url.searchParams.set("agent", agent);
  return url;
}

// A socket that is closed while it is being opened fails once more after the SDK has stopped to listen, which ends a
// program on Node.js.
function heard(WebSocket: WebSocketConstructor): WebSocketConstructor {
  return new Proxy(WebSocket, {
    construct(Socket, [url, protocols]: [string, string[]]) {
      const socket = new Socket(url, protocols);
      socket.addEventListener?.("error", () => undefined);
      return socket;
    },
  });
}

// The SDK takes no notice of a session's stream that ends, and drops the answer to an `initialize` that is an error.
function watched(send: Fetch, witness: HttpWitness): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const response = await send(input instanceof Request ? input.url : input.toString(), init);
    const { status, headers, body } = response;
    const type = headers.get("Content-Type") ?? "";
    if (type.startsWith("application/json")) await lookForRefusal(response.clone(), witness);
    if (!type.startsWith("text/event-stream") || body === null) return response;
    const sessionId = new Headers(init.headers).get("Acp-Session-Id") ?? undefined;
    const end = new TransformStream<Uint8Array, Uint8Array>({ flush: () => witness.ended(sessionId) });
    return new Response(body.pipeThrough(end), { status, headers });
  };
}

async function lookForRefusal(response: Response, witness: HttpWitness): Promise<void> {
  const error = readRecord(await response.text())?.["error"];
  if (!isRecord(error)) return;
  const { code, message, data } = error;
  if (typeof code === "number" && typeof message === "string") witness.refused(new AgentError(message, code, data));
}
