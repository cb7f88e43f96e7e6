import type { Usage } from "acpd-client";

/** Tokens that a session has used: its agent's own sum, else that of the kinds that it tells; undefined without any. */
export function tokensOf(usage: Usage | undefined): number | undefined {
  const kinds = usage?.tokens;
  if (kinds === undefined || Object.keys(kinds).length === 0) return undefined;
  return kinds["total"] ?? Object.values(kinds).reduce((sum, value) => sum + value, 0);
}
