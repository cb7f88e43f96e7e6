/** An error of JSON-RPC as a person reads it: agents say in its data what its message leaves out. */

import type { Failure } from "./items";
import { defined, get, number, text } from "./raw";

/** Where agents put the words that say more than the message; the terminal reads the same ones. */
const WORDS = ["details", "detail", "message", "description", "reason", "error"];
/** Longer reasons are cut, in units of UTF-16. */
const LONGEST = 2000;

/** Reads the error of a turn that failed. */
export function failure(error: unknown): Failure {
  const message = text(get(error, "message")) ?? "The agent answered with an error";
  const words = reason(get(error, "data"))?.trim();
  const isNew = words !== undefined && words !== "" && !message.includes(words);
  return defined<Failure>({ code: number(get(error, "code")), message, reason: isNew ? words.slice(0, LONGEST) : undefined });
}

/** The words in the data, or the data themselves where no member is known to have any. */
function reason(data: unknown): string | undefined {
  if (typeof data === "string") return data;
  if (typeof data !== "object" || data === null) return undefined;
  return worded(data) ?? (Object.keys(data).length > 0 ? JSON.stringify(data) : undefined);
}

function worded(data: object): string | undefined {
  for (const name of WORDS) {
    const value = get(data, name);
    const words = typeof value === "object" && value !== null ? worded(value) : text(value);
    if (words !== undefined && words.trim() !== "") return words;
  }
  return undefined;
}
