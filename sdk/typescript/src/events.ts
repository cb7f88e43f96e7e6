// Events of a session, told apart by their `kind`, and what ACP's messages in them say.
//
// Boundary: types, and looks at them. What an agent sent is recorded as it came: the looks below check that it has
// the shape without which nothing could be done with it, and no more.

import type { CreateElicitationRequest, PermissionOption, SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import type * as generated from "./generated/openapi.js";
import { isRecord, type JsonRecord } from "./records.js";
import { isElicitation, isOption, isToolCall, isUpdate } from "./shapes.js";

export type { PermissionOption, ToolCallUpdate };

export type {
  AgentRequestEvent,
  CancelRequestedEvent,
  CreatedEvent,
  EchoEvent,
  ElicitationCompletedEvent,
  ElicitationResolvedEvent,
  EndedEvent,
  FileForwardedEvent,
  FileResolvedEvent,
  NotificationEvent,
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

/** A permission that an agent asks for. */
export interface PermissionQuestion {
  /** What it is for; `undefined` where the agent did not say so in a way that ACP knows. */
  readonly toolCall: ToolCallUpdate | undefined;
  /** What can be answered; `kind` says what each means: `allow_once`, `allow_always`, `reject_once`, `reject_always`. */
  readonly options: readonly PermissionOption[];
}

/** What an agent wants to be told, in words or by a form. */
export interface FormQuestion {
  readonly message: string;
  /** The request, with the schema of a form; `undefined` where it has no message. */
  readonly request: CreateElicitationRequest | undefined;
}

/** The agent asks for a permission. */
export type PermissionRequestedEvent = generated.PermissionRequestedEvent & { readonly question: PermissionQuestion };

/** The agent asks for words or data. */
export type ElicitationRequestedEvent = generated.ElicitationRequestedEvent & { readonly question: FormQuestion };

type OfKnownKind<Event> = Event extends { readonly kind: infer Kind } ? (string extends Kind ? never : Asking<Event>) : never;

type Asking<Event> = Event extends generated.PermissionRequestedEvent
  ? PermissionRequestedEvent
  : Event extends generated.ElicitationRequestedEvent
    ? ElicitationRequestedEvent
    : Event;

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

/**
 * Gives an event that asks something its `question`, read from the raw request in it. It is no part of the event's JSON, which stays
 * as it was recorded.
 */
export function withQuestion<Event extends { readonly kind: string }>(event: Event): Event {
  const read = event.kind === "permission_requested" ? permission : event.kind === "elicitation_requested" ? form : undefined;
  if (read === undefined) return event;
  const message: unknown = "message" in event ? event.message : undefined;
  const params = isRecord(message) && isRecord(message["params"]) ? message["params"] : {};
  return Object.defineProperty(event, "question", { value: read(params), configurable: true });
}

function permission(params: JsonRecord): PermissionQuestion {
  const { toolCall, options } = params;
  return { toolCall: isToolCall(toolCall) ? toolCall : undefined, options: Array.isArray(options) ? options.filter(isOption) : [] };
}

function form(params: JsonRecord): FormQuestion {
  return { message: typeof params["message"] === "string" ? params["message"] : "", request: isElicitation(params) ? params : undefined };
}
