/** The beginning of a prompt that is too long to stand whole between messages. */

/** A prompt with more lines, or with more text than fits on about as many, is folded. */
const MOST_LINES = 15;
const MOST_LENGTH = 1800;
/** What is shown of one that is folded. */
const LINES = 12;
const LENGTH = 1400;

export interface Excerpt {
  readonly text: string;
  /** The lines of the whole. */
  readonly lines: number;
}

/** The beginning of a text; `undefined` when it is short enough to be shown whole. */
export function excerpt(text: string): Excerpt | undefined {
  const lines = text.split("\n");
  if (lines.length <= MOST_LINES && text.length <= MOST_LENGTH) return undefined;
  const first = lines.slice(0, LINES).join("\n");
  const cut = first.slice(0, LENGTH).replace(/[\uD800-\uDBFF]$/, "");
  return { text: `${cut.trimEnd()}…`, lines: lines.length };
}
