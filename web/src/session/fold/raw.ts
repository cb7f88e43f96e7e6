/** Reading what others wrote: agents say what they like, so every value is looked at before it is used. */

/** An object of unknown members. */
export type Json = Readonly<Record<string, unknown>>;

const NOTHING: Json = Object.freeze({});

/** The value if it is an object, else an empty one. */
export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : NOTHING;
}

/** The value at the end of a path of members, or undefined where the path ends early. */
export function get(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = object(found)[name];
  return found;
}

/** The value if it is a string. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The value if it is a finite number. */
export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The value if it is an array, else an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The members that are there: an absent member is not the same as one that is undefined. */
export function defined<T extends object>(members: { readonly [K in keyof T]: T[K] | undefined }): T {
  const kept = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as T;
}
