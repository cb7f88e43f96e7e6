/** What a key of the transcript means. A key that is typed into something means nothing here, but to leave it. */
export type Key = "question" | "error" | "errorBefore" | "end" | "search" | "prompt" | "help" | "leave" | "cancel" | Option;

/** The option of the open question with this number, from 1. */
export interface Option {
  readonly option: number;
}

/** Where a key is pressed: in the prompt, in another field, or in none. */
export interface Place {
  readonly field: "none" | "prompt" | "search" | "other";
  /** Nothing is written in the field. */
  readonly isEmpty: boolean;
}

/** Two presses of Esc within so many milliseconds cancel the turn. */
export const TWICE_MS = 1000;

const KEYS: Readonly<Record<string, Key>> = { q: "question", e: "error", E: "errorBefore", G: "end", "/": "search", p: "prompt", "?": "help" };

/** The keys with what they do, for people. */
export const HELP: readonly (readonly [string, string])[] = [
  ["q", "to the question that waits"],
  ["1 to 9", "that option of the question; also in an empty prompt"],
  ["Esc", "leaves the prompt, the search or the question"],
  ["Esc Esc", "cancels the turn; also Ctrl+."],
  ["e, E", "next error, error before"],
  ["G", "to the end"],
  ["/", "search in this session"],
  ["p", "to the prompt"],
  ["Enter", "in the prompt: send; with Shift: a new line"],
];

type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "altKey" | "metaKey"> & Partial<Pick<KeyboardEvent, "isComposing" | "repeat">>;

/** Reads a key, unless it is typed or has another meaning with Ctrl, Alt or Meta. */
export function keyOf(event: Pressed, { field, isEmpty }: Place): Key | undefined {
  if (event.isComposing === true || event.altKey) return undefined;
  if (event.ctrlKey || event.metaKey) return event.key === "." ? "cancel" : undefined;
  // A search that has words is emptied first, by the browser.
  if (event.key === "Escape") return field === "search" && !isEmpty ? undefined : "leave";
  const isDigit = /^[1-9]$/.test(event.key) && event.repeat !== true;
  if (isDigit && (field === "none" || (field === "prompt" && isEmpty))) return { option: Number(event.key) };
  return field === "none" ? KEYS[event.key] : undefined;
}
