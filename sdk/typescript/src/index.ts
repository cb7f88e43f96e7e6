// What the package offers.

export type { AcpCallOptions, AcpConnection } from "./acp/connection.js";
export type { ConnectOptions, NewAcpSession, QuestionContext, SessionEnd } from "./acp/options.js";
export type { Transport, WebSocketConstructor } from "./acp/transport.js";
export {
  AcpdClient,
  type AcpdClientOptions,
  type CallOptions,
  type CancelOptions,
  type EndListener,
  type PageOptions,
  type RepeatOptions,
} from "./client.js";
export {
  AbortedError,
  AcpdError,
  AgentError,
  ArgumentError,
  isProblem,
  NetworkError,
  ProblemError,
  type ProblemCode,
  ProtocolError,
  SessionRemovedError,
} from "./errors.js";
export * from "./events.js";
export type { ConnectionState, EventsEnd, FollowOptions } from "./follow.js";
export type { Fetch } from "./http.js";
export type * from "./types.js";
