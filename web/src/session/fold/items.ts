/** What a transcript consists of. Items are never changed in place: a changed item is a new object at the same index. */

import type { TerminationInfo } from "acpd-client";
import type { Content, Location, ToolContent } from "./content";
import type { Json } from "./raw";

/** What every item has. `at` and other times are milliseconds since 1970; `turn` is 0 before the first turn. */
export interface Base {
  readonly key: string;
  /** The event that began it. */
  readonly seq: number;
  readonly at: number;
  readonly turn: number;
}

/** Whose words they are. */
export type Voice = "user" | "agent" | "thought";

/** A part of a message that can be shown by itself: markdown, unless it still grows. */
export interface TextItem extends Base {
  readonly type: "text";
  readonly voice: Voice;
  readonly text: string;
  /** Nothing is added to it any more. */
  readonly done: boolean;
  /** The message that it is a part of, counted over the session. */
  readonly message: number;
  /** When its last piece came. */
  readonly until: number;
  /** The client that said it, for a user's message. */
  readonly by?: string;
}

/** What is in a message beside text. */
export interface ContentItem extends Base {
  readonly type: "content";
  readonly voice: Voice;
  readonly content: Content;
  readonly message: number;
}

export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";

/** A tool call, as far as the agent has told of it. */
export interface ToolItem extends Base {
  readonly type: "tool";
  readonly callId: string;
  readonly title: string;
  readonly kind: string;
  readonly name?: string;
  readonly status: ToolStatus;
  readonly content: readonly ToolContent[];
  readonly locations: readonly Location[];
  readonly rawInput?: unknown;
  readonly rawOutput?: unknown;
  /** When it was over, if it is. */
  readonly endAt?: number;
  /** Its turn or its run ended, and it was not over. */
  readonly left?: boolean;
  /** The question whose answer it waited for. */
  readonly question?: number;
}

/** A command that acpd runs for the agent. */
export interface TerminalItem extends Base {
  readonly type: "terminal";
  readonly terminalId: string;
  readonly command: string;
  readonly output: string;
  /** Bytes that are missing before the output. */
  readonly dropped: number;
  /** `running`, or how it ended: `finished`, `killed`, `timed_out`. */
  readonly state: string;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly endAt?: number;
  /** The tool call that shows it. */
  readonly callId?: string;
}

export interface PlanEntry {
  readonly content: string;
  readonly status: string;
  readonly priority: string;
}

/** The plan of a turn, as it was last told. */
export interface PlanItem extends Base {
  readonly type: "plan";
  readonly entries: readonly PlanEntry[];
}

/** What answered: a client, the session's permission mode, or an event that made an answer needless. */
export type AnsweredBy =
  | { readonly kind: "client" | "mode" | "cause"; readonly name: string }
  | { readonly kind: "unknown" };

export interface Option {
  readonly optionId: string;
  readonly name: string;
  readonly kind: string;
}

export interface Answer {
  readonly at: number;
  readonly by: AnsweredBy;
  /** `selected`, `cancelled`, `accept`, `decline`, `cancel`, or what a later version says. */
  readonly outcome: string;
  /** The option that was chosen. */
  readonly option?: Option;
  /** What was filled in. */
  readonly content?: Json;
}

/** What the agent asks. */
export interface QuestionItem extends Base {
  readonly type: "question";
  /** Its number, which an answer names. */
  readonly request: number;
  readonly form: "permission" | "fields" | "url" | "file" | "other";
  readonly title: string;
  readonly options: readonly Option[];
  /** The parameters of the request, raw. */
  readonly params: Json;
  /** It was answered at once, without asking any client. */
  readonly unasked: boolean;
  readonly answer?: Answer;
}

/** The error that answered a prompt. */
export interface Failure {
  readonly code?: number;
  readonly message: string;
  /** What its data say that the message does not. */
  readonly reason?: string;
}

export interface TurnEndItem extends Base {
  readonly type: "turn_end";
  readonly stopReason?: string;
  readonly error?: Failure;
  readonly usage?: Json;
  readonly durationMs: number;
  readonly ignoredCancel: boolean;
}

export interface RunItem extends Base {
  readonly type: "run";
  readonly run: number;
  readonly agent: string;
  readonly pid?: number;
  readonly by?: string;
  /** The method by which the agent went on with the session. */
  readonly method?: string;
  /** What the agent was told of the history, which it could not take up itself. */
  readonly transcript?: Json;
}

export interface EndItem extends Base {
  readonly type: "end";
  readonly run: number;
  readonly info: TerminationInfo;
}

export interface StallItem extends Base {
  readonly type: "stall";
  readonly silentMs: number;
  /** When the agent said something again. */
  readonly goesOnAt?: number;
}

/** Anything else worth a line. Equal ones that follow each other are one, with a count. */
export interface NoteItem extends Base {
  readonly type: "note";
  readonly level: "quiet" | "info" | "warning" | "error";
  readonly text: string;
  readonly detail?: string;
  readonly count: number;
}

export type Item =
  | TextItem
  | ContentItem
  | ToolItem
  | TerminalItem
  | PlanItem
  | QuestionItem
  | TurnEndItem
  | RunItem
  | EndItem
  | StallItem
  | NoteItem;

/** Whether a question still waits for an answer, of any client or of the one that it is put to. */
export function isOpen(item: QuestionItem): boolean {
  return item.answer === undefined && !item.unasked;
}
