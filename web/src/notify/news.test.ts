import type { Session, SessionState } from "acpd-client";
import { expect, it } from "vitest";
import { newsOf } from "./news";

const session = (state: SessionState): Session => ({
  sessionId: "s",
  agent: "example",
  cwd: "/srv",
  title: "Fix it",
  ended: state === "ended",
  state,
  createdAt: "1",
  updatedAt: "2",
  eventCount: 1,
  openQuestions: state === "waiting" ? 1 : 0,
  metadata: {},
});

// inspector: What it does (browser notifications when a session waits or ends)
it.each<[SessionState | undefined, SessionState, number]>([
  ["running", "waiting", 1],
  ["waiting", "waiting", 0],
  ["waiting", "running", 0],
  ["running", "idle", 0],
  ["idle", "ended", 1],
  ["ended", "ended", 0],
  [undefined, "waiting", 1],
  [undefined, "running", 0],
])("%s to %s is %i news", (before, now, expected) => {
  const states = new Map(before === undefined ? [] : [["s", before] as const]);
  expect(newsOf(states, [session(now)])).toHaveLength(expected);
});

it("says what, of which and where", () => {
  expect(newsOf(new Map(), [session("waiting")])).toEqual([
    { sessionId: "s", title: "Waits for you: Fix it", body: "Its agent asks something.\nexample in /srv" },
  ]);
});
