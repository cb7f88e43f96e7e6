/** The words of an item: for the search within a session, and for the clipboard. */

import type { Content, ToolContent } from "../fold/content";
import type { Item } from "../fold/items";

const found = new WeakMap<Item, string>();

/** All that is written in an item, in lower case. An item never changes, so that it is read once. */
export function haystack(item: Item): string {
  const known = found.get(item);
  if (known !== undefined) return known;
  const text = wordsOf(item).join("\n").toLowerCase();
  found.set(item, text);
  return text;
}

/** The indices of the items that have these words, without case; none for no words. */
export function search(items: readonly Item[], words: string): readonly number[] {
  const needle = words.trim().toLowerCase();
  if (needle === "") return [];
  const hits: number[] = [];
  for (const [index, item] of items.entries()) if (haystack(item).includes(needle)) hits.push(index);
  return hits;
}

/** A whole message as markdown, by the number that its blocks have. */
export function message(items: readonly Item[], number: number): string {
  return items.flatMap((item) => (item.type === "text" && item.message === number ? [item.text] : [])).join("\n\n");
}

function wordsOf(item: Item): readonly string[] {
  switch (item.type) {
    case "text":
      return [item.text];
    case "content":
      return [contentWords(item.content)];
    case "tool":
      return [item.title, item.kind, ...item.locations.map((each) => each.path), raw(item.rawInput), ...item.content.map(toolWords), raw(item.rawOutput)];
    case "terminal":
      return [item.command, item.output];
    case "plan":
      return item.entries.map((entry) => entry.content);
    case "question":
      return [item.title, ...item.options.map((each) => each.name), raw(item.params["toolCall"])];
    case "turn_end":
      return [item.error?.message ?? item.stopReason ?? "", item.error?.reason ?? ""];
    case "run":
      return [item.agent, item.method ?? ""];
    case "end":
      return [raw(item.info)];
    case "stall":
      return ["nothing came from the agent"];
    case "note":
      return [item.text, item.detail ?? ""];
  }
}

function contentWords(content: Content): string {
  switch (content.type) {
    case "text":
      return content.text;
    case "image":
    case "audio":
      return content.mimeType;
    case "link":
      return `${content.name} ${content.uri}`;
    case "resource":
      return `${content.uri} ${content.text ?? ""}`;
    case "other":
      return raw(content.raw);
  }
}

function toolWords(content: ToolContent): string {
  switch (content.type) {
    case "content":
      return contentWords(content.content);
    case "diff":
      return `${content.path}\n${content.newText}\n${content.oldText}`;
    case "terminal":
      return "";
    case "other":
      return raw(content.raw);
  }
}

function raw(value: unknown): string {
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
