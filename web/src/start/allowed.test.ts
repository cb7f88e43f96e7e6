import { describe, expect, it } from "vitest";
import type { Limits, Whoami } from "acpd-client";
import { directoryProblem, firstDirectory, modesFor } from "./allowed";

const who = (limits?: Limits): Whoami => ({ scope: "control", sees: "own", agents: ["example"], cwd: "/var/lib/acpd", ...(limits === undefined ? {} : { limits }) });

// contract 7.2: limits of a token; inspector: Start view
describe("what a token may begin", () => {
  it("is everything without limits", () => {
    expect(modesFor(who())).toHaveLength(4);
  });

  it("is what its limits name", () => {
    expect(modesFor(who({ permissionModes: ["deny"] })).map((mode) => mode.value)).toEqual(["deny"]);
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

  it.each([
    [[], undefined, "/var/lib/acpd"],
    [["/a", "/b"], undefined, "/a"],
    [["/a", "/srv/b"], ["/srv"], "/srv/b"],
    [["/a"], ["/srv"], "/var/lib/acpd"],
  ])("after %o under roots %o begins in %s", (used, roots, cwd) => {
    expect(firstDirectory(used, who(roots === undefined ? undefined : { roots }))).toBe(cwd);
  });
});
