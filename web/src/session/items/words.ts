import { count } from "../../ui/format";
import type { Failure, TurnEndItem } from "../fold/items";

const STOPS: Readonly<Record<string, string>> = {
  end_turn: "Done",
  cancelled: "Cancelled",
  refusal: "The agent refused",
  max_tokens: "Stopped: too many tokens",
  max_turn_requests: "Stopped: too many requests in one turn",
};

/** How a turn ended. */
export function stopped(item: TurnEndItem): string {
  if (item.error !== undefined) return `The turn failed: ${failed(item.error)}`;
  const words = STOPS[item.stopReason ?? ""] ?? (item.stopReason?.replaceAll("_", " ") || "Ended");
  return item.ignoredCancel ? `${words} (the agent did not heed it)` : words;
}

function failed({ message, reason }: Failure): string {
  return reason === undefined ? message : `${message}: ${reason}`;
}

/** The tokens of a turn, as its agent told them. */
export function used(item: TurnEndItem): string {
  return Object.entries(item.usage ?? {})
    .flatMap(([name, value]) => (typeof value === "number" && name.endsWith("Tokens") && name !== "totalTokens" ? [`${count(value)} ${kind(name)}`] : []))
    .join(", ");
}

function kind(name: string): string {
  return name.replace(/Tokens$/, "").replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
