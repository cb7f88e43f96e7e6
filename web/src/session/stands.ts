import type { Session, SessionInfo } from "acpd-client";
import type { Transcript } from "./fold/transcript";

/** The session as its transcript has it now, where that is newer than what the daemon last said of it. */
export function stands(transcript: Transcript, info: SessionInfo): Session {
  const open = transcript.openQuestions().length;
  const run = transcript.runs.at(-1);
  const state = transcript.isEnded ? "ended" : open > 0 ? "waiting" : transcript.activeTurn !== undefined ? "running" : "idle";
  const ended = transcript.items.findLast((item) => item.type === "turn_end");
  const lastTurn =
    ended?.type !== "turn_end" ? undefined : { durationMs: ended.durationMs, endedAt: new Date(ended.at).toISOString(), ...(ended.stopReason === undefined ? {} : { stopReason: ended.stopReason }) };
  const { lastTurn: _, terminationInfo: __, ...known } = info;
  return {
    ...known,
    state: run === undefined ? info.state : state,
    ended: transcript.isEnded,
    openQuestions: open,
    ...(lastTurn === undefined ? {} : { lastTurn }),
    ...(run?.info === undefined ? {} : { terminationInfo: run.info }),
  };
}
