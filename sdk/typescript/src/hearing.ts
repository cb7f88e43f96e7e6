// What a message of a session's event stream means to a reader that has all events up to a number.
//
// Invariant: decides only. No event is passed over and none is given twice.

import { type AcpdError, isTransient, NetworkError, ProblemError, ProtocolError } from "./errors.js";
import { type AcpdEvent, withQuestion } from "./events.js";
import { type JsonRecord, readRecord } from "./records.js";
import type { SseMessage } from "./sse.js";
import type { SessionInfo } from "./types.js";

/** Why acpd has closed a stream before the end of the session's run. */
export interface Closed {
  /** `stalled`, `shutdown`, `deleted`, `revoked` and so on. */
  readonly reason: string;
  readonly detail: string;
  /** When to come back, in milliseconds, if it says so. */
  readonly retryMs: number | undefined;
}

/** What a message was. */
export type Heard =
  | { readonly what: "event"; readonly event: AcpdEvent }
  | { readonly what: "repeat" }
  | { readonly what: "closed"; readonly closed: Closed };

/** What to do when a stream has ended or did not come about. */
export type Next =
  /** All events of a session that has ended were given. */
  | { readonly next: "ended" }
  /** The session was removed: there is nothing more to read. */
  | { readonly next: "removed" }
  /** The run may be over: the session says whether it is. */
  | { readonly next: "look" }
  /** Open it again behind the last event, `afterMs` milliseconds from now if that is told. */
  | { readonly next: "again"; readonly error: AcpdError; readonly afterMs?: number }
  /** Trying again would not help. */
  | { readonly next: "fail"; readonly error: AcpdError };

/** What a message means behind the event `after`. Throws a `ProtocolError` for one that cannot be. */
export function hear(message: SseMessage, after: number): Heard {
  const value = readRecord(message.data);
  if (message.event === "closed") return { what: "closed", closed: closedOf(value ?? {}) };
  if (value === undefined || !isEvent(value)) {
    throw new ProtocolError(`what came behind event ${after} is no event: it has no number or no kind`);
  }
  if (value.seq <= after) return { what: "repeat" };
  if (value.seq !== after + 1) throw new ProtocolError(`event ${value.seq} came behind event ${after}`);
  return { what: "event", event: withQuestion(value) };
}

/** What a `closed` leads to. */
export function afterClosed({ reason, detail, retryMs }: Closed): Next {
  const words = `acpd closed the stream: ${reason}: ${detail}`;
  if (reason === "deleted") return { next: "removed" };
  if (reason === "history_unreadable") return { next: "fail", error: new ProtocolError(words) };
  // All others, unknown ones too: what is wrong for good, such as a revoked token, is the answer to the next request.
  const again = { next: "again", error: new NetworkError(words) } as const;
  return retryMs === undefined ? again : { ...again, afterMs: retryMs };
}

/** What the session leads to when a stream behind which nothing was said has ended: a proxy can end one, too. */
export function afterLook(session: Pick<SessionInfo, "ended" | "eventCount">, after: number): Next {
  if (session.ended && session.eventCount <= after) return { next: "ended" };
  return { next: "again", error: new NetworkError("the stream ended before the session's run did") };
}

/** What a failure leads to. `found`: the session was there before. */
export function afterFailure(error: AcpdError, found: boolean): Next {
  const isGone = error instanceof ProblemError && error.is("session_not_found");
  if (found && isGone) return { next: "removed" };
  return isTransient(error) ? { next: "again", error } : { next: "fail", error };
}

function closedOf(value: JsonRecord): Closed {
  const { reason, detail, retryMs } = value;
  return {
    reason: typeof reason === "string" ? reason : "unknown",
    detail: typeof detail === "string" ? detail : "",
    retryMs: typeof retryMs === "number" && retryMs >= 0 ? retryMs : undefined,
  };
}

function isEvent(value: JsonRecord): value is JsonRecord & AcpdEvent {
  return Number.isSafeInteger(value["seq"]) && typeof value["kind"] === "string";
}
