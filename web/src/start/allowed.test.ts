import { describe, expect, it } from "vitest";
import type { Limits, Whoami } from "acpd-client";
import { directoryOf, directoryProblem, mayUse, modesFor } from "./allowed";

const who = (limits?: Limits): Whoami => ({ scope: "control", sees: "own", ...(limits === undefined ? {} : { limits }) });

// contract 7.2: limits of a token; inspector: Start view
describe("what a token may begin", () => {
  it("is everything without limits", () => {
    expect(modesFor(who())).toHaveLength(4);
    expect(mayUse(who(), "any")).toBe(true);
    expect(mayUse(undefined, "any")).toBe(true);
    expect(directoryOf(who())).toBe("/");
  });

  it("is what its limits name", () => {
    const limited = who({ agents: ["a"], roots: ["/srv"], permissionModes: ["deny"] });
    expect(modesFor(limited).map((mode) => mode.value)).toEqual(["deny"]);
    expect([mayUse(limited, "a"), mayUse(limited, "b")]).toEqual([true, false]);
    expect(directoryOf(limited)).toBe("/srv");
  });

  it.each([
    ["", undefined, "Name a directory where acpd runs."],
    ["src", undefined, "Give the whole path, from /."],
    ["/anywhere", undefined, undefined],
    ["/srv", ["/srv"], undefined],
    ["/srv/a", ["/srv"], undefined],
    ["/srv/a", ["/srv/"], undefined],
    ["/srvx", ["/srv"], "Sessions of this token work in /srv only."],
    ["/x", ["/"], undefined],
  ])("%s under roots %o: %s", (cwd, roots, problem) => {
    expect(directoryProblem(cwd, who(roots === undefined ? undefined : { roots }))).toBe(problem);
  });
});
