/** The line that stands for a group of items. */

import type { Item, ToolItem } from "../fold/items";
import type { Tone } from "../../ui/tone";

export interface Summary {
  /** What it is, where the title is the beginning of it. */
  readonly kind: string;
  readonly title: string;
  readonly tone: Tone;
  /** From its first to its last moment, in milliseconds; none while it goes on. */
  readonly durationMs?: number;
}

/** What a group of work says in one line. */
export function workSummary(items: readonly Item[]): Summary {
  const tools = items.filter((item): item is ToolItem => item.type === "tool");
  const failed = tools.filter((tool) => tool.status === "failed").length;
  const running = tools.findLast((tool) => tool.endAt === undefined);
  const answered = items.filter((item) => item.type === "question").length;
  const parts = [kinds(tools), ...(failed > 0 ? [`${failed} failed`] : []), ...(answered > 0 ? [`${answered} answered`] : [])];
  const kind = `${tools.length} tool calls`;
  const title = parts.join(", ");
  if (running !== undefined) return { kind, title: `${title} · ${running.title}`, tone: "busy" };
  const start = items[0]?.at ?? 0;
  const end = Math.max(...tools.map((tool) => tool.endAt ?? tool.at));
  return { kind, title, tone: failed > 0 ? "bad" : "still", durationMs: end - start };
}

/** What a thought says while it is folded. */
export function thoughtSummary(items: readonly Item[]): Summary {
  const texts = items.flatMap((item) => (item.type === "text" ? [item] : []));
  const first = texts[0];
  const last = texts.at(-1);
  if (last?.done === false) return { kind: "Thinking", title: lastLine(last.text), tone: "busy" };
  return { kind: "Thought", title: firstLine(first?.text ?? ""), tone: "still", durationMs: (last?.until ?? 0) - (first?.at ?? 0) };
}

function kinds(tools: readonly ToolItem[]): string {
  const counts = new Map<string, number>();
  for (const tool of tools) counts.set(tool.kind, (counts.get(tool.kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} ${kind.replaceAll("_", " ")}`).join(", ");
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0]?.slice(0, 200) ?? "";
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.slice(-200) ?? "";
}
