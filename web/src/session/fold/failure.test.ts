import { expect, it } from "vitest";
import { failure } from "./failure";

// inspector: Transcript (the reason of a failed turn), W3: as the terminal reads it (crates/acpd/src/view/login.rs)
it.each([
  [{ code: -32603, message: "Internal error", data: { details: "429 Too Many Requests: retry in 20s" } }, "429 Too Many Requests: retry in 20s"],
  [{ message: "Internal error", data: "no key" }, "no key"],
  [{ message: "Internal error", data: { message: "model not found" } }, "model not found"],
  [{ message: "Internal error", data: { error: { message: "quota" } } }, "quota"],
  [{ message: "Internal error", data: { error: "quota" } }, "quota"],
  [{ message: "Internal error", data: { retryAfter: 20 } }, '{"retryAfter":20}'],
  [{ message: "Internal error", data: { details: "", reason: "out of credit" } }, "out of credit"],
  [{ message: "Internal error: no key", data: { details: "no key" } }, undefined],
  [{ message: "Internal error", data: { details: {} } }, '{"details":{}}'],
  [{ message: "Internal error", data: {} }, undefined],
  [{ message: "Internal error", data: null }, undefined],
  [{ message: "Internal error" }, undefined],
])("%j", (error, reason) => {
  expect(failure(error).reason).toBe(reason);
});

it("has words for an error that is none", () => {
  expect(failure("x")).toEqual({ message: "The agent answered with an error" });
});
