import { describe, expect, it } from "vitest";
import { events, recorded } from "../fixtures/events";
import type { Item } from "../fold/items";
import { type LoggedEvent, Transcript } from "../fold/transcript";
import { thoughtSummary, workSummary } from "./group";
import { groupKey, type Kind, kindsOf, type Row, rows } from "./rows";
import { message, search } from "./words";

function items(all: readonly LoggedEvent[]): readonly Item[] {
  const transcript = new Transcript();
  for (const event of all) transcript.apply(event);
  return transcript.items;
}

const tool = (toolCallId: string, more: object = {}) => ({ sessionUpdate: "tool_call", toolCallId, title: `call ${toolCallId}`, kind: "read", ...more });
const thought = (text: string) => ({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
const asked = (request: number, more: object = {}) => ({ kind: "permission_requested", request, message: { params: { toolCall: { title: "May I?" }, options: [] } }, ...more });
const shown = (all: readonly Row[]): string[] => all.map((row) => (row.type === "group" ? `${row.of} of ${row.items.length}` : row.item.type));
const ALL = { kinds: new Set<Kind>(), opened: new Set<string>() };

// inspector: Session view (thoughts folded, tool calls grouped and folded)
describe("rows", () => {
  it.each([
    ["calls behind each other are one line", events(tool("a"), tool("b"), "text"), ["work of 2", "text"]],
    ["one call is itself", events(tool("a"), "text"), ["tool", "text"]],
    ["text parts groups", events(tool("a"), tool("b"), "text", tool("c"), tool("d")), ["work of 2", "text", "work of 2"]],
    ["an answered question is part of the work", events(tool("a"), asked(2, { unasked: true }), tool("b")), ["work of 3"]],
    ["one that waits is not", events(tool("a"), asked(2), tool("b")), ["tool", "question", "tool"]],
    ["a thought is folded, also alone", events(thought("hm"), "text"), ["thoughts of 1", "text"]],
    ["the terminal of a call is in it", events({ kind: "agent_request", answer: { terminalId: "t" }, message: { method: "terminal/create", params: { command: "ls" } } }, tool("a", { content: [{ type: "terminal", terminalId: "t" }] })), ["tool"]],
    ["a terminal of no call is shown", events({ kind: "terminal", terminalId: "t", output: "x" }), ["terminal"]],
  ])("%s", (_, all, expected) => expect(shown(rows(items(all), ALL))).toEqual(expected));

  it("has what is in an opened group below it", () => {
    const all = items(events(tool("a"), tool("b")));
    const [first] = all;
    if (first === undefined) throw new Error("no items");
    const open = rows(all, { ...ALL, opened: new Set([groupKey(first)]) });
    expect(shown(open)).toEqual(["work of 2", "tool", "tool"]);
    expect(open.map((row) => (row.type === "item" ? row.depth : row.isOpen))).toEqual([true, 1, 1]);
  });

  it.each<[Kind, string[]]>([
    ["messages", ["text", "content"]],
    ["thoughts", ["text"]],
    ["tools", ["tool"]],
    ["questions", ["question"]],
    ["errors", ["tool", "turn_end", "end", "note"]],
  ])("narrows to %s and keeps the order", (kind, types) => {
    const all = items(recorded("turns"));
    const left = rows(all, { ...ALL, kinds: new Set([kind]) }).flatMap((row) => (row.type === "item" ? [row.item] : []));
    for (const type of types) expect(left.map((item) => item.type)).toContain(type);
    expect(left.every((item) => kindsOf(item).includes(kind))).toBe(true);
    expect(left.map((item) => item.seq)).toEqual(left.map((item) => item.seq).toSorted((a, b) => a - b));
  });

  it("marks where a message begins", () => {
    const all = rows(items(events("one\n\n", "two and more\n\n", "three and more")), ALL);
    expect(all.map((row) => row.type === "item" && row.begins)).toEqual([true, false, false]);
  });
});

// inspector: Session view (tool calls with status, duration)
describe("summaries", () => {
  it.each([
    ["of work that goes on", [tool("a", { status: "completed" }), tool("b", { status: "in_progress" })], { kind: "2 tool calls", title: "2 read · call b", tone: "busy" }],
    ["of work that failed", [tool("a", { status: "failed" }), tool("b", { status: "completed", kind: "edit" })], { title: "1 read, 1 edit, 1 failed", tone: "bad", durationMs: 1 }],
  ])("%s", (_, all, expected) => expect(workSummary(items(events(...all)))).toMatchObject(expected));

  it("of a thought, which is the last line while it grows", () => {
    const all = events(thought("first line\nsecond"), "text");
    expect(thoughtSummary(items(all.slice(0, 1)))).toMatchObject({ kind: "Thinking", title: "second", tone: "busy" });
    expect(thoughtSummary(items(all).slice(0, 1))).toMatchObject({ kind: "Thought", title: "first line", tone: "still" });
  });
});

// inspector: Session view (search within, copy as markdown)
describe("words", () => {
  const all = items(recorded("turns"));

  it.each([
    ["done", ["text", "text"]],
    ["  ALLOW ALWAYS ", ["question", "question"]],
    ["sleep 10", ["text", "terminal", "tool"]],
    ["agent_crash", ["end"]],
    ["", []],
    ["nowhere to be found", []],
  ])("finds %s", (words, types) => expect(search(all, words).map((index) => all[index]?.type).toSorted()).toEqual(types.toSorted()));

  it("gives a message whole, though it is shown in blocks", () => {
    expect(message(items(events("# One\n\n", "two and more")), 1)).toBe("# One\n\ntwo and more");
  });
});
