import type { Stats, StatsStep } from "acpd-client";
import { bytes, count, duration } from "../ui/format";
import type { Tone } from "../ui/tone";

/** A line of a chart. `name` is empty where it is the only one. */
export interface Line {
  name: string;
  tone: Tone | "accent";
  read: (step: StatsStep) => number | undefined;
}

/** A chart of the last hour. */
export interface Chart {
  title: string;
  /** A value with its unit. */
  words: (value: number) => string;
  /** Its scale ends at powers of 2. */
  binary?: boolean;
  lines: readonly Line[];
}

const MINUTE_MS = 60_000;
const SECOND_MS = 1000;
const US_PER_MS = 1000;

/** The charts of a daemon whose steps are this long. */
export function chartsOf({ stepMs }: Stats): readonly Chart[] {
  const only = (read: Line["read"]): readonly Line[] => [{ name: "", tone: "accent", read }];
  const perSecond = (amount: number): number => (amount * SECOND_MS) / stepMs;
  return [
    {
      title: "Live sessions",
      words: count,
      lines: [
        { name: "all", tone: "still", read: (step) => step.sessions },
        { name: "running", tone: "busy", read: (step) => step.running },
        { name: "waiting for an answer", tone: "wait", read: (step) => step.waiting },
      ],
    },
    { title: "Turns", words: (value) => `${count(value)} per minute`, lines: only((step) => (step.turns * MINUTE_MS) / stepMs) },
    { title: "Events", words: (value) => `${count(value)} per second`, lines: only((step) => perSecond(step.events)) },
    { title: "Event data", words: (value) => `${bytes(value)} per second`, binary: true, lines: only((step) => perSecond(step.eventBytes)) },
    { title: "Requests", words: (value) => `${count(value)} per second`, lines: only((step) => perSecond(step.requests)) },
    { title: "Agent processes", words: count, lines: only((step) => step.agentProcesses) },
    { title: "Memory", words: bytes, binary: true, lines: only((step) => step.memoryBytes) },
    { title: "Commits to the log", words: (value) => `${duration(value)} each`, lines: only((step) => (step.commits === 0 ? undefined : step.commitUs / step.commits / US_PER_MS)) },
    { title: "Waiting to be written", words: bytes, binary: true, lines: only((step) => step.queueBytes) },
  ];
}
