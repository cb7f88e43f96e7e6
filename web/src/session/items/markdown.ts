/**
 * Markdown of agents to HTML that can do nothing: no style, no script, no form, and nothing that is loaded. What links
 * elsewhere opens a tab of its own; a picture is a link to it.
 */

import DOMPurify from "dompurify";
import { Marked } from "marked";
import type { TextItem } from "../fold/items";

const TAGS = [
  "a", "b", "blockquote", "br", "code", "del", "em", "h2", "h3", "h4", "h5", "h6", "hr", "i", "kbd", "li", "ol", "p", "pre", "s", "strong",
  "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

/** Tags that agents use in tables and texts, and that do nothing but that. */
const HARMLESS = /^<\/?(?:br|sub|sup|kbd)\s*\/?>$/i;

const marked = new Marked({
  gfm: true,
  // Agents write lines as they mean them.
  breaks: true,
  renderer: {
    // The page has the first level.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 1);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    image({ href, text }) {
      const name = escaped(text === "" ? href : text);
      return `<a href="${escaped(href)}">Image: ${name}</a>`;
    },
    // What looks like HTML is what the agent wrote: it is shown, not obeyed.
    html({ text, block }) {
      if (HARMLESS.test(text)) return text;
      const shown = escaped(text.trimEnd()).replaceAll("\n", "<br>");
      return block === true ? `<p>${shown}</p>\n` : shown;
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

const rendered = new WeakMap<TextItem, string>();

/** The HTML of a block; each is rendered once. */
export function html(item: TextItem): string {
  const known = rendered.get(item);
  if (known !== undefined) return known;
  const made = toHtml(item.text);
  rendered.set(item, made);
  return made;
}

/** Markdown to HTML that is safe to be in the page. */
export function toHtml(markdown: string): string {
  const parsed = marked.parse(plain(markdown), { async: false });
  return DOMPurify.sanitize(parsed, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "start", "target", "rel"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  });
}

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

/** A text without the colours and marks that are meant for a terminal. */
export function plain(text: string): string {
  return text.includes("\u001b") ? text.replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, "") : text;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
