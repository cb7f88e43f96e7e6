import { describe, expect, it } from "vitest";
import { openingOf, parseRoute, sessionHref } from "./route";

// inspector: Stack (the place is in the fragment, so that the daemon serves one page)
describe("parseRoute", () => {
  it.each([
    ["", "sessions"],
    ["#", "sessions"],
    ["#/", "sessions"],
    ["#/sessions", "sessions"],
    ["#/sessions/", "sessions"],
    ["#/start", "start"],
    ["#/agents", "agents"],
    ["#/daemon", "daemon"],
    ["#/daemon/what", "unknown"],
    ["#/nothing", "unknown"],
    ["#/sessions/a/b/c", "unknown"],
  ])("%s is %s", (fragment, view) => {
    expect(parseRoute(fragment).view).toBe(view);
  });

  it("reads the filters of a list", () => {
    const route = parseRoute("#/sessions?state=waiting&q=fix%20it");
    expect(route.view === "sessions" && [...route.filters]).toEqual([
      ["state", "waiting"],
      ["q", "fix it"],
    ]);
  });

  it.each([["5f0c9e"], ["a/b"], ["50%"], ["ü ß"]])("finds session %s again", (id) => {
    expect(parseRoute(sessionHref(id))).toMatchObject({ view: "session", id, part: "" });
    expect(parseRoute(sessionHref(id, "trace"))).toMatchObject({ view: "session", id, part: "trace" });
  });

  it("takes a session's id as it stands when it is not encoded well", () => {
    expect(parseRoute("#/sessions/50%")).toMatchObject({ view: "session", id: "50%" });
  });
});

// inspector: What it does (`acpd open` passes a code in the fragment)
describe("openingOf", () => {
  it.each([
    ["#code=abc", { code: "abc", place: "#/sessions" }],
    ["#code=abc&to=%2Fsessions%2F5f0c9e", { code: "abc", place: "#/sessions/5f0c9e" }],
    ["#code=abc&to=https%3A%2F%2Felsewhere", { code: "abc", place: "#/sessions" }],
    ["#code=", { code: "", place: "#/sessions" }],
    ["#/sessions", undefined],
    ["#/sessions?q=code=1", undefined],
    ["", undefined],
  ])("%s has %o", (fragment, opening) => {
    expect(openingOf(fragment)).toEqual(opening);
  });
});
