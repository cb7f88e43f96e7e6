// Events of a session, told apart by their `kind`, and what ACP's messages in them say.
//
// Boundary: types, and looks at them. What an agent sent is recorded as it came: the looks below check that it has
// the shape without which nothing could be done with it, and no more.

import type { CreateElicitationRequest, RequestPermissionRequest, SessionUpdate } from "@agentclientprotocol/sdk";
import type * as generated from "./generated/openapi.js";
import { isRecord } from "./records.js";
import { isElicitation, isPermissionRequest, isUpdate } from "./shapes.js";

export type {
  AgentRequestEvent,
  CancelRequestedEvent,
  CreatedEvent,
  EchoEvent,
  ElicitationCompletedEvent,
  ElicitationRequestedEvent,
  ElicitationResolvedEvent,
  EndedEvent,
  FileForwardedEvent,
  FileResolvedEvent,
  NotificationEvent,
  PermissionRequestedEvent,
  PermissionResolvedEvent,
  PromptEvent,
  ReattachedEvent,
  RunStartedEvent,
  StalledEvent,
  StateChangedEvent,
  TerminalEndedEvent,
  TerminalOutputEvent,
  TranscriptEvent,
  TurnEndedEvent,
  UpdateEvent,
} from "./generated/openapi.js";

type OfKnownKind<Event> = Event extends { readonly kind: infer Kind } ? (string extends Kind ? never : Event) : never;

/** An event of a kind that this version knows. */
export type KnownEvent = OfKnownKind<generated.Event>;

/** The kinds that this version knows. */
export type KnownKind = KnownEvent["kind"];

declare const later: unique symbol;

/**
 * A kind of a later version: any string but those of `KnownKind`. It is written as a template because TypeScript tells
 * unions apart by such a type, and not by a branded string.
 */
// oxlint-disable-next-line typescript/no-unnecessary-template-expression -- see above
export type OtherKind = `${string & { readonly [later]: true }}`;

/** An event of a later version. Its members depend on its kind. */
export type OtherEvent = Omit<generated.OtherEvent, "kind"> & {
  readonly kind: OtherKind;
  readonly [member: string]: unknown;
};

/**
 * An event of a session. `switch (event.kind)` tells them apart; what is left behind all `KnownKind`s is an
 * `OtherEvent`.
 */
export type AcpdEvent = KnownEvent | OtherEvent;

/** A page of events. `nextCursor` goes on behind it and is absent on the last page. */
export type EventsPage = { readonly events: readonly AcpdEvent[]; readonly nextCursor?: string };

/** The update of ACP in an event, if it has one that names its kind. */
export function updateOf(event: AcpdEvent): SessionUpdate | undefined {
  if (event.kind !== "update" && event.kind !== "echo") return undefined;
  const { params } = event.message;
  return isRecord(params) && isUpdate(params["update"]) ? params["update"] : undefined;
}

/** What the agent asks a permission for, if the event is such a question and names its options. */
export function permissionOf(event: AcpdEvent): RequestPermissionRequest | undefined {
  if (event.kind !== "permission_requested") return undefined;
  const { params } = event.message;
  return isPermissionRequest(params) ? params : undefined;
}

/** What the agent wants to be told, if the event is such a question and has its text. */
export function elicitationOf(event: AcpdEvent): CreateElicitationRequest | undefined {
  if (event.kind !== "elicitation_requested") return undefined;
  const { params } = event.message;
  return isElicitation(params) ? params : undefined;
}
