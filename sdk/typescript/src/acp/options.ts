// What a connection that speaks ACP is told, and what it tells.

import type {
  ClientApp,
  ClientCapabilities,
  CreateElicitationRequest,
  Implementation,
  RequestPermissionRequest,
  SessionNotification,
} from "@agentclientprotocol/sdk";
import type { AcpdError } from "../errors.js";
import type { ConnectionState } from "../follow.js";
import type { ElicitationOutcome, PermissionMode, PermissionOutcome, TerminationInfo, Whereabouts } from "../types.js";
import type { Transport, WebSocketConstructor } from "./transport.js";

/** What a session's end is told as over ACP; `AcpdClient.getSession` has the whole record. */
export type SessionEnd = Pick<
  TerminationInfo,
  "reason" | "terminatedBy" | "message" | "exitCode" | "signal" | "stderr"
>;

/** The signal is aborted when the question is over without this answer: answered by another client, withdrawn, cut. */
export interface QuestionContext {
  readonly signal: AbortSignal;
}

/** How a connection is made and what it tells. */
export interface ConnectOptions {
  /** The name of the agent. Default: the daemon's default one. */
  readonly agent?: string;
  /** A live session of that agent: its process answers for the agent, and none is started while it lives. */
  readonly joins?: string;
  /** Default: `websocket` where there is a WebSocket, else `http`. */
  readonly transport?: Transport;
  /** A WebSocket for platforms without one of their own, such as that of `ws` for Node.js 20. */
  readonly WebSocket?: WebSocketConstructor;
  /** How the client is called; what it answers is recorded under that name. */
  readonly clientInfo?: Implementation;
  /** What the client offers agents. `elicitation.form` is added where `onElicitation` is given. */
  readonly clientCapabilities?: ClientCapabilities;
  /** Closes the connection; its sessions live on. */
  readonly signal?: AbortSignal;
  /** How long a daemon that is away is waited for, in milliseconds. Default: 10 s at first, 5 minutes later on. */
  readonly retryForMs?: number;

  /** What an agent says, as it said it. An `update` may be of a kind that the types do not know yet. */
  onUpdate?(notification: SessionNotification): void;
  /**
   * The agent asks for a permission. The first answer of any client counts. Without this function, or where it returns
   * nothing, the question stays open for others.
   */
  onPermission?(
    request: RequestPermissionRequest,
    context: QuestionContext,
  ): PermissionOutcome | undefined | Promise<PermissionOutcome | undefined>;
  /** The agent wants to be told something; as with permissions. */
  onElicitation?(
    request: CreateElicitationRequest,
    context: QuestionContext,
  ): ElicitationOutcome | undefined | Promise<ElicitationOutcome | undefined>;
  /** The whole history of a session comes now: it is being loaded, also when a connection has come back. */
  onReplay?(sessionId: string): void;
  /** A session's run has ended. */
  onSessionEnded?(sessionId: string, end: SessionEnd): void;
  /** A session cannot be gone on with after a connection has come back: it was removed, or its agent refuses. */
  onSessionLost?(sessionId: string, error: AcpdError): void;
  /** All other notifications, such as `_sandboxagent/session/stalled`. */
  onNotification?(method: string, params: unknown): void;
  /** The connection is there, is lost, is there again. */
  onConnection?(state: ConnectionState): void;
  /** Registers more handlers with the SDK, for each connection: of files and terminals, say. */
  configure?(app: ClientApp): void;
}

/** A session that is to be created over ACP. */
export type NewAcpSession = Omit<Whereabouts, "cwd" | "permissionMode"> & {
  /** Its working directory, an absolute path. */
  readonly cwd: string;
  /** Who answers permission requests. */
  readonly permissionMode?: PermissionMode;
  /** What becomes of it when its node is cut off from the fleet. */
  readonly partition?: "local" | "failover";
  /** Its title, one line of at most 200 characters. */
  readonly title?: string;
  /** Close it when a turn has ended and no prompt waits. */
  readonly closeAfterTurn?: boolean;
};
