import { describe, expect, it } from "vitest";
import { events, recorded } from "../fixtures/events";
import type { Item } from "./items";
import { type LoggedEvent, Transcript } from "./transcript";

function folded(all: readonly LoggedEvent[]): Transcript {
  const transcript = new Transcript();
  for (const event of all) transcript.apply(event);
  return transcript;
}

function of<K extends Item["type"]>(transcript: Transcript, type: K): Extract<Item, { type: K }>[] {
  return transcript.items.filter((item): item is Extract<Item, { type: K }> => item.type === type);
}

// inspector: Session view (transcript, by real sessions of the example agent)
describe("a recorded session", () => {
  const all = recorded("turns");
  const transcript = folded(all);

  it("is told in its order", () => {
    const first = transcript.items.filter((item) => item.turn <= 1);
    const types = first.map((item) => (item.type === "text" ? item.voice : item.type));
    expect(types).toEqual(["run", "user", "thought", "plan", "tool", "tool", "question", "agent", "note", "turn_end"]);
  });

  it("has tool calls with kind, status, content, places and input", () => {
    const [read, change] = of(transcript, "tool");
    expect(read).toMatchObject({ title: "Read the file", kind: "other", status: "completed", rawOutput: { ok: true } });
    expect(read?.content).toEqual([{ type: "content", content: { type: "text", text: "did Read the file" } }]);
    expect(change).toMatchObject({ kind: "edit", status: "completed", rawInput: { title: "Change the file" } });
    expect(change?.locations).toEqual([{ path: "/srv/example/example.txt", line: 1 }]);
    expect(change?.endAt).toBeGreaterThanOrEqual(change?.at ?? Infinity);
  });

  it("has questions with every option, and who answered what", () => {
    const [permission, form, rejected] = of(transcript, "question");
    expect(permission?.options.map((each) => each.kind)).toEqual(["allow_once", "allow_always", "reject_once", "reject_always"]);
    expect(permission?.answer).toMatchObject({ by: { kind: "client", name: "REST" }, outcome: "selected", option: { name: "Allow once" } });
    expect(form).toMatchObject({ form: "fields", title: "What is your name?", answer: { outcome: "accept", content: { answer: "x" } } });
    expect(rejected?.answer?.option?.kind).toBe("reject_once");
    expect(transcript.openQuestions()).toEqual([]);
  });

  it("has terminals with output and exit status, shown by their tool calls", () => {
    const [failed, timed] = of(transcript, "terminal");
    expect(failed).toMatchObject({ command: "sh -c 'echo out; echo err >&2; exit 3'", output: "out\nerr\n", exitCode: 3, state: "finished" });
    expect(timed).toMatchObject({ command: "sleep 10", signal: "SIGTERM", state: "killed" });
    expect(of(transcript, "tool").some((tool) => tool.callId === failed?.callId)).toBe(true);
  });

  it("has the ends of turns", () => {
    const ends = of(transcript, "turn_end");
    expect(ends[0]).toMatchObject({ stopReason: "end_turn", usage: { inputTokens: 11, outputTokens: 7 } });
    expect(ends.map((end) => end.error?.message ?? end.stopReason)).toEqual([
      ...Array.from({ length: 6 }, () => "end_turn"), "cancelled", "bad arguments of exit: usage is `exit N`",
    ]);
  });

  it("has its runs, what was pending when they ended, and the records", () => {
    expect(transcript.runs.map((run) => run.info?.cause)).toEqual(["client_close", "agent_crash"]);
    expect(transcript.runs.map((run) => run.pending)).toEqual([[], ["turn 9"]]);
    expect(of(transcript, "run")[1]).toMatchObject({ run: 2, agent: "Example 0.1.0", method: "session/resume", by: "REST" });
    expect(transcript.isEnded).toBe(true);
  });

  it("has the last of what it is set to", () => {
    expect(transcript.settings).toMatchObject({ title: "Change a file", mode: "plan", usage: { used: 1200, size: 8000, cost: { amount: 0.5, currency: "USD" } } });
    expect(transcript.settings.commands.map((command) => command.name)).toEqual(["review", "init"]);
    expect(transcript.settings.options.map((option) => [option.name, option.value])).toEqual([["Model", "example-small"], ["Shout", false]]);
  });

  it("has what was said beside text", () => {
    expect(of(transcript, "content").map((item) => [item.voice, item.content])).toEqual([
      ["user", { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }],
    ]);
    expect(of(transcript, "note").filter((note) => note.level === "error")).toMatchObject([{ text: "fs/read_text_file /etc/hostname" }]);
  });

  it("is the same when events come again, as after a reconnection", () => {
    const again = folded(all.flatMap((event) => [event, event]));
    expect(again.items).toEqual(transcript.items);
  });

  it("has keys of which each is one item", () => {
    expect(new Set(transcript.items.map((item) => item.key)).size).toBe(transcript.items.length);
  });
});

// inspector: Session view (who answered what)
it("says that a mode answered, and what a terminated session left open", () => {
  const transcript = folded(recorded("modes"));
  expect(of(transcript, "question").map((question) => question.answer?.by)).toEqual([
    { kind: "mode", name: "acceptEdits" },
    { kind: "cause", name: "cancel" },
  ]);
  expect(transcript.runs[0]?.info).toMatchObject({ reason: "terminated", cause: "client_terminate" });
});

// inspector: Session view (streamed agent text)
describe("streamed text", () => {
  it("is one running block until something else is shown", () => {
    const transcript = folded(events("Hel", "lo"));
    expect(transcript.items).toMatchObject([{ type: "text", text: "Hello", done: false }]);
    transcript.apply({ ...events({ sessionUpdate: "tool_call", toolCallId: "a", title: "A" })[0], seq: 3 } as LoggedEvent);
    expect(transcript.items).toMatchObject([{ text: "Hello", done: true }, { type: "tool", status: "pending" }]);
  });

  it("goes on while a tool call that was told of before changes", () => {
    const transcript = folded(events(
      { sessionUpdate: "tool_call", toolCallId: "a", title: "A" }, "Hel", { sessionUpdate: "tool_call_update", toolCallId: "a", status: "completed" }, "lo",
    ));
    expect(transcript.items).toMatchObject([{ type: "tool", status: "completed" }, { text: "Hello" }]);
  });

  it("is two messages with two ids", () => {
    const chunk = (messageId: string, text: string) => ({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });
    expect(of(folded(events(chunk("a", "one"), chunk("b", "two"), chunk("b", "!"))), "text").map((item) => [item.message, item.text])).toEqual([[1, "one"], [2, "two!"]]);
  });

  it("names only what an event changed", () => {
    const transcript = folded(events("a\n\n", "second block"));
    expect([...transcript.apply({ ...events(" more")[0], seq: 3 } as LoggedEvent).items]).toEqual([1]);
  });
});

// inspector: Session view; contract 7.3 (stalled)
it("tells of a silence, and that it is over", () => {
  const transcript = folded(events({ kind: "prompt", turn: 1, prompt: [] }, { kind: "stalled", turn: 1, silentMs: 300_000 }));
  expect(transcript.items.at(-1)).toMatchObject({ type: "stall", silentMs: 300_000 });
  transcript.apply({ seq: 3, at: new Date(9).toISOString(), kind: "stalled", goesOn: true } as LoggedEvent);
  expect(transcript.items.at(-1)).toMatchObject({ type: "stall", goesOnAt: 9 });
});

// inspector: Session view; contract 7.3 (reattached)
it("tells that the agent went on while acpd was gone, in a turn and between two", () => {
  const transcript = folded(events(
    { kind: "run_started" }, { kind: "reattached", gapMs: 300 }, { kind: "prompt", turn: 1, prompt: [] }, { kind: "permission_requested", request: 4, message: {} }, "Hel",
    { kind: "reattached", gapMs: 65_000 }, "lo",
  ));
  expect(of(transcript, "note").map((item) => [item.turn, item.level, item.text])).toEqual([
    [0, "info", "acpd was gone for 300 ms; the agent went on"],
    [1, "info", "acpd was gone for 1 min 5 s; the agent went on"],
  ]);
  expect(transcript.openQuestions().length).toBe(1);
});

// docs/protocol.md, Questions: an address goes to one client
it.each([
  ["permission_requested", {}, 1],
  ["elicitation_requested", { mode: "form" }, 1],
  ["elicitation_requested", { mode: "url" }, 0],
  ["file_forwarded", {}, 0],
])("%s %j: %i to be answered by any client", (kind, params, count) => {
  expect(folded(events({ kind, request: 1, message: { params } })).openQuestions().length).toBe(count);
  expect(folded(events({ kind, request: 1, unasked: true, message: { params } })).openQuestions()).toEqual([]);
});

// inspector: Session view (an agent says what it likes)
it.each([
  ["an update without a body", { kind: "update" }],
  ["an update of a later version", { sessionUpdate: "hologram" }],
  ["a tool call without anything", { sessionUpdate: "tool_call" }],
  ["a tool call with wrong values", { sessionUpdate: "tool_call_update", toolCallId: 7, status: "flying", content: "x", locations: [{}] }],
  ["a plan that is none", { sessionUpdate: "plan", entries: [null, 1] }],
  ["options that are none", { sessionUpdate: "config_option_update", configOptions: [{}, null, { id: "a" }] }],
  ["a question without parameters", { kind: "permission_requested", request: 1, message: {} }],
  ["an answer to nothing", { kind: "permission_resolved", request: 99, result: null }],
  ["an end without a record", { kind: "ended" }],
  ["a kind of a later version", { kind: "hologram" }],
  ["a terminal without an id", { kind: "terminal", output: "x" }],
])("survives %s", (_, event) => {
  expect(() => folded(events(event, "and goes on"))).not.toThrow();
  expect(folded(events(event, "and goes on")).items.at(-1)).toMatchObject({ text: "and goes on" });
});

it("counts equal notes instead of repeating them", () => {
  expect(folded(events({ kind: "hologram" }, { kind: "hologram" }, { kind: "hologram" })).items).toMatchObject([{ type: "note", count: 3 }]);
});

it("keeps the end of a long output", () => {
  const transcript = folded(events(...Array.from({ length: 20 }, (_, at) => ({ kind: "terminal", terminalId: "t", output: String(at % 10).repeat(100_000) }))));
  const [terminal] = of(transcript, "terminal");
  expect(terminal?.output.length).toBe(1 << 20);
  expect(terminal?.dropped).toBe(2_000_000 - (1 << 20));
  expect(terminal?.output.endsWith("9")).toBe(true);
});

// inspector: Budget (10,000 events)
it("folds 10,000 events fast", () => {
  const chunks = events(...Array.from({ length: 10_000 }, (_, at) => (at % 50 === 0 ? { sessionUpdate: "tool_call", toolCallId: `c${at}`, title: "x" } : `word ${at} of a text `)));
  // What it computes; the rest of the time a busy machine has for others.
  const start = process.cpuUsage();
  folded(chunks);
  const { user, system } = process.cpuUsage(start);
  // Some 30 ms.
  expect((user + system) / 1000).toBeLessThan(500);
});
