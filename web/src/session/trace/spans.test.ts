import { describe, expect, it } from "vitest";
import { events, recorded } from "../fixtures/events";
import { place, type Span, Trace } from "./spans";

function traced(all: Parameters<Trace["add"]>[0][]): Trace {
  const trace = new Trace();
  for (const event of all) trace.add(event);
  return trace;
}

// inspector: Trace (events as a waterfall: kind, start, duration, size)
describe("Trace", () => {
  const trace = traced([...recorded("turns")]);
  const first = (kind: string, what = ""): Span | undefined => trace.spans.find((span) => span.kind === kind && span.what.startsWith(what));

  it.each([
    ["prompt", "turn 1", "turn_ended"],
    ["permission_requested", "Change the file", "permission_resolved"],
    ["elicitation_requested", "", "elicitation_resolved"],
    ["run_started", "", "ended"],
    ["agent_request", "terminal/create", "terminal"],
    ["update", "tool_call · Read the file", "update"],
  ])("%s %s lasts until what ends it", (kind, what, end) => {
    const span = first(kind, what);
    expect(span).toMatchObject({ isOpen: false });
    expect(trace.spans.some((each) => each.kind === end && each.at === span?.endAt && each.seq > span.seq)).toBe(true);
  });

  it("leaves nothing open behind the end, and everything open before it", () => {
    expect(trace.spans.filter((span) => span.isOpen)).toEqual([]);
    expect(traced([...recorded("turns").slice(0, 10)]).spans.filter((span) => span.isOpen).map((span) => span.kind)).toContain("run_started");
  });

  it("knows what went wrong", () => {
    const wrong = trace.spans.filter((span) => span.isError).map((span) => span.kind);
    expect(new Set(wrong)).toEqual(new Set(["agent_request", "update", "turn_ended", "ended"]));
  });

  // contract 7.3 (reattached)
  it("shows how long a session had no daemon, and ends nothing by it", () => {
    const { spans } = traced([...events({ kind: "run_started" }, { kind: "prompt", turn: 1 }, { kind: "reattached", gapMs: 1200 })]);
    expect(spans.map((span) => [span.what, span.isOpen, span.isError])).toEqual([["", true, false], ["turn 1", true, false], ["after 1.2 s", false, false]]);
  });

  it("takes an event once, as after a reconnection", () => {
    expect(traced(recorded("turns").flatMap((event) => [event, event])).spans.length).toBe(trace.spans.length);
  });

  it("has the size of each event", () => {
    expect(trace.spans.every((span, index) => span.size === JSON.stringify(recorded("turns")[index]).length)).toBe(true);
  });
});

describe("place", () => {
  const span = (at: number, endAt?: number, isOpen = false): Span => ({ ...(traced([...events({ kind: "x" })]).spans[0] as Span), at, isOpen, ...(endAt === undefined ? {} : { endAt }) });

  it.each([
    [span(0), 0, 0],
    [span(50, 75), 0.5, 0.25],
    [span(50, 500), 0.5, 0.5],
    [span(75, undefined, true), 0.75, 0.25],
    [span(-5), 0, 0],
  ])("%# is from %s, wide %s", (each, from, width) => expect(place(each, { from: 0, to: 100 })).toEqual({ from, width }));

  it("survives a stretch of one moment", () => expect(place(span(0), { from: 0, to: 0 })).toEqual({ from: 0, width: 0 }));
});
