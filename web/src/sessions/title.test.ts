import { describe, expect, it } from "vitest";
import { titleOf } from "./title";

// inspector: Sessions view (title)
describe("titleOf", () => {
  it.each([
    [{ title: "Parser", firstPrompt: "fix it" }, "Parser"],
    [{ firstPrompt: "fix it" }, "fix it"],
    [{}, "Untitled"],
    [undefined, "Untitled"],
  ])("%o is %s", (session, title) => {
    expect(titleOf(session)).toBe(title);
  });
});
