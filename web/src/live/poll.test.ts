import { expect, it } from "vitest";
import { pause } from "./poll";

// inspector: What it does (reconnects; a page in the background asks less)
it.each([
  [2000, 0, false, 2000],
  [2000, 0, true, 10_000],
  [2000, 1, false, 1000],
  [2000, 3, false, 4000],
  [2000, 20, false, 5000],
  [2000, 20, true, 15_000],
])("every %i ms after %i failures, hidden %s: %i", (every, failures, hidden, expected) => {
  expect(pause(every, failures, hidden)).toBe(expected);
});
