import { AbortedError, NetworkError, ProblemError, ProtocolError } from "acpd-client";
import { describe, expect, it } from "vitest";
import { fromDaemon, inWords, isAbort, isAway, refusal, sentence } from "./errors";

const problem = (detail: string) =>
  new ProblemError({ type: "urn:sandbox-agent:error:bad_request", title: "Bad Request", status: 400, detail });

// inspector: What it does (errors in words with what to do; reconnects)
describe("fromDaemon", () => {
  it.each([
    [200, "application/json", true],
    [401, "application/problem+json", true],
    [404, null, true],
    [502, "application/problem+json", true],
    [502, "text/html", false],
    [503, null, false],
    [504, null, false],
  ])("%i %s: %s", (status, type, expected) => expect(fromDaemon(status, type)).toBe(expected));
});

describe("inWords", () => {
  it("says what to do when there is no daemon", () => {
    for (const error of [new NetworkError("refused"), new ProtocolError("no JSON", 502)]) {
      expect(isAway(error)).toBe(true);
      expect(inWords(error)).toContain("acpd serve");
    }
  });

  it("takes an answer for an answer", () => {
    expect([problem("no"), new ProtocolError("no JSON", 200), new Error("x"), "x"].map(isAway)).toEqual([false, false, false, false]);
    expect(inWords(7)).toBe("Something unexpected happened.");
  });

  it.each([
    ["there is no such agent", "There is no such agent."],
    ["Why? ", "Why?"],
    ["", ""],
  ])("makes a sentence of %s", (text, expected) => {
    expect(sentence(text)).toBe(expected);
    expect(inWords(problem(text))).toBe(expected);
  });
});

// inspector: What it does (token entry where the daemon needs one)
it.each([
  [undefined, false, "gives access by tokens"],
  ["urn:sandbox-agent:error:unauthorized", true, "does not know this token"],
  ["urn:sandbox-agent:error:token_expired", true, "has expired"],
] as const)("%s, with a token: %s", (type, had, words) => {
  expect(refusal(type === undefined ? {} : { type }, had)).toContain(words);
});

it("tells what the page gave up by itself", () => {
  expect(isAbort(new AbortedError(AbortSignal.abort()))).toBe(true);
  expect(isAbort(new NetworkError("x"))).toBe(false);
});
