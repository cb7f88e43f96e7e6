/** The fields of a form that an agent wants filled in, and what may be sent back; a JSON Schema of flat values, as ACP has it. */

import { defined, get, type Json, list, number, object, text } from "../fold/raw";

export interface FieldOption {
  readonly value: string;
  readonly title: string;
}

/** One field. `options` are those of `choice` (one) and `choices` (any number). */
export interface Field {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly required: boolean;
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices";
  readonly format?: string;
  readonly options: readonly FieldOption[];
  /** Least and most: characters of a text, the value of a number, chosen options. */
  readonly least?: number;
  readonly most?: number;
  readonly pattern?: string;
  readonly initial: Value;
}

export type Value = string | boolean | readonly string[];

/** Values by field, as ACP has them. */
export type Content = Readonly<Record<string, string | number | boolean | string[]>>;

/** What was filled in: what may be sent, or by field what is wrong and how to put it right. */
export type Filled =
  | { readonly ok: true; readonly content: Content }
  | { readonly ok: false; readonly wrong: Readonly<Record<string, string>> };

/** Reads the fields of a form. A field of an unknown type is a text. */
export function fields(schema: unknown): readonly Field[] {
  const required = new Set(list(get(schema, "required")));
  return Object.entries(object(get(schema, "properties"))).map(([name, property]) => field(name, property, required.has(name)));
}

/** Looks at what was filled in; a field that is empty and not required is left out. */
export function filled(all: readonly Field[], values: Readonly<Record<string, Value>>): Filled {
  const content: Record<string, Content[string]> = {};
  const wrong: Record<string, string> = {};
  for (const each of all) {
    const value = values[each.name] ?? each.initial;
    const error = problem(each, value);
    if (error !== undefined) wrong[each.name] = error;
    else if (each.kind === "number" || each.kind === "integer") {
      if (value !== "") content[each.name] = Number(value);
    } else if (each.required || !isEmpty(value)) content[each.name] = typeof value === "object" ? [...value] : value;
  }
  return Object.keys(wrong).length > 0 ? { ok: false, wrong } : { ok: true, content };
}

function field(name: string, property: unknown, required: boolean): Field {
  const type = text(get(property, "type")) ?? "string";
  const single = options(property, "enum", "oneOf");
  const several = options(get(property, "items"), "enum", "anyOf");
  const kind = type === "array" ? "choices" : single.length > 0 ? "choice" : KIND[type] ?? "text";
  return defined<Field>({
    name,
    title: text(get(property, "title")) ?? name,
    description: text(get(property, "description")),
    required,
    kind,
    format: text(get(property, "format")),
    options: kind === "choices" ? several : single,
    least: number(get(property, LEAST[kind])),
    most: number(get(property, MOST[kind])),
    pattern: text(get(property, "pattern")),
    initial: initial(kind, get(property, "default")),
  });
}

const KIND: Readonly<Record<string, Field["kind"]>> = { string: "text", number: "number", integer: "integer", boolean: "boolean" };
const LEAST = { text: "minLength", number: "minimum", integer: "minimum", boolean: "-", choice: "-", choices: "minItems" };
const MOST = { text: "maxLength", number: "maximum", integer: "maximum", boolean: "-", choice: "-", choices: "maxItems" };

function initial(kind: Field["kind"], given: unknown): Value {
  if (kind === "boolean") return given === true;
  if (kind === "choices") return list(given).flatMap((each) => text(each) ?? []);
  return typeof given === "number" ? String(given) : (text(given) ?? "");
}

function options(of: unknown, plain: string, titled: string): readonly FieldOption[] {
  const named = list(get(of, titled)).flatMap((each) => {
    const value = text(get(each, "const"));
    return value === undefined ? [] : [{ value, title: text(get(each, "title")) ?? value }];
  });
  return named.length > 0 ? named : list(get(of, plain)).flatMap((each) => (typeof each === "string" ? [{ value: each, title: each }] : []));
}

function isEmpty(value: Value): boolean {
  return typeof value === "string" ? value === "" : typeof value === "boolean" ? false : value.length === 0;
}

function problem(each: Field, value: Value): string | undefined {
  if (isEmpty(value)) return each.required ? "This is needed." : undefined;
  if (typeof value === "boolean") return undefined;
  if (typeof value !== "string") return outside(each, value.length, (bound) => `${bound} options`);
  if (each.kind === "choice") return each.options.some((option) => option.value === value) ? undefined : "Choose one of the options.";
  if (each.kind === "text") return outside(each, [...value].length, (bound) => `${bound} characters`) ?? mismatch(each, value);
  const amount = Number(value);
  if (!Number.isFinite(amount)) return "A number is needed.";
  if (each.kind === "integer" && !Number.isInteger(amount)) return "A whole number is needed.";
  return outside(each, amount, String);
}

function outside(each: Field, amount: number, words: (bound: number) => string): string | undefined {
  if (each.least !== undefined && amount < each.least) return `At least ${words(each.least)}.`;
  if (each.most !== undefined && amount > each.most) return `At most ${words(each.most)}.`;
  return undefined;
}

function mismatch(each: Field, value: string): string | undefined {
  if (each.format === "email" && !/^\S+@\S+$/.test(value)) return "An e-mail address is needed.";
  if (each.format === "uri" && !URL.canParse(value)) return "A whole address is needed, such as https://example.org.";
  if (each.pattern === undefined) return undefined;
  try {
    return new RegExp(each.pattern, "u").test(value) ? undefined : `It must look like ${each.pattern}.`;
  } catch {
    // A pattern that is none refuses nothing: the agent looks at the answer itself.
    return undefined;
  }
}

/** The parameters' form, if the question is one. */
export function schemaOf(params: Json): unknown {
  return params["requestedSchema"];
}
