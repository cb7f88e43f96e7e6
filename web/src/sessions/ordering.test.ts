import { describe, expect, it } from "vitest";
import type { Session, SessionState } from "acpd-client";
import { compare, extended, type Known, refreshed } from "./ordering";

const session = (sessionId: string, updatedAt: string, state: SessionState = "idle"): Session => ({
  sessionId,
  agent: "example",
  cwd: "/",
  ended: state === "ended",
  state,
  createdAt: `c${sessionId}`,
  updatedAt,
  eventCount: 1,
  openQuestions: 0,
  metadata: {},
});

const known = (...sessions: Session[]): Known => new Map(sessions.map((one) => [one.sessionId, one]));
const ids = (list: Known): string[] => [...list.values()].sort(compare).map((one) => one.sessionId);

// inspector: Sessions view (waiting for you first, newest change first)
it("orders by what is wanted, then by change", () => {
  const list = known(
    session("old", "1"),
    session("new", "9"),
    session("ended", "5", "ended"),
    session("waits", "2", "waiting"),
    session("works1", "8", "running"),
    session("works2", "7", "running"),
  );
  expect(ids(list)).toEqual(["waits", "works2", "works1", "new", "ended", "old"]);
});

// inspector: Sessions view (live updates)
describe("refreshed", () => {
  const before = known(session("a", "5"), session("b", "4"), session("c", "1"));

  it("takes up what is new and what has changed", () => {
    const now = [session("d", "7"), session("b", "6")];
    expect(ids(refreshed(before, now, { sessions: now, whole: false }))).toEqual(["d", "b", "a", "c"]);
  });

  it("keeps what is older than the newest part", () => {
    const now = [session("d", "7"), session("a", "5"), session("b", "4")];
    expect(ids(refreshed(before, now, { sessions: now, whole: false }))).toEqual(["d", "a", "b", "c"]);
  });

  it("leaves out what has been removed from the newest part", () => {
    const now = [session("a", "5"), session("x", "3")];
    expect(ids(refreshed(before, [], { sessions: now, whole: false }))).toEqual(["a", "x", "c"]);
  });

  it("leaves out what is not in the whole of it", () => {
    expect(ids(refreshed(before, [], { sessions: [session("c", "1")], whole: true }))).toEqual(["c"]);
  });

  it("leaves out what has changed and is not of the list any more", () => {
    const changed = [session("c", "8", "ended")];
    const matching = [session("a", "5"), session("b", "4")];
    expect(ids(refreshed(before, changed, { sessions: matching, whole: false }))).toEqual(["a", "b"]);
  });

  it("is the same object when nothing has changed, so that nothing is drawn again", () => {
    expect(refreshed(before, [], { sessions: [session("a", "5")], whole: false })).toBe(before);
  });
});

describe("extended", () => {
  it("adds a page and does not go back in time", () => {
    const list = extended(known(session("a", "5")), [session("a", "4"), session("b", "3")]);
    expect(list.get("a")?.updatedAt).toBe("5");
    expect(ids(list)).toEqual(["a", "b"]);
  });
});
