import type { Session, SessionState } from "acpd-client";
import { standing } from "../sessions/standing";
import { titleOf } from "../sessions/title";

/** Something that a person may want to be called for. */
export interface News {
  sessionId: string;
  title: string;
  body: string;
}

/** What of these changes is news: a session that waits for an answer now, or has ended now. `before`: states that were known. */
export function newsOf(before: ReadonlyMap<string, SessionState>, changed: readonly Session[]): News[] {
  return changed.filter((session) => isNews(before.get(session.sessionId), session.state)).map(told);
}

function isNews(before: SessionState | undefined, now: SessionState): boolean {
  return now !== before && (now === "waiting" || now === "ended");
}

function told(session: Session): News {
  const { text, more } = standing(session);
  return { sessionId: session.sessionId, title: `${text}: ${titleOf(session)}`, body: `${more}\n${session.agent} in ${session.cwd}` };
}
