import type { Session } from "acpd-client";

/** What people know a session by: its title, else the words that it began with, else `otherwise`. */
export function titleOf(session: Pick<Session, "title" | "firstPrompt"> | undefined, otherwise = "Untitled"): string {
  return session?.title ?? session?.firstPrompt ?? otherwise;
}
