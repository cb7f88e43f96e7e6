/** What a key of the transcript means. A key that is typed into something means nothing here. */
export type Key = "question" | "error" | "errorBefore" | "end" | "search" | "prompt" | "help";

const KEYS: Readonly<Record<string, Key>> = { q: "question", e: "error", E: "errorBefore", G: "end", "/": "search", p: "prompt", "?": "help" };

/** The keys with what they do, for people. */
export const HELP: readonly (readonly [string, string])[] = [
  ["q", "to the question that waits"],
  ["1 to 9", "in the question: that option"],
  ["Esc", "back from the question"],
  ["e, E", "next error, error before"],
  ["G", "to the end"],
  ["/", "search in this session"],
  ["p", "to the prompt"],
  ["Enter", "in the prompt: send; with Shift: a new line"],
];

/** Reads a key, unless it is typed or has another meaning with Ctrl, Alt or Meta. */
export function keyOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "altKey" | "metaKey">, isTyped: boolean): Key | undefined {
  return isTyped || event.ctrlKey || event.altKey || event.metaKey ? undefined : KEYS[event.key];
}
