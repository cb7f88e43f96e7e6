import { describe, expect, it } from "vitest";
import { fileDiff } from "./diff";
import { palette } from "./screen";

// inspector: Session view (diffs)
describe("fileDiff", () => {
  const signs = (oldText: string, newText: string): string => fileDiff(oldText, newText).lines.map((line) => line.sign).join("");

  it.each([
    ["a new file", "", "a\nb\n", "++"],
    ["an emptied one", "a\n", "", "-"],
    ["a change with what is around it", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "…   -+   "],
    ["nothing", "a\n", "a\n", ""],
  ])("%s", (_, oldText, newText, expected) => expect(signs(oldText, newText)).toBe(expected));

  it("counts what came and went", () => expect(fileDiff("a\nb\n", "a\nc\nd\n")).toMatchObject({ added: 2, removed: 1 }));

  it("gives up on what takes too long, and shows both", { timeout: 60_000 }, () => {
    const text = (seed: number): string => Array.from({ length: 30_000 }, (_, line) => (line * seed) % 9973).join("\n");
    expect(fileDiff(text(7), text(11))).toMatchObject({ added: 30_000, removed: 30_000 });
  });
});

// inspector: Session view (terminals)
it.each([
  [16, "rgb(0 0 0)"],
  [231, "rgb(255 255 255)"],
  [196, "rgb(255 0 0)"],
  [232, "rgb(8 8 8)"],
  [255, "rgb(238 238 238)"],
])("colour %i is %s", (color, expected) => expect(palette(color)).toBe(expected));
