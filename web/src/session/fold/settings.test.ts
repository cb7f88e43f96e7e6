import { describe, expect, it } from "vitest";
import { changes, grouped, type Settings, UNSET, withState, withUpdate } from "./settings";

const OPTIONS = [
  { id: "model", name: "Model", type: "select", currentValue: "s", options: [{ name: "Fast", options: [{ value: "s", name: "Small" }] }, { value: "l", name: "Large" }] },
  { id: "shout", name: "Shout", type: "boolean", currentValue: false },
];
const SET = withState(UNSET, { modes: { currentModeId: "a", availableModes: [{ id: "a", name: "Ask" }, { id: "b" }] }, configOptions: OPTIONS });

// inspector: Session view (mode and config options by the agent's own names)
describe("settings", () => {
  it("have choices under the agent's headings", () => {
    expect(grouped(SET.options[0]?.choices ?? [])).toEqual([
      { group: "Fast", members: [{ id: "s", name: "Small", group: "Fast" }] },
      { group: "", members: [{ id: "l", name: "Large" }] },
    ]);
  });

  it.each<[string, Settings, string[]]>([
    ["a mode with a name", withUpdate({ ...SET, mode: "b" }, "current_mode_update", { currentModeId: "a" }), ["Mode: Ask"]],
    ["an option", withUpdate(SET, "config_option_update", { configOptions: [{ ...OPTIONS[0], currentValue: "l" }, OPTIONS[1]] }), ["Model: Large"]],
    ["one that is on or off", withState(SET, { configOptions: [OPTIONS[0], { ...OPTIONS[1], currentValue: true }] }), ["Shout: on"]],
    ["nothing", withState(SET, {}), []],
    ["options that are told for the first time", SET, []],
  ])("tell of %s", (name, after, expected) => {
    const before = name.startsWith("a mode") ? { ...SET, mode: "b" } : name.startsWith("options") ? { ...UNSET, mode: "a" } : SET;
    expect(changes(before, after)).toEqual(expected);
  });

  it("keep what an update does not name", () => {
    const titled = withUpdate(SET, "session_info_update", { title: "A title" });
    expect(withUpdate(titled, "session_info_update", { _meta: {} })).toEqual(titled);
    expect(titled).toMatchObject({ title: "A title", mode: "a" });
  });
});
