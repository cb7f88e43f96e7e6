// Paths of REST with a name in them.

import { ArgumentError } from "./errors.js";

/** The path of a session, or of something of it. */
export function sessionPath(sessionId: string, of = ""): string {
  return `/v1/sessions/${segment("sessionId", sessionId)}${of}`;
}

/** The path of an agent, or of something of it. */
export function agentPath(name: string, of: string): string {
  return `/v1/agents/${segment("name", name)}${of}`;
}

// `.` and `..` would lead to another path, whatever is done to them.
function segment(argument: string, value: string): string {
  if (value === "" || value === "." || value === "..") throw new ArgumentError(argument, "it names nothing");
  return encodeURIComponent(value);
}
