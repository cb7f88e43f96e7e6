import { AbortedError, NetworkError, type ProblemDocument, ProtocolError } from "acpd-client";

const AWAY = "The daemon does not answer. If it was stopped, start it again (acpd serve); the pages go on by themselves.";

/** What is answered in front of a daemon that is not there, by a proxy; the daemon's own answers are problems. */
export function fromDaemon(status: number, contentType: string | null): boolean {
  return !isGateway(status) || (contentType ?? "").startsWith("application/problem+json");
}

/** Whether a request was given up by the page itself. */
export function isAbort(error: unknown): boolean {
  return error instanceof AbortedError;
}

/** Whether there was no daemon to answer. */
export function isAway(error: unknown): boolean {
  return error instanceof NetworkError || (error instanceof ProtocolError && isGateway(error.status));
}

/** An error as a sentence that says what happened and what to do. */
export function inWords(error: unknown): string {
  if (isAway(error)) return AWAY;
  return error instanceof Error ? sentence(error.message) : "Something unexpected happened.";
}

/** Why a token is asked for. `had`: one was sent. */
export function refusal({ type }: Partial<ProblemDocument>, had: boolean): string {
  if (type === "urn:sandbox-agent:error:token_expired") return "This token has expired. Another one is needed.";
  return had ? "The daemon does not know this token. It may have been revoked, or belong to another daemon." : "This daemon gives access by tokens.";
}

/** With a capital letter in front and a full stop behind. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const start = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}

function isGateway(status: number | undefined): boolean {
  return status === 502 || status === 503 || status === 504;
}
