import { resolve } from "node:path";
import { test } from "./harness";

/** The configuration with an agent that does what the tests say; see agent.mjs. */
export const STEPS = `[agents.steps]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(resolve(import.meta.dirname, "agent.mjs"))}]\n`;

/** A step of that agent. */
export type Step = Record<string, unknown>;

/** A prompt of these steps. */
export const steps = (...all: readonly Step[]): string => JSON.stringify(all);

/** A test whose daemon has that agent, and no other. */
export const stepsTest = test.extend({ daemonOptions: { config: STEPS } });

/** A tool call that changes a file, and the question whether it may. */
export const EDIT = {
  toolCallId: "edit-1",
  title: "Edit src/parse.ts",
  kind: "edit",
  rawInput: { path: "src/parse.ts", with: "keep(t)" },
  locations: [{ path: "/srv/example/src/parse.ts", line: 2 }],
  content: [{ type: "diff", path: "/srv/example/src/parse.ts", oldText: "one\ndrop(t)\nthree\n", newText: "one\nkeep(t)\nthree\n" }],
};

export const OPTIONS = [
  { optionId: "once", name: "Yes, once", kind: "allow_once" },
  { optionId: "always", name: "Yes, always", kind: "allow_always" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
