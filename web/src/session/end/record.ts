/** A termination record in words: who ended the run, why, and how it went. */

import type { StderrInfo, TerminationInfo } from "acpd-client";
import { ending } from "../../sessions/standing";
import type { Tone } from "../../ui/tone";

/** The rungs of the stop ladder, as a person would say them. */
const RUNGS: Readonly<Record<string, string>> = {
  stdin_closed: "its input was closed",
  terminated: "SIGTERM",
  killed: "SIGKILL",
};

export interface Fact {
  readonly name: string;
  readonly value: string;
}

export interface Stderr {
  readonly head: readonly string[];
  readonly tail: readonly string[];
  /** Lines between them, which are not kept. */
  readonly left: number;
  readonly total: number;
}

export interface Told {
  readonly headline: string;
  readonly more: string;
  readonly tone: Tone;
  readonly facts: readonly Fact[];
  readonly stderr?: Stderr;
}

/** Tells how a run ended; `pending` is what was under way. */
export function told(info: TerminationInfo, pending: readonly string[]): Told {
  const { tone, text, more } = ending(info);
  const facts = [
    fact("By", by(info)),
    fact("Exit", exit(info)),
    fact("Said", info.message),
    fact("Under way", pending.length > 0 ? pending.join("; ") : "nothing"),
    // Of a run that ended in a turn, the last one that ended is the one before.
    fact(info.turnActive ? "Turn before" : "Last turn", stopped(info.lastStopReason)),
    fact("Stopped with", rungs(info.escalation ?? [])),
    fact("Left behind", info.leaked ? "a process outlived the agent and was killed" : info.containment === "group" ? "nothing in its process group, which is all that acpd sees here" : "nothing"),
    fact("Goes on", info.reason === "terminated" ? "no, it was ended for good" : undefined),
  ];
  return { headline: text, more, tone, facts: facts.flat(), ...(info.stderr === undefined ? {} : { stderr: stderr(info.stderr) }) };
}

function fact(name: string, value: string | undefined): readonly Fact[] {
  return value === undefined || value === "" ? [] : [{ name, value }];
}

function by(info: TerminationInfo): string {
  if (info.terminatedBy === "agent") return "the agent";
  return info.initiator === undefined || info.initiator === "daemon" ? "acpd" : `acpd, asked by ${info.initiator}`;
}

function exit(info: TerminationInfo): string | undefined {
  return info.signal ?? (info.exitCode === undefined ? undefined : `code ${info.exitCode}`);
}

function stopped(reason: string | undefined): string | undefined {
  return reason === "end_turn" ? "done" : reason?.replaceAll("_", " ");
}

function rungs(used: readonly string[]): string {
  return used.map((rung) => RUNGS[rung] ?? rung.replaceAll("_", " ")).join(", then ");
}

function stderr(info: StderrInfo): Stderr {
  const head = lines(info.head);
  const tail = lines(info.tail);
  return { head, tail, left: Math.max(0, info.totalLines - head.length - tail.length), total: info.totalLines };
}

function lines(text: string | undefined): readonly string[] {
  const all = text?.replace(/\n$/, "") ?? "";
  return all === "" ? [] : all.split("\n");
}
