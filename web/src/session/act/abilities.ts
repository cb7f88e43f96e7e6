/** What may be done with a session now, and if it may not, why. */

import type { Scope } from "acpd-client";

export type Action = "prompt" | "image" | "cancel" | "close" | "terminate" | "fork" | "resume" | "delete" | "settings";

/** Whether an action is shown, and if it is not possible now, the reason. */
export type Ability = { readonly shown: false } | { readonly shown: true; readonly why?: string };

/** What decides. */
export interface Facts {
  readonly scope: Scope;
  /** The session was created under the caller's own token, or there are no tokens. */
  readonly isOwn: boolean;
  readonly agent: string;
  readonly isEnded: boolean;
  /** It was deleted while it was shown. */
  readonly isRemoved: boolean;
  /** It was ended for good. */
  readonly isTerminated: boolean;
  readonly isTurnActive: boolean;
  /** What the agent said that it can do; undefined while that is not known. */
  readonly capabilities?: unknown;
  /** What the daemon refused, by action, in its own words. */
  readonly refused: Readonly<Partial<Record<Action, string>>>;
}

const HIDDEN: Ability = { shown: false };

/** Decides about an action. An observer is shown none; what is shown and impossible says why. */
export function ability(action: Action, facts: Facts): Ability {
  if (facts.scope === "observe") return HIDDEN;
  if (action === "terminate" && facts.scope === "control" && !facts.isOwn) return HIDDEN;
  if (action === "delete" && facts.scope !== "admin") return HIDDEN;
  const why = reason(action, facts) ?? facts.refused[action];
  return why === undefined ? { shown: true } : { shown: true, why };
}

function reason(action: Action, facts: Facts): string | undefined {
  const { agent, isEnded, isTerminated, refused } = facts;
  if (facts.isRemoved) return "The session was removed.";
  switch (action) {
    case "prompt":
    case "settings":
      if (!isEnded) return undefined;
      return isTerminated || refused.resume !== undefined ? "The session has ended." : "The session has ended. Resume it first.";
    case "image":
      return lacks(facts, "promptCapabilities", "image") ? `${agent} takes no images.` : undefined;
    case "cancel":
      return facts.isTurnActive ? undefined : "No turn is running.";
    case "close":
      return isEnded ? "The session has ended." : undefined;
    case "terminate":
      return isTerminated ? "The session was terminated." : undefined;
    case "delete":
      return isEnded ? undefined : "The session is live. Close it first.";
    case "fork":
      return lacks(facts, "sessionCapabilities", "fork") ? `${agent} cannot fork sessions.` : undefined;
    case "resume":
      if (!isEnded) return "The session is live.";
      return isTerminated ? "The session was ended for good." : undefined;
  }
}

/** Whether the agent has said what it can do, and this is not among it. */
function lacks(facts: Facts, group: string, name: string): boolean {
  if (typeof facts.capabilities !== "object" || facts.capabilities === null) return false;
  const members = (facts.capabilities as Record<string, unknown>)[group];
  const value = typeof members === "object" && members !== null ? (members as Record<string, unknown>)[name] : undefined;
  return value === undefined || value === null || value === false;
}
