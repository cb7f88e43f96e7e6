/** Commands that acpd runs for the agent: what they put out, and how they ended. */

import type { Draft, When } from "./draft";
import type { TerminalItem } from "./items";
import { defined, get, type Json, list, number, text } from "./raw";

/** Of a longer output only the end is kept, in units of UTF-16; the log has all of it. */
const KEPT = 1 << 20;

/** Writes terminals into a draft. */
export class Terminals {
  private readonly byId = new Map<string, number>();

  constructor(private readonly draft: Draft) {}

  find(terminalId: string): TerminalItem | undefined {
    const item = this.draft.items[this.byId.get(terminalId) ?? -1];
    return item?.type === "terminal" ? item : undefined;
  }

  /** A command was started by a request with these parameters. */
  start(when: When, terminalId: string, params: unknown): void {
    if (this.byId.has(terminalId)) return;
    const words = [text(get(params, "command")) ?? "", ...list(get(params, "args")).flatMap((each) => text(each) ?? [])];
    this.begin(when, terminalId, words.map(quoted).join(" "));
  }

  /** A tool call shows it. */
  claim(terminalId: string, callId: string): void {
    const known = this.find(terminalId);
    if (known !== undefined && known.callId !== callId) this.put({ ...known, callId });
  }

  /** Takes over a `terminal` event; gives the item as it is now. */
  tell(when: When, event: Json): TerminalItem | undefined {
    const terminalId = text(event["terminalId"]) ?? "";
    const known = this.find(terminalId) ?? this.begin(when, terminalId, "");
    const state = text(event["state"]);
    const item = state === undefined ? withOutput(known, event) : withEnd(known, event, state, when.at);
    this.put(item);
    return item;
  }

  private begin(when: When, terminalId: string, command: string): TerminalItem {
    const { seq, at, turn } = when;
    const key = this.draft.key(when);
    const item: TerminalItem = { key, seq, at, turn, type: "terminal", terminalId, command, output: "", dropped: 0, state: "running" };
    this.byId.set(terminalId, this.draft.add(item));
    return item;
  }

  private put(item: TerminalItem): void {
    this.draft.put(this.byId.get(item.terminalId) ?? -1, item);
  }
}

function withOutput(known: TerminalItem, event: Json): TerminalItem {
  const missing = number(event["droppedBytes"]) ?? 0;
  const all = (missing > 0 ? "" : known.output) + (text(event["output"]) ?? "");
  const over = Math.max(0, all.length - KEPT);
  const lost = missing > 0 ? missing + known.output.length : 0;
  return { ...known, output: over > 0 ? all.slice(over) : all, dropped: known.dropped + lost + over };
}

function withEnd(known: TerminalItem, event: Json, state: string, at: number): TerminalItem {
  const final = text(get(event, "finalOutput", "text"));
  const isCut = get(event, "finalOutput", "truncated") === true;
  // What was streamed is longer than the final output, which is cut to a limit.
  const output = final !== undefined && (known.output === "" || !isCut) ? final : known.output;
  const members = defined<Partial<TerminalItem>>({
    exitCode: number(get(event, "exitStatus", "exitCode")),
    signal: text(get(event, "exitStatus", "signal")),
  });
  const dropped = !isCut ? 0 : Math.max(known.dropped, 1);
  return { ...known, ...members, state, output, dropped, endAt: at };
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
