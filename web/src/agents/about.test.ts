import { expect, it } from "vitest";
import type { Agent } from "acpd-client";
import { health, introduced, logins, toldCapabilities } from "./about";

const agent: Agent = { default: false, name: "a", origin: "configured", command: "a", args: [], installed: true, status: "stopped", restartCount: 0, processes: 0, containment: "subreaper", continuity: "exact", capabilities: { loadSession: true } };

// inspector: Agents view (versions, health, what each supports)
it.each([
  ["running", "good"],
  ["stopped", "still"],
  ["error", "bad"],
] as const)("%s is %s", (status, tone) => {
  expect(health({ ...agent, status }).tone).toBe(tone);
});

it.each([
  [undefined, undefined],
  [{}, undefined],
  [{ agentInfo: { name: "opencode" } }, "opencode"],
  [{ agentInfo: { name: "opencode", title: "OpenCode", version: "1.2" } }, "OpenCode 1.2"],
  [{ agentInfo: { name: 3 } }, undefined],
])("%o introduces %s", (initialize, words) => expect(introduced(initialize)).toBe(words));

it.each([
  [{}, []],
  [{ authMethods: [{ id: "key", name: "API key" }, { id: "web" }, {}, null] }, ["API key", "web"]],
])("%o offers %o", (initialize, names) => expect(logins(initialize)).toEqual(names));

it("believes a check before what was said earlier", () => {
  expect(toldCapabilities(agent, undefined)).toEqual({ loadSession: true });
  expect(toldCapabilities(agent, { name: "a", ok: true, continuity: "exact", initialize: { agentCapabilities: {} } })).toEqual({});
  expect(toldCapabilities(agent, { name: "a", ok: false, continuity: "exact", error: "no" })).toEqual({ loadSession: true });
});
