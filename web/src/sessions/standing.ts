import type { Cause, Session, TerminationInfo } from "acpd-client";
import type { Tone } from "../ui/tone";

/** What a session is doing, or how it ended, in a word or two, and in a sentence. */
export interface Standing {
  tone: Tone;
  text: string;
  more: string;
}

/** How a session stands at a glance. */
export function standing(session: Session): Standing {
  if (session.reachable === false) {
    const since = session.unreachableSince === undefined ? "" : ` since ${new Date(session.unreachableSince).toLocaleString("en")}`;
    return { tone: "bad", text: "Unreachable", more: `Its node, ${session.node}, cannot be reached${since}; it was ${session.state}.` };
  }
  switch (session.state) {
    case "waiting": {
      const { openQuestions: open } = session;
      const more = open === 1 ? "Its agent asks something." : `Its agent asks ${open} things.`;
      return { tone: "wait", text: open > 1 ? `${open} questions` : "Waits for you", more };
    }
    case "running":
      return { tone: "busy", text: "Running", more: "A turn is running." };
    case "starting":
      return { tone: "busy", text: "Starting", more: "Its agent is about to be there." };
    case "idle":
      return idle(session);
    case "ended":
      return session.terminationInfo === undefined
        ? { tone: "still", text: "Ended", more: "Its run is over." }
        : ending(session.terminationInfo);
  }
}

/** A session without a turn: its last one tells whether all is well. */
function idle(session: Session): Standing {
  const turn = session.lastTurn;
  if (turn === undefined) return { tone: "good", text: "Ready", more: "No turn yet; it waits for a prompt." };
  const stopped = turn.stopReason;
  if (stopped === undefined) return { tone: "bad", text: "Turn failed", more: "Its last turn ended with an error; it waits for a prompt." };
  if (stopped === "end_turn") return { tone: "good", text: "Done", more: "Its last turn is done; it waits for a prompt." };
  return { tone: "still", text: words(stopped), more: `Its last turn ended with ${stopped}; it waits for a prompt.` };
}

/** What a cause means to a person; contract 7.3, `terminationInfo.cause`. */
const CAUSES: Record<Cause, (info: TerminationInfo) => Standing> = {
  agent_exit: (info) => ({ tone: info.turnActive ? "bad" : "still", text: "Agent left", more: "The agent left by itself." }),
  agent_crash: (info) => ({ tone: "bad", text: `Crashed${how(info)}`, more: `The agent crashed${how(info)}.` }),
  spawn_failed: () => ({ tone: "bad", text: "Did not start", more: "The agent could not be started." }),
  initialize_timeout: () => ({ tone: "bad", text: "Did not answer", more: "The agent did not introduce itself in time." }),
  protocol_error: () => ({ tone: "bad", text: "Broken messages", more: "What the agent sent cannot be understood." }),
  client_close: () => ({ tone: "still", text: "Closed", more: "A client closed it." }),
  client_terminate: () => ({ tone: "still", text: "Terminated", more: "A client terminated it." }),
  idle_timeout: () => ({ tone: "still", text: "Idle for long", more: "Nothing happened for too long." }),
  daemon_shutdown: () => ({ tone: "still", text: "Daemon stopped", more: "The daemon was stopped in good order." }),
  daemon_lost: () => ({ tone: "bad", text: "Daemon lost", more: "The daemon died while it was live." }),
  daemon_upgrade: () => ({ tone: "still", text: "Daemon upgraded", more: "The next daemon is of a version that could not go on with the agent." }),
  fenced: () => ({ tone: "bad", text: "Cut off", more: "The fleet had not heard of its node in time, so that another node may take it up." }),
  superseded: () => ({ tone: "bad", text: "Taken away", more: "Another program has taken the agent over, or another node the session." }),
  out_of_memory: () => ({ tone: "bad", text: "Out of memory", more: "The agent ran out of memory." }),
};

/** How a run ended. */
export function ending(info: TerminationInfo): Standing {
  // A later daemon may have causes that are not known here.
  const known: ((info: TerminationInfo) => Standing) | undefined = info.cause === undefined ? undefined : CAUSES[info.cause];
  const base = known?.(info) ?? other(info);
  const by = info.initiator === undefined || info.initiator === "daemon" ? "" : ` Asked for by ${info.initiator}.`;
  const turn = info.turnActive ? " A turn was running." : "";
  return { ...base, more: `${base.more}${by}${turn}${info.leaked ? " It left processes behind, which were killed." : ""}` };
}

function other(info: TerminationInfo): Standing {
  const text = info.cause === undefined ? "" : words(info.cause);
  if (info.reason === "error") return { tone: "bad", text: text || "Failed", more: info.message ?? "Something went wrong." };
  return { tone: "still", text: text || (info.reason === "terminated" ? "Terminated" : "Ended"), more: "Its run is over." };
}

function how(info: TerminationInfo): string {
  if (info.signal !== undefined) return `: ${info.signal}`;
  return info.exitCode === undefined ? "" : `: exit ${info.exitCode}`;
}

/** `max_tokens` as people write it. */
function words(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
