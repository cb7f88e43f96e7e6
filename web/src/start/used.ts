import type { Session } from "acpd-client";

/** What earlier sessions had, the latest first. */
export interface Used {
  agents: readonly string[];
  directories: readonly string[];
}

/** Agents and directories of these sessions, each once. */
export function lastUsed(sessions: readonly Session[]): Used {
  return {
    agents: [...new Set(sessions.map((session) => session.agent))],
    directories: [...new Set(sessions.map((session) => session.cwd))],
  };
}
