import { describe, expect, it } from "vitest";
import { ApiError, inWords, isOfDaemon, NoConnection, problemOf, sentence } from "./errors";

const problem = (kind: string, detail: string) => JSON.stringify({ type: `urn:sandbox-agent:error:${kind}`, title: "T", status: 400, detail });

// inspector: What it does (errors in words with what to do)
describe("problemOf", () => {
  it.each([
    [400, problem("bad_request", "cwd is not absolute"), "bad_request", "cwd is not absolute"],
    [502, "<html>Bad gateway</html>", "", "The answer was 502, without a word of the daemon's."],
    [500, "", "", "The answer was 500, without a word of the daemon's."],
    [500, "null", "", "The answer was 500, without a word of the daemon's."],
  ])("reads %i %s", (status, body, kind, message) => {
    expect(problemOf(status, body)).toMatchObject({ status, kind, message });
  });
});

describe("isOfDaemon", () => {
  it.each([
    [200, "", true],
    [401, "", true],
    [502, "agent_failed", true],
    [502, "", false],
    [503, "", false],
    [504, "", false],
  ])("%i %s: %s", (status, kind, expected) => {
    expect(isOfDaemon(status, new ApiError(status, kind, ""))).toBe(expected);
  });
});

describe("inWords", () => {
  it("says what to do when there is no daemon", () => {
    expect(inWords(new NoConnection(undefined))).toContain("acpd serve");
  });

  it.each([
    ["there is no such agent", "There is no such agent."],
    ["Why? ", "Why?"],
    ["", ""],
  ])("makes a sentence of %s", (text, expected) => {
    expect(sentence(text)).toBe(expected);
    expect(inWords(new ApiError(400, "bad_request", text))).toBe(expected);
  });
});
