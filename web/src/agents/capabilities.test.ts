import { describe, expect, it } from "vitest";
import { capabilitiesOf } from "./capabilities";

const supported = (told: Record<string, unknown>) => capabilitiesOf(told).filter((one) => one.has).map((one) => one.text);

// inspector: Agents view (what each supports)
describe("capabilitiesOf", () => {
  it.each([
    [{}, []],
    [{ loadSession: true }, ["Take up, with replay"]],
    [{ loadSession: false, promptCapabilities: { image: true, audio: false } }, ["Images"]],
    [{ sessionCapabilities: { fork: {}, resume: null } }, ["Fork"]],
    [{ sessionCapabilities: { archive: {} }, auth: { logout: {} } }, ["Logout", "archive"]],
    [{ sessionCapabilities: { _meta: {} }, promptCapabilities: "yes" }, []],
  ])("%o", (told, expected) => expect(supported(told)).toEqual(expected));

  it("names what is not supported", () => {
    expect(capabilitiesOf({})).toContainEqual({ text: "Fork", has: false });
  });
});
