import { describe, expect, it } from "vitest";
import { ability, type Action, type Facts } from "./abilities";

const FACTS: Facts = { scope: "control", isOwn: true, agent: "Steps", isEnded: false, isRemoved: false, isTerminated: false, isTurnActive: true, refused: {} };

// inspector: Session view (what an agent does not support is disabled and says why)
describe("ability", () => {
  it.each<[Action, Partial<Facts>, string | undefined]>([
    ["prompt", {}, undefined],
    ["prompt", { isEnded: true }, "The session has ended. Resume it first."],
    ["prompt", { isEnded: true, isTerminated: true }, "The session has ended."],
    ["prompt", { isEnded: true, refused: { resume: "The agent has lost it." } }, "The session has ended."],
    ["resume", { isEnded: true, isRemoved: true }, "The session was removed."],
    ["cancel", {}, undefined],
    ["cancel", { isTurnActive: false }, "No turn is running."],
    ["close", { isEnded: true }, "The session has ended."],
    ["terminate", { scope: "admin", isOwn: false }, undefined],
    ["terminate", { isTerminated: true }, "The session was terminated."],
    ["resume", {}, "The session is live."],
    ["resume", { isEnded: true }, undefined],
    ["resume", { isEnded: true, isTerminated: true }, "The session was ended for good."],
    ["resume", { isEnded: true, refused: { resume: "The agent has lost it." } }, "The agent has lost it."],
    ["delete", { scope: "admin" }, "The session is live. Close it first."],
    ["delete", { scope: "admin", isEnded: true }, undefined],
    ["fork", {}, undefined],
    ["fork", { capabilities: { sessionCapabilities: { fork: {} } } }, undefined],
    ["fork", { capabilities: { sessionCapabilities: {} } }, "Steps cannot fork sessions."],
    ["image", { capabilities: { promptCapabilities: { image: true } } }, undefined],
    ["image", { capabilities: { promptCapabilities: { image: false } } }, "Steps takes no images."],
    ["image", { capabilities: {} }, "Steps takes no images."],
  ])("%s with %j: %s", (action, facts, why) => {
    expect(ability(action, { ...FACTS, ...facts })).toEqual(why === undefined ? { shown: true } : { shown: true, why });
  });

  // inspector: Session view (an observer sees no buttons that it may not press)
  it.each<[Action, Partial<Facts>]>([
    ["prompt", { scope: "observe" }], ["cancel", { scope: "observe" }], ["fork", { scope: "observe" }], ["resume", { scope: "observe", isEnded: true }],
    ["terminate", { scope: "observe" }], ["terminate", { isOwn: false }],
    // contract 1.7: deleting is for admin, one's own sessions included
    ["delete", { isEnded: true }],
  ])("%s is not shown with %j", (action, facts) => expect(ability(action, { ...FACTS, ...facts })).toEqual({ shown: false }));
});
