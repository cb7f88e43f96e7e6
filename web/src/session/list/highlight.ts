/** Marks the words that are searched for in what is seen, without touching it: by the CSS Custom Highlight API. */

const NAME = "found";

/** Marks all places of the words below an element; without words, or where the browser cannot, none. */
export function highlight(below: Element | undefined, words: string): void {
  if (typeof Highlight === "undefined") return;
  const needle = words.trim().toLowerCase();
  if (below === undefined || needle === "") return void CSS.highlights.delete(NAME);
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(below, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) ranges.push(...within(node, needle));
  CSS.highlights.set(NAME, new Highlight(...ranges));
}

function within(node: Node, needle: string): Range[] {
  const text = (node.textContent ?? "").toLowerCase();
  const ranges: Range[] = [];
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, Math.min(at + needle.length, node.textContent?.length ?? 0));
    ranges.push(range);
  }
  return ranges;
}
