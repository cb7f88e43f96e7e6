import { describe, expect, it } from "vitest";
import type { QuestionItem } from "../fold/items";
import { fields, filled, type Value } from "./fields";
import { author, outcome, pending, tone } from "./words";

const SCHEMA = {
  type: "object",
  required: ["host", "env"],
  properties: {
    host: { type: "string", title: "Host", description: "Its name in DNS", minLength: 2, maxLength: 5, pattern: "^[a-z]+$" },
    env: { type: "string", oneOf: [{ const: "s", title: "Staging" }, { const: "p", title: "Production" }] },
    size: { type: "string", enum: ["small", "large"], default: "small" },
    count: { type: "integer", minimum: 1, maximum: 9, default: 2 },
    ratio: { type: "number" },
    tls: { type: "boolean", default: true },
    zones: { type: "array", minItems: 1, items: { type: "string", enum: ["north", "south"] } },
    mail: { type: "string", format: "email" },
    site: { type: "string", format: "uri" },
    later: { type: "hologram" },
  },
};

// inspector: Session view (forms answered in place by the schema's fields)
describe("fields", () => {
  it("has each with its kind, its bounds and what it begins with", () => {
    const all = fields(SCHEMA);
    expect(all.map((field) => [field.name, field.kind, field.required, field.initial])).toEqual([
      ["host", "text", true, ""], ["env", "choice", true, ""], ["size", "choice", false, "small"], ["count", "integer", false, "2"], ["ratio", "number", false, ""],
      ["tls", "boolean", false, true], ["zones", "choices", false, []], ["mail", "text", false, ""], ["site", "text", false, ""], ["later", "text", false, ""],
    ]);
    expect(all[0]).toMatchObject({ title: "Host", description: "Its name in DNS", least: 2, most: 5 });
    expect(all[1]?.options).toEqual([{ value: "s", title: "Staging" }, { value: "p", title: "Production" }]);
  });

  it("survives a schema that is none", () => {
    for (const schema of [undefined, null, 7, { properties: [1] }, { properties: { a: null } }]) expect(() => fields(schema)).not.toThrow();
  });
});

describe("filled", () => {
  const good: Record<string, Value> = { host: "abc", env: "p" };

  it("sends what is there, with the types of the schema", () => {
    const result = filled(fields(SCHEMA), { ...good, count: "3", ratio: "0.5", zones: ["north"] });
    expect(result).toEqual({ ok: true, content: { host: "abc", env: "p", size: "small", count: 3, ratio: 0.5, tls: true, zones: ["north"] } });
  });

  it.each<[Record<string, Value>, Record<string, string>]>([
    [{ host: "" }, { host: "This is needed." }],
    [{ env: "" }, { env: "This is needed." }],
    [{ env: "x" }, { env: "Choose one of the options." }],
    [{ host: "a" }, { host: "At least 2 characters." }],
    [{ host: "abcdef" }, { host: "At most 5 characters." }],
    [{ host: "ABC" }, { host: "It must look like ^[a-z]+$." }],
    [{ count: "1.5" }, { count: "A whole number is needed." }],
    [{ count: "0" }, { count: "At least 1." }],
    [{ count: "10" }, { count: "At most 9." }],
    [{ ratio: "much" }, { ratio: "A number is needed." }],
    [{ mail: "nobody" }, { mail: "An e-mail address is needed." }],
    [{ site: "there" }, { site: "A whole address is needed, such as https://example.org." }],
    [{ host: "", count: "x" }, { host: "This is needed.", count: "A number is needed." }],
  ])("refuses %j and says what would be right", (values, wrong) => {
    expect(filled(fields(SCHEMA), { ...good, ...values })).toEqual({ ok: false, wrong });
  });
});

// inspector: Session view (who answered what)
describe("words", () => {
  const question = (answer?: QuestionItem["answer"]) => ({ type: "question", form: "permission", options: [], unasked: false, ...(answer === undefined ? {} : { answer }) }) as unknown as QuestionItem;
  const option = (kind: string) => ({ optionId: "o", name: "Yes, always", kind });

  it.each([
    [{ at: 0, by: { kind: "client", name: "REST" }, outcome: "selected", option: option("allow_always") }, "Yes, always", "by REST", "good"],
    [{ at: 0, by: { kind: "client", name: "inspector-1 (token)" }, outcome: "selected", option: option("allow_once") }, "Yes, always", "by you", "good"],
    [{ at: 0, by: { kind: "mode", name: "deny" }, outcome: "selected", option: option("reject_once") }, "Yes, always", "by the permission mode deny", "bad"],
    [{ at: 0, by: { kind: "cause", name: "cancel" }, outcome: "cancelled" }, "Not answered", "because the turn was cancelled", "still"],
    [{ at: 0, by: { kind: "client", name: "phone" }, outcome: "accept", content: {} }, "Filled in", "by phone", "good"],
    [{ at: 0, by: { kind: "cause", name: "of_later" }, outcome: "decline" }, "Declined", "because of later", "still"],
    [{ at: 0, by: { kind: "unknown" }, outcome: "hologram" }, "hologram", "", "still"],
  ] as const)("%j", (answer, what, who, colour) => {
    expect([outcome(answer), author(answer.by, (client) => client === "inspector-1 (token)"), tone(question(answer))]).toEqual([what, who, colour]);
  });

  it("waits while nothing answered", () => expect(tone(question())).toBe("wait"));

  it.each([
    ["permission", "waits for an answer"],
    ["fields", "waits for an answer"],
    ["url", "waits for the client that it is put to"],
    ["file", "waits for the client that it is put to"],
  ] as const)("%s %s", (form, expected) => expect(pending({ ...question(), form })).toBe(expected));
});
