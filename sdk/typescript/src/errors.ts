// Every way in which something here can fail, one class each, told apart by `kind` or by `instanceof`.

import { isRecord } from "./records.js";
import type { ProblemDocument, ProblemType, TerminationInfo } from "./types.js";

type CodeOf<Type> = Type extends `urn:sandbox-agent:error:${infer Code}` ? Code : never;

/** The last part of a problem's `type`, such as `session_not_found`. */
export type ProblemCode = CodeOf<ProblemType>;

/** What all errors of this package have in common. */
export abstract class AcpdError extends Error {
  /** Which class it is; for a `switch`. */
  abstract readonly kind: "network" | "problem" | "protocol" | "aborted" | "argument" | "removed" | "agent";
  // Written down in each class: what is minified has other names.
  abstract override readonly name: string;
}

/** The daemon could not be reached, or the connection was cut. `cause` is what the platform said. */
export class NetworkError extends AcpdError {
  readonly kind = "network";
  override readonly name = "NetworkError";
}

/** The daemon answered with a problem document. */
export class ProblemError extends AcpdError {
  readonly kind = "problem";
  override readonly name = "ProblemError";
  /** The last part of the document's `type`. A later daemon may have more of them. */
  readonly code: ProblemCode | (string & {});
  /** The HTTP status. */
  readonly status: number;
  /** How the agent's process ended, where that is the reason. */
  readonly terminationInfo: TerminationInfo | undefined;

  constructor(
    /** The whole document. */
    readonly problem: ProblemDocument,
    /** How long the daemon asks to wait before the next try, in milliseconds. */
    readonly retryAfterMs?: number,
  ) {
    super(problem.detail);
    this.code = problem.type.slice(problem.type.lastIndexOf(":") + 1);
    this.status = problem.status;
    this.terminationInfo = problem.terminationInfo;
  }

  /** Whether it is one of these problems. */
  is(...codes: ProblemCode[]): boolean {
    return codes.some((code) => code === this.code);
  }
}

/** An answer that is not what acpd's documents say: another server, a proxy in between, or a defect. */
export class ProtocolError extends AcpdError {
  readonly kind = "protocol";
  override readonly name = "ProtocolError";

  constructor(
    message: string,
    /** The HTTP status, where there was one. */
    readonly status?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The caller's signal was aborted. `cause` is its reason. Its `name` is that of the platform's own error. */
export class AbortedError extends AcpdError {
  readonly kind = "aborted";
  override readonly name = "AbortError";

  constructor(signal: AbortSignal) {
    super("aborted by the caller", { cause: signal.reason });
  }
}

/** An argument that cannot be right; nothing was sent. */
export class ArgumentError extends AcpdError {
  readonly kind = "argument";
  override readonly name = "ArgumentError";

  constructor(
    /** Which argument. */
    readonly argument: string,
    fix: string,
  ) {
    super(`${argument}: ${fix}`);
  }
}

/** The session was removed with its history while something waited for it. */
export class SessionRemovedError extends AcpdError {
  readonly kind = "removed";
  override readonly name = "SessionRemovedError";

  constructor(readonly sessionId: string) {
    super(`session ${sessionId} was removed`);
  }
}

/** The agent, or acpd for it, answered a request of ACP with an error. */
export class AgentError extends AcpdError {
  readonly kind = "agent";
  override readonly name = "AgentError";
  /** How the agent's process ended, where that is the reason. */
  readonly terminationInfo: TerminationInfo | undefined;

  constructor(
    message: string,
    /** The code, as in JSON-RPC and ACP. */
    readonly code: number,
    /** What else was said. */
    readonly data: unknown,
    options?: ErrorOptions,
  ) {
    super(message, options);
    const info = isRecord(data) ? data["terminationInfo"] : undefined;
    this.terminationInfo = isTerminationInfo(info) ? info : undefined;
  }
}

function isTerminationInfo(value: unknown): value is TerminationInfo {
  return isRecord(value) && typeof value["reason"] === "string";
}

/** Whether an error is a problem of one of these codes. */
export function isProblem(error: unknown, ...codes: ProblemCode[]): error is ProblemError {
  return error instanceof ProblemError && error.is(...codes);
}

/** Whether the same request can succeed a little later without anything being changed. */
export function isTransient(error: AcpdError): boolean {
  if (error instanceof NetworkError) return true;
  if (error instanceof ProblemError) return isTransientProblem(error);
  return error instanceof ProtocolError && isGatewayStatus(error.status);
}

function isTransientProblem(error: ProblemError): boolean {
  return error.is("shutting_down", "busy", "request_timeout", "too_many_connections", "too_many_requests");
}

// What a proxy says while the daemon behind it is away.
function isGatewayStatus(status: number | undefined): boolean {
  return status === 502 || status === 503 || status === 504;
}
