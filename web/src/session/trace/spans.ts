/** The trace of a session: each event with what began it, how long that took, and how large it is. Incremental, as the fold. */

import { duration } from "../../ui/format";
import { get, number, object, text } from "../fold/raw";
import type { LoggedEvent } from "../fold/transcript";

/** A line of the trace. Lines are replaced, not changed, when their duration is known. */
export interface Span {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly kind: string;
  /** What of that kind: the update, the method, the title. */
  readonly what: string;
  readonly isError: boolean;
  /** Of its JSON, in UTF-16 units: bytes, but for what is not ASCII. */
  readonly size: number;
  /** The stretch in which it is drawn: a turn, or what is between two. */
  readonly stretch: number;
  /** When what it began was over, if it was; none for what only happened. */
  readonly endAt?: number;
  /** It began something that is not over. */
  readonly isOpen: boolean;
  readonly event: LoggedEvent;
}

/** From when to when a stretch lasts. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

export class Trace {
  readonly spans: Span[] = [];
  readonly stretches: Stretch[] = [];
  private readonly open = new Map<string, number>();

  /** Adds the next event. One that was added before changes nothing. */
  add(event: LoggedEvent): void {
    if (event.seq <= (this.spans.at(-1)?.seq ?? 0)) return;
    const parsed = Date.parse(event.at);
    const at = Number.isNaN(parsed) ? (this.spans.at(-1)?.at ?? 0) : parsed;
    const { begins, ends } = bounds(event);
    if (event.kind === "prompt" || this.stretches.length === 0) this.stretches.push({ from: at, to: at });
    for (const key of ends) this.close(key, at);
    if (begins !== undefined) this.open.set(begins, this.spans.length);
    const stretch = this.stretches.length - 1;
    const { from } = this.stretches[stretch] ?? { from: at };
    this.stretches[stretch] = { from, to: at };
    const size = JSON.stringify(event).length;
    this.spans.push({ seq: event.seq, at, kind: event.kind, what: what(event), isError: isError(event), size, stretch, isOpen: begins !== undefined, event });
    if (event.kind === "turn_ended" || event.kind === "ended") this.stretches.push({ from: at, to: at });
  }

  private close(key: string, at: number): void {
    for (const [each, index] of key === "*" ? [...this.open] : [[key, this.open.get(key)] as const]) {
      const span = index === undefined ? undefined : this.spans[index];
      if (index === undefined || span === undefined) continue;
      this.spans[index] = { ...span, endAt: at, isOpen: false };
      this.open.delete(each);
    }
  }
}

/** Where a span is drawn in its stretch, in parts of it: from 0 to 1. */
export function place(span: Span, stretch: Stretch): { readonly from: number; readonly width: number } {
  const length = Math.max(1, stretch.to - stretch.from);
  const part = (at: number): number => Math.min(1, Math.max(0, (at - stretch.from) / length));
  const from = part(span.at);
  const end = span.isOpen ? 1 : part(span.endAt ?? span.at);
  return { from, width: Math.max(0, end - from) };
}

function bounds(event: LoggedEvent): { readonly begins?: string; readonly ends: readonly string[] } {
  const update = get(event, "message", "params", "update");
  const call = text(get(update, "toolCallId"));
  switch (event.kind) {
    case "run_started":
      return { begins: "run", ends: [] };
    case "prompt":
      return { begins: "turn", ends: [] };
    case "turn_ended":
      return { ends: ["turn"] };
    case "ended":
      return { ends: ["*"] };
    case "permission_requested":
    case "elicitation_requested":
    case "file_forwarded":
      return { begins: `question ${number(get(event, "request"))}`, ends: [] };
    case "permission_resolved":
    case "elicitation_resolved":
    case "file_resolved":
      return { ends: [`question ${number(get(event, "request"))}`] };
    case "terminal":
      return get(event, "state") === undefined ? { ends: [] } : { ends: [`terminal ${text(get(event, "terminalId"))}`] };
    case "agent_request":
      return created(event);
    default:
      return call === undefined ? { ends: [] } : ofCall(call, update);
  }
}

function created(event: LoggedEvent): { readonly begins?: string; readonly ends: readonly string[] } {
  const id = text(get(event, "answer", "terminalId"));
  return id === undefined ? { ends: [] } : { begins: `terminal ${id}`, ends: [] };
}

function ofCall(call: string, update: unknown): { readonly begins?: string; readonly ends: readonly string[] } {
  const status = get(update, "status");
  if (status === "completed" || status === "failed") return { ends: [`tool ${call}`] };
  return get(update, "sessionUpdate") === "tool_call" ? { begins: `tool ${call}`, ends: [] } : { ends: [] };
}

function what(event: LoggedEvent): string {
  const update = get(event, "message", "params", "update");
  const params = object(get(event, "message", "params"));
  switch (event.kind) {
    case "update":
    case "echo":
      return [text(get(update, "sessionUpdate")), text(get(update, "title")), text(get(update, "status"))].filter((part) => part !== undefined).join(" · ");
    case "prompt":
      return `turn ${number(get(event, "turn")) ?? "?"}`;
    case "turn_ended":
      return text(get(event, "stopReason")) ?? text(get(event, "error", "message")) ?? "";
    case "ended":
      return text(get(event, "terminationInfo", "cause")) ?? "";
    case "terminal":
      return text(get(event, "state")) ?? "output";
    case "reattached":
      return `after ${duration(number(get(event, "gapMs")) ?? 0)}`;
    case "permission_requested":
      return text(get(params, "toolCall", "title")) ?? "";
    default:
      return text(get(event, "message", "method")) ?? text(params["message"]) ?? text(get(event, "method")) ?? "";
  }
}

function isError(event: LoggedEvent): boolean {
  if (event.kind === "ended") return get(event, "terminationInfo", "reason") === "error";
  if (event.kind === "stalled") return get(event, "goesOn") !== true;
  return (
    get(event, "error") !== undefined ||
    get(event, "answer", "error") !== undefined ||
    get(event, "message", "params", "update", "status") === "failed"
  );
}
