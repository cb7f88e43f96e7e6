import { expect, it } from "vitest";
import { excerpt } from "./excerpt";

const lines = (count: number): string => Array.from({ length: count }, (_, line) => `line ${line + 1}`).join("\n");

// inspector: Transcript (a long prompt is folded), W1
it.each([
  ["a few lines", lines(15), undefined],
  ["many lines", lines(16), { text: `${lines(12)}…`, lines: 16 }],
  ["one long line", "x".repeat(100_000), { text: `${"x".repeat(1400)}…`, lines: 1 }],
  ["a cut within a pair of surrogates", `${"x".repeat(1399)}${"😀".repeat(500)}`, { text: `${"x".repeat(1399)}…`, lines: 1 }],
])("%s", (_, text, expected) => {
  expect(excerpt(text)).toEqual(expected);
});
