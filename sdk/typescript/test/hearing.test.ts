import { expect, test } from "vitest";
import { NetworkError, ProblemError, ProtocolError } from "../src/errors.js";
import { afterClosed, afterFailure, afterLook, hear } from "../src/hearing.js";
import type { ProblemCode } from "../src/errors.js";

const event = (seq: unknown) => ({ event: "update", data: JSON.stringify({ seq, kind: "update" }) });
const problem = (code: ProblemCode, status: number) =>
  new ProblemError({ type: `urn:sandbox-agent:error:${code}`, title: "", status, detail: "" });

// contract 1.6: exactly what is missing: none is given twice, none is passed over
test.each([
  [1, 0, "event"],
  [8, 7, "event"],
  [7, 7, "repeat"],
  [1, 7, "repeat"],
])("event %i behind event %i", (seq, after, what) => {
  expect(hear(event(seq), after).what).toBe(what);
});

// contract 1.6: what cannot be is an error, never a hole
test.each([
  ["a hole", event(9), 7],
  ["a number that is none", event("8"), 7],
  ["half a number", event(8.5), 7],
  ["no JSON", { event: "update", data: "{" }, 7],
  ["a list", { event: "update", data: "[]" }, 7],
  ["no kind", { event: "", data: '{"seq":8}' }, 7],
])("%s fails", (_name, message, after) => {
  expect(() => hear(message, after)).toThrow(ProtocolError);
});

// protocol: A stream that acpd ends before the session does ends with `closed`
test.each([
  ['{"reason":"deleted","detail":"the session was removed"}', "removed"],
  ['{"reason":"shutdown","detail":"reconnect"}', "again"],
  ['{"reason":"stalled","detail":""}', "again"],
  ['{"reason":"revoked"}', "again"],
  ['{"reason":"of_a_later_version"}', "again"],
  ['{"reason":"history_unreadable","detail":"block 3"}', "fail"],
  ["{", "again"],
])("closed %s: %s", (data, next) => {
  const heard = hear({ event: "closed", data }, 7);
  expect(heard.what === "closed" && afterClosed(heard.closed).next).toBe(next);
});

// contract 7.3: `handover` says when to come back
test("closed with a time to come back", () => {
  const heard = hear({ event: "closed", data: '{"reason":"handover","detail":"","retryMs":250}' }, 7);
  expect(heard.what === "closed" && afterClosed(heard.closed)).toMatchObject({ next: "again", afterMs: 250 });
});

// inspector: SDK: reconnects by cursor; what does not pass by itself is told
test.each([
  ["cut", new NetworkError("cut"), true, "again"],
  ["not there yet", new NetworkError("refused"), false, "again"],
  ["stopping", problem("shutting_down", 503), true, "again"],
  ["busy", problem("busy", 503), true, "again"],
  ["too many", problem("too_many_connections", 429), true, "again"],
  ["a proxy without its daemon", new ProtocolError("", 502), true, "again"],
  ["removed meanwhile", problem("session_not_found", 404), true, "removed"],
  ["never there", problem("session_not_found", 404), false, "fail"],
  ["token revoked", problem("unauthorized", 401), true, "fail"],
  ["cursor of the future", problem("cursor_in_the_future", 409), true, "fail"],
  ["no acpd", new ProtocolError("", 200), true, "fail"],
])("failure: %s", (_name, error, found, next) => {
  expect(afterFailure(error, found).next).toBe(next);
});

// contract 1.6: after `ended` the stream ends; an end without it is none
test.each([
  [{ ended: true, eventCount: 7 }, 7, "ended"],
  [{ ended: true, eventCount: 8 }, 7, "again"],
  [{ ended: false, eventCount: 7 }, 7, "again"],
])("a stream ends and the session is %o behind event %i: %s", (session, after, next) => {
  expect(afterLook(session, after).next).toBe(next);
});

// contract 7.3: a question is read from what the agent sent, as far as that can be used; its JSON stays as it was recorded
test.each([
  ["permission_requested", { options: [{ optionId: "a", name: "Yes", kind: "allow_once" }] }, { toolCall: undefined, options: [{ optionId: "a", name: "Yes", kind: "allow_once" }] }],
  ["permission_requested", { toolCall: { toolCallId: "t" }, options: [{ optionId: 7 }, null, "x"] }, { toolCall: { toolCallId: "t" }, options: [] }],
  ["permission_requested", null, { toolCall: undefined, options: [] }],
  ["elicitation_requested", { message: "Where to?" }, { message: "Where to?", request: { message: "Where to?" } }],
  ["elicitation_requested", {}, { message: "", request: undefined }],
  ["update", { options: [] }, undefined],
])("the question of %s with %j", (kind, params, question) => {
  const data = JSON.stringify({ seq: 1, kind, message: { params } });
  const heard = hear({ event: kind, data }, 0);
  expect(heard).toMatchObject({ what: "event" });
  if (heard.what !== "event") return;
  expect("question" in heard.event ? heard.event.question : undefined).toEqual(question);
  expect(JSON.stringify(heard.event)).toBe(data);
});
