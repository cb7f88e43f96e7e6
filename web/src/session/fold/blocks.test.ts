import { describe, expect, it } from "vitest";
import { append, BLOCK_LIMIT, EMPTY } from "./blocks";

/** The blocks of a text that comes in pieces of a length. */
function blocks(text: string, length: number): string[] {
  let running = EMPTY;
  const all: string[] = [];
  for (let at = 0; at < text.length; at += length) {
    const step = append(running, text.slice(at, at + length));
    all.push(...step.finished);
    running = step.running;
  }
  return [...all, ...(running.text.trim() === "" ? [] : [running.text.trimEnd()])];
}

// inspector: Stack (marked over finished blocks, the running one as plain text)
describe("append", () => {
  it.each([
    ["paragraphs", "one\ntwo\n\nthree and four", ["one\ntwo", "three and four"]],
    ["a heading and its text", "# A\n\ntext of it\n", ["# A", "text of it"]],
    ["several blank lines", "one\n\n\n\ntwo more words", ["one", "two more words"]],
    ["lines that end with CR LF", "one\r\n\r\ntwo more words", ["one", "two more words"]],
    ["a fence with blank lines", "```ts\na\n\nb\n```\n\nbehind the fence", ["```ts\na\n\nb\n```", "behind the fence"]],
    ["a fence within a longer one", "````\n```\n\na\n````\n\nbehind the fence", ["````\n```\n\na\n````", "behind the fence"]],
    ["tildes are not closed by backticks", "~~~\na\n\n```\n\nb\n~~~", ["~~~\na\n\n```\n\nb\n~~~"]],
    ["code in a line is no fence", "``` a ``` b\n\nand the rest", ["``` a ``` b", "and the rest"]],
    ["a list with blank lines", "1. one\n\n2. two\n\n3. three and more", ["1. one\n\n2. two\n\n3. three and more"]],
    ["a paragraph of a list item", "- one\n\n  of it as well\n\nnot of it at all", ["- one\n\n  of it as well", "not of it at all"]],
    ["nothing but space", " \n\n \n", []],
  ])("%s", (_, text, expected) => {
    for (const length of [1, 3, text.length]) expect(blocks(text, length)).toEqual(expected);
  });

  it("cuts what is too long at a line, and goes on with a fence", () => {
    const code = Array.from({ length: 2000 }, (_, line) => `line ${line}`).join("\n");
    const all = blocks(`\`\`\`sh\n${code}\n\`\`\``, 100);
    expect(all.length).toBeGreaterThan(2);
    expect(all.every((block) => block.startsWith("```sh\n") && block.endsWith("\n```"))).toBe(true);
    expect(all.map((block) => block.slice(6, -4)).join("\n")).toBe(code);
  });

  it.each([
    ["at a space", "word ".repeat(5000).trimEnd(), " "],
    ["anywhere, where there is none", "x".repeat(25_000), ""],
    ["not within a pair of surrogates", "😀".repeat(10_000), ""],
    ["also behind a line that looks like a fence and is endless", `\`\`\`${"x".repeat(25_000)}\ny`, ""],
  ])("cuts a line that is too long %s", (_, text, between) => {
    const all = blocks(text, 64);
    expect(all.length).toBeGreaterThan(2);
    expect(all.every((block) => block.length <= BLOCK_LIMIT + 64 && !/^[\uDC00-\uDFFF]/.test(block))).toBe(true);
    expect(all.join(between).replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
  });
});
