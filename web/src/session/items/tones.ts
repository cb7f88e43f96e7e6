import type { Tone } from "../../ui/tone";
import type { ToolItem } from "../fold/items";

/** The tone of a tool call: only what failed is alarming, and only what runs moves. */
export function toolTone(item: ToolItem): Tone {
  if (item.status === "failed") return "bad";
  if (item.status === "completed") return "good";
  return item.endAt === undefined ? "busy" : "still";
}
