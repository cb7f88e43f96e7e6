/** A change of a file as lines, with what did not change around them. */

import { structuredPatch } from "diff";

/** Unchanged lines that are shown around a change. */
const CONTEXT = 3;
/** A comparison that takes longer, in milliseconds, is given up: all of the old is then taken out, all of the new put in. */
const TIMEOUT_MS = 200;

export interface DiffLine {
  readonly sign: " " | "+" | "-" | "…";
  readonly text: string;
}

export interface FileDiff {
  readonly lines: readonly DiffLine[];
  readonly added: number;
  readonly removed: number;
}

/** Compares two versions of a text. */
export function fileDiff(oldText: string, newText: string): FileDiff {
  const patch = structuredPatch("", "", oldText, newText, undefined, undefined, { context: CONTEXT, timeout: TIMEOUT_MS });
  const lines = patch === undefined ? replaced(oldText, newText) : patch.hunks.flatMap((hunk, index) => [...(index > 0 || hunk.oldStart > 1 ? [GAP] : []), ...hunk.lines.flatMap(line)]);
  const count = (sign: string): number => lines.filter((each) => each.sign === sign).length;
  return { lines, added: count("+"), removed: count("-") };
}

const GAP: DiffLine = { sign: "…", text: "" };

function line(text: string): readonly DiffLine[] {
  const sign = text.charAt(0);
  return sign === "+" || sign === "-" || sign === " " ? [{ sign, text: text.slice(1) }] : [];
}

function replaced(oldText: string, newText: string): readonly DiffLine[] {
  const of = (sign: "+" | "-", text: string): DiffLine[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n").map((each) => ({ sign, text: each })));
  return [...of("-", oldText), ...of("+", newText)];
}
