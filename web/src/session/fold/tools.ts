/** Tool calls: a call is told of in pieces, each of which replaces what it names. */

import { locations, toolContent } from "./content";
import type { Draft, When } from "./draft";
import type { ToolItem, ToolStatus } from "./items";
import { defined, type Json, text } from "./raw";

const STATUSES: readonly string[] = ["pending", "in_progress", "completed", "failed"];

/** Writes tool calls into a draft. */
export class Tools {
  private readonly byId = new Map<string, number>();
  private readonly open = new Set<number>();

  constructor(private readonly draft: Draft) {}

  /** The item of a call, if it was told of. */
  find(callId: string): ToolItem | undefined {
    const item = this.draft.items[this.byId.get(callId) ?? -1];
    return item?.type === "tool" ? item : undefined;
  }

  /** Takes over a `tool_call` or a `tool_call_update`; gives the item as it is now. */
  tell(when: When, update: Json, isNew: boolean): ToolItem {
    const callId = text(update["toolCallId"]) ?? "";
    const known = this.find(callId);
    // Some agents count their calls anew in a later turn: a call that was over is not begun again.
    const isOther = known !== undefined && isNew && known.turn !== when.turn && known.endAt !== undefined;
    return known === undefined || isOther ? this.begin(when, callId, update) : this.change(when, known, update);
  }

  /** Says with which question a call waits. */
  waits(callId: string, question: number): void {
    this.patch(callId, { question });
  }

  /** A terminal of the call has changed, which is a part of what is shown of it. */
  touch(callId: string, terminalId: string): void {
    const content = this.find(callId)?.content.map((part) => (part.type === "terminal" && part.terminalId === terminalId ? { ...part } : part));
    if (content !== undefined) this.patch(callId, { content });
  }

  /** The turn or the run ended: what is not over stays as it is. */
  leave(at: number): void {
    for (const index of this.open) {
      const item = this.draft.items[index];
      if (item?.type === "tool") this.draft.put(index, { ...item, left: true, endAt: at });
    }
    this.open.clear();
  }

  /** The titles of the calls that are not over. */
  pending(): readonly string[] {
    return [...this.open].flatMap((index) => {
      const item = this.draft.items[index];
      return item?.type === "tool" ? [item.title] : [];
    });
  }

  private begin(when: When, callId: string, update: Json): ToolItem {
    const { seq, at, turn } = when;
    const first: ToolItem = {
      key: this.draft.key(when), seq, at, turn, type: "tool", callId,
      title: callId, kind: "other", status: "pending", content: [], locations: [],
    };
    const item = merged(first, update, at);
    const index = this.draft.add(item);
    this.byId.set(callId, index);
    if (item.endAt === undefined) this.open.add(index);
    return item;
  }

  private change(when: When, known: ToolItem, update: Json): ToolItem {
    const index = this.byId.get(known.callId) ?? -1;
    const item = merged(known, update, when.at);
    this.draft.put(index, item);
    if (item.endAt === undefined) this.open.add(index);
    else this.open.delete(index);
    return item;
  }

  private patch(callId: string, members: Partial<ToolItem>): void {
    const known = this.find(callId);
    if (known !== undefined) this.draft.put(this.byId.get(callId) ?? -1, { ...known, ...members });
  }
}

function merged(known: ToolItem, update: Json, at: number): ToolItem {
  const status = statusOf(update["status"]) ?? known.status;
  const isOver = status === "completed" || status === "failed";
  const { left: _, endAt, ...stays } = known;
  const told = defined<Partial<ToolItem>>({
    title: text(update["title"]),
    kind: text(update["kind"]),
    name: text(update["name"]),
    content: Array.isArray(update["content"]) ? toolContent(update["content"]) : undefined,
    locations: Array.isArray(update["locations"]) ? locations(update["locations"]) : undefined,
    rawInput: update["rawInput"],
    rawOutput: update["rawOutput"],
  });
  return { ...stays, ...told, status, ...(isOver ? { endAt: endAt ?? at } : {}) };
}

function statusOf(value: unknown): ToolStatus | undefined {
  return typeof value === "string" && STATUSES.includes(value) ? (value as ToolStatus) : undefined;
}
