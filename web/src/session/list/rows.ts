/** What stands in the list of a session: its items in their order, with work that belongs together behind one line. */

import { isOpen, type Item, type QuestionItem, type TextItem, type ToolItem } from "../fold/items";

/** What a list can be narrowed to. */
export const KINDS = ["messages", "thoughts", "tools", "questions", "errors"] as const;
export type Kind = (typeof KINDS)[number];

/** A line of the list. `depth` is 1 within an opened group; `begins`: the first of the blocks of a message. */
export type Row =
  | { readonly key: string; readonly type: "item"; readonly item: Item; readonly depth: 0 | 1; readonly begins: boolean }
  | { readonly key: string; readonly type: "group"; readonly of: "work" | "thoughts"; readonly items: readonly Item[]; readonly isOpen: boolean };

export interface Choice {
  /** None: everything is shown. */
  readonly kinds: ReadonlySet<Kind>;
  /** Keys of opened groups. */
  readonly opened: ReadonlySet<string>;
}

/** The lines for these items. With kinds chosen nothing is grouped: what is left keeps its order. */
export function rows(items: readonly Item[], choice: Choice): readonly Row[] {
  const all: Row[] = [];
  if (choice.kinds.size > 0) {
    const left = items.filter((item) => isShown(item) && kindsOf(item).some((kind) => choice.kinds.has(kind)));
    for (const item of left) push(all, item, 0);
    return all;
  }
  for (let at = 0; at < items.length; ) {
    const end = endOfGroup(items, at);
    add(all, items.slice(at, end).filter(isShown), choice.opened);
    at = end;
  }
  return all;
}

/** The key of the group in which an item is, whose first item this is. */
export function groupKey(first: Item): string {
  return `group ${first.key}`;
}

/** The kinds under which an item is found. */
export function kindsOf(item: Item): readonly Kind[] {
  switch (item.type) {
    case "text":
    case "content":
      return [item.voice === "thought" ? "thoughts" : "messages"];
    case "tool":
      return item.status === "failed" ? ["tools", "errors"] : ["tools"];
    case "terminal":
      return isFailure(item.exitCode, item.signal) ? ["tools", "errors"] : ["tools"];
    case "plan":
      return ["messages"];
    case "question":
      return ["questions"];
    case "turn_end":
      return item.error === undefined ? ["messages"] : ["errors"];
    case "run":
      return [];
    case "end":
      return item.info.reason === "error" ? ["errors"] : [];
    case "stall":
      return ["errors"];
    case "note":
      return item.level === "error" || item.level === "warning" ? ["errors"] : [];
  }
}

/** A terminal is in the tool call that shows it. */
function isShown(item: Item): boolean {
  return item.type !== "terminal" || item.callId === undefined;
}

function isFailure(exitCode: number | undefined, signal: string | undefined): boolean {
  return signal !== undefined || (exitCode !== undefined && exitCode !== 0);
}

function endOfGroup(items: readonly Item[], at: number): number {
  const first = items[at];
  let end = at + 1;
  if (first === undefined) return end;
  if (isThought(first)) while (isSameThought(items[end], first)) end += 1;
  else if (isWork(first)) while (isWork(items[end])) end += 1;
  return end;
}

function isThought(item: Item | undefined): item is TextItem {
  return item?.type === "text" && item.voice === "thought";
}

function isSameThought(item: Item | undefined, first: TextItem): boolean {
  return isThought(item) && item.turn === first.turn;
}

/** What can be folded away: it does not wait for a person. */
function isWork(item: Item | undefined): boolean {
  if (item === undefined) return false;
  if (item.type === "question") return isAnswered(item);
  return item.type === "tool" || item.type === "terminal" || (item.type === "note" && item.level === "quiet");
}

function isAnswered(item: QuestionItem): boolean {
  return !isOpen(item) && item.form === "permission";
}

function isTool(item: Item): item is ToolItem {
  return item.type === "tool";
}

function add(all: Row[], members: readonly Item[], opened: ReadonlySet<string>): void {
  const first = members[0];
  if (first === undefined) return;
  const isGroup = isThought(first) || members.filter(isTool).length > 1;
  if (!isGroup) {
    for (const item of members) push(all, item, 0);
    return;
  }
  const key = groupKey(first);
  const isOpened = opened.has(key);
  all.push({ key, type: "group", of: isThought(first) ? "thoughts" : "work", items: members, isOpen: isOpened });
  if (isOpened) for (const item of members) push(all, item, 1);
}

function push(all: Row[], item: Item, depth: 0 | 1): void {
  all.push({ key: item.key, type: "item", item, depth, begins: item.type === "text" && !hasBegun(all, item.message) });
}

/** Whether a message has words right above, be there pictures between. */
function hasBegun(all: readonly Row[], message: number): boolean {
  const last = all.findLast((row) => row.type !== "item" || row.item.type !== "content" || row.item.message !== message);
  return last?.type === "item" && last.item.type === "text" && last.item.message === message;
}
