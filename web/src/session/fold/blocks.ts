/**
 * Streamed markdown in blocks that can be shown by themselves: a block is finished where a blank line ends a paragraph,
 * a list or a fence, so that each is rendered once, however long the message becomes.
 */

/** A longer block is cut, in units of UTF-16: the work for one piece of a stream stays bounded. */
export const BLOCK_LIMIT = 6000;

/** What is needed of a line to see whether it begins a list item: a number of up to nine digits, its dot and a space. */
const ENOUGH = 12;

/** A longer line opens no fence: it would be repeated in each block that it is cut into. */
const LONGEST_FENCE = 200;

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const LIST_ITEM = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;

/** The block that still grows. */
export interface Running {
  readonly text: string;
  /** Where its last, unfinished line begins. */
  readonly line: number;
  /** The line that opened the fence in which it is. */
  readonly fence: string;
  /** Its last whole line is blank. */
  readonly blank: boolean;
}

export const EMPTY: Running = { text: "", line: 0, fence: "", blank: false };

/** Adds a piece; gives the blocks that are finished by it, and the one that goes on. */
export function append(running: Running, piece: string): { readonly finished: readonly string[]; readonly running: Running } {
  const finished: string[] = [];
  let now: Running = { ...running, text: running.text + piece };
  for (;;) {
    const step = advance(now);
    if (step === undefined) return { finished, running: now };
    if (step.cut !== undefined && step.cut.trim() !== "") finished.push(step.cut.replace(/\s+$/, ""));
    now = step.running;
  }
}

interface Step {
  readonly cut?: string;
  readonly running: Running;
}

function advance(now: Running): Step | undefined {
  const end = now.text.indexOf("\n", now.line);
  if (now.blank && now.line > 0 && isDecidable(now, end)) {
    const isContinued = continues(now.text, now.line);
    const rest = { ...EMPTY, text: now.text.slice(now.line) };
    return isContinued ? { running: { ...now, blank: false } } : { cut: now.text.slice(0, now.line), running: rest };
  }
  if (end >= 0) return overLines(now, end);
  return now.text.length > BLOCK_LIMIT ? withinLine(now) : undefined;
}

/** Whether enough of the line behind a blank one is there to say if it belongs to the same block. */
function isDecidable(now: Running, end: number): boolean {
  return end >= 0 ? now.text.slice(now.line, end).trim() !== "" : now.text.length - now.line >= ENOUGH;
}

function continues(text: string, line: number): boolean {
  const next = text.slice(line, line + ENOUGH);
  return /^\s/.test(next) || (LIST_ITEM.test(text) && LIST_ITEM.test(next));
}

function overLines(now: Running, end: number): Step {
  const line = now.text.slice(now.line, end).replace(/\r$/, "");
  const fence = fenceAfter(now.fence, line);
  const running = { text: now.text, line: end + 1, fence, blank: fence === "" && line.trim() === "" };
  if (end + 1 < BLOCK_LIMIT) return { running };
  return { cut: closed(now.text.slice(0, end + 1), fence), running: opened(now.text.slice(end + 1), fence) };
}

/** A line that is itself too long is cut at its last space. */
function withinLine(now: Running): Step {
  const space = now.text.lastIndexOf(" ", BLOCK_LIMIT);
  const at = space > now.line ? space + 1 : beforePair(now.text, BLOCK_LIMIT);
  return { cut: closed(now.text.slice(0, at), now.fence), running: opened(now.text.slice(at), now.fence) };
}

function beforePair(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code < 0xdc00 ? at - 1 : at;
}

function fenceAfter(fence: string, line: string): string {
  const found = FENCE.exec(line);
  const mark = found?.[1] ?? "";
  if (fence === "" && line.length > LONGEST_FENCE) return "";
  if (fence === "") return mark === "" || (mark.startsWith("`") && (found?.[2] ?? "").includes("`")) ? "" : line;
  const open = FENCE.exec(fence)?.[1] ?? "";
  const closes = mark.startsWith(open.charAt(0)) && mark.length >= open.length && (found?.[2] ?? "").trim() === "";
  return mark !== "" && closes ? "" : fence;
}

/** A block that is cut within a fence is closed, and the next one opened again: both are code. */
function closed(text: string, fence: string): string {
  const mark = FENCE.exec(fence)?.[1];
  return mark === undefined ? text : `${text.replace(/\n$/, "")}\n${mark}`;
}

function opened(text: string, fence: string): Running {
  return fence === "" ? { ...EMPTY, text } : { text: `${fence}\n${text}`, line: fence.length + 1, fence, blank: false };
}
