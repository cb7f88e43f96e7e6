import type { NewSession } from "acpd-client";

/** The agent that is always there. */
export const EXAMPLE = "example";

/** A turn that shows what there is to see: a title, a plan, thoughts, a tool call, an answer. */
const LINES = [
  "title A first turn",
  "plan [>] Think about it,Use a tool,Answer",
  "think Each line of a prompt tells this agent what to do.",
  "tool Read the manual",
  "This is the example agent of acpd. It needs no account, and does what the lines of a prompt say.",
  "plan [x] Think about it,[x] Use a tool,[x] Answer",
];

/** A session of the example agent with its first turn, in this directory. */
export function exampleSession(cwd: string): NewSession {
  return { agent: EXAMPLE, cwd, prompt: LINES.join("\n") };
}
