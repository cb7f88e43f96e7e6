import { expect, it } from "vitest";
import { tokensOf } from "./tokens";

// inspector: Sessions view (tokens where told)
it.each([
  [undefined, undefined],
  [{}, undefined],
  [{ tokens: {} }, undefined],
  [{ tokens: { input: 3, output: 4 } }, 7],
  [{ tokens: { input: 3, output: 4, total: 9 } }, 9],
])("%o has used %s", (usage, tokens) => {
  expect(tokensOf(usage)).toBe(tokens);
});
