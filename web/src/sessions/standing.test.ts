import { describe, expect, it } from "vitest";
import type { Cause, Session, TerminationInfo } from "acpd-client";
import { ending, standing } from "./standing";

const base: Session = {
  sessionId: "s",
  agent: "example",
  cwd: "/",
  ended: false,
  state: "idle",
  createdAt: "1",
  updatedAt: "1",
  eventCount: 1,
  openQuestions: 0,
  metadata: {},
};
const turn = (stopReason?: string) => ({ lastTurn: { durationMs: 1, endedAt: "1", ...(stopReason === undefined ? {} : { stopReason }) } });
const end: TerminationInfo = { reason: "completed", terminatedBy: "daemon", endedAt: "1", turnActive: false, leaked: false };

// inspector: Sessions view (state, how it ended at a glance)
describe("standing", () => {
  it.each<[Partial<Session>, string, string]>([
    [{ state: "waiting", openQuestions: 1 }, "wait", "Waits for you"],
    [{ state: "waiting", openQuestions: 3 }, "wait", "3 questions"],
    [{ state: "running" }, "busy", "Running"],
    [{ state: "starting" }, "busy", "Starting"],
    [{}, "good", "Ready"],
    [turn("end_turn"), "good", "Done"],
    [turn(), "bad", "Turn failed"],
    [turn("max_tokens"), "still", "Max tokens"],
    [{ state: "ended" }, "still", "Ended"],
    [{ state: "ended", terminationInfo: { ...end, cause: "client_close" } }, "still", "Closed"],
    [{ state: "running", node: "build-1", reachable: true }, "busy", "Running"],
    [{ state: "running", node: "build-1", reachable: false }, "bad", "Unreachable"],
  ])("%o", (facts, tone, text) => {
    expect(standing({ ...base, ...facts })).toMatchObject({ tone, text });
  });
});

// design fleet: a lost node is shown, with since when
it("says which node cannot be reached", () => {
  const { more } = standing({ ...base, state: "running", node: "build-1", reachable: false, unreachableSince: "2026-11-26T06:00:00Z" });
  expect(more).toMatch(/^Its node, build-1, cannot be reached since .*2026.*; it was running\.$/);
});

describe("ending", () => {
  it.each<[Partial<TerminationInfo>, string, string]>([
    [{ cause: "agent_exit" }, "still", "Agent left"],
    [{ cause: "agent_exit", turnActive: true }, "bad", "Agent left"],
    [{ cause: "agent_crash", exitCode: 3 }, "bad", "Crashed: exit 3"],
    [{ cause: "agent_crash", signal: "SIGSEGV" }, "bad", "Crashed: SIGSEGV"],
    [{ cause: "agent_crash" }, "bad", "Crashed"],
    [{ cause: "daemon_lost" }, "bad", "Daemon lost"],
    [{ cause: "daemon_upgrade" }, "still", "Daemon upgraded"],
    [{ cause: "superseded" }, "bad", "Taken away"],
    [{ cause: "out_of_memory" }, "bad", "Out of memory"],
    [{ cause: "fenced" }, "bad", "Cut off"],
    [{ cause: "later" as Cause, reason: "error" }, "bad", "Later"],
    [{ reason: "error" }, "bad", "Failed"],
    [{ reason: "terminated" }, "still", "Terminated"],
    [{}, "still", "Ended"],
  ])("%o", (facts, tone, text) => {
    expect(ending({ ...end, ...facts })).toMatchObject({ tone, text });
  });

  it("says who asked, what was running and what was left behind", () => {
    const { more } = ending({ ...end, cause: "client_terminate", initiator: "ci", turnActive: true, leaked: true });
    expect(more).toBe("A client terminated it. Asked for by ci. A turn was running. It left processes behind, which were killed.");
  });
});
