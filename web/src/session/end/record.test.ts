import { expect, it } from "vitest";
import type { TerminationInfo } from "acpd-client";
import { recorded } from "../fixtures/events";
import { Transcript } from "../fold/transcript";
import { told } from "./record";

function lastRun() {
  const transcript = new Transcript();
  for (const event of recorded("turns")) transcript.apply(event);
  return transcript.runs.at(-1);
}

// inspector: End (by whom and why, code, first and last lines of stderr, what was pending, what was left behind)
it("tells of a crash what a person wants to know", () => {
  const run = lastRun();
  if (run?.info === undefined) throw new Error("the run has not ended");
  const record = told(run.info, run.pending);
  expect(record.tone).toBe("bad");
  expect(Object.fromEntries(record.facts.map((fact) => [fact.name, fact.value]))).toMatchObject({
    By: "the agent",
    Exit: "code 1",
    "Under way": "turn 9",
    "Left behind": "a process outlived the agent and was killed",
  });
  expect(record.stderr).toMatchObject({ left: 150, total: 250 });
  expect([record.stderr?.head[0], record.stderr?.tail.at(-1)]).toEqual(["crash line 1", "crash line 250"]);
});

const INFO: TerminationInfo = { reason: "completed", terminatedBy: "daemon", endedAt: "2026-01-01T00:00:00Z", turnActive: false, leaked: false };

it.each<[Partial<TerminationInfo>, string, string]>([
  [{}, "By", "acpd"],
  [{ initiator: "phone" }, "By", "acpd, asked by phone"],
  [{ initiator: "daemon" }, "By", "acpd"],
  [{ signal: "SIGSEGV", exitCode: 1 }, "Exit", "SIGSEGV"],
  [{ escalation: ["stdin_closed", "terminated", "killed", "of_later"] }, "Stopped with", "its input was closed, then SIGTERM, then SIGKILL, then of later"],
  [{ containment: "subreaper" }, "Left behind", "nothing"],
  [{ containment: "group" }, "Left behind", "nothing in its process group, which is all that acpd sees here"],
  [{ containment: "group", leaked: true }, "Left behind", "a process outlived the agent and was killed"],
  [{ reason: "terminated" }, "Goes on", "no, it was ended for good"],
  [{ lastStopReason: "max_tokens" }, "Last turn", "max tokens"],
  [{ lastStopReason: "end_turn", turnActive: true }, "Turn before", "done"],
])("%j: %s %s", (info, name, value) => {
  expect(told({ ...INFO, ...info }, []).facts).toContainEqual({ name, value });
});

it("says nothing of what is not known", () => {
  expect(told(INFO, []).facts.map((fact) => fact.name)).toEqual(["By", "Under way", "Left behind"]);
});
