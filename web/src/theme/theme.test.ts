import { expect, it } from "vitest";
import { nextTheme, parseTheme } from "./theme";

// inspector: What it does (dark and light)
it.each([
  [null, "system"],
  ["", "system"],
  ["blue", "system"],
  ["light", "light"],
  ["dark", "dark"],
] as const)("reads %s as %s", (stored, theme) => {
  expect(parseTheme(stored)).toBe(theme);
});

it("comes round in three turns", () => {
  const turns = [1, 2, 3].reduce<ReturnType<typeof parseTheme>[]>((themes) => [...themes, nextTheme(themes.at(-1) ?? "system")], ["system"]);
  expect(turns).toEqual(["system", "light", "dark", "system"]);
});
