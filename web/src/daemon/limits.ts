import type { Limits } from "acpd-client";

/** What a token may use, in words; `none` without limits. */
export function limitsInWords(limits: Limits | undefined): string {
  if (limits === undefined) return "none";
  const words = [
    limits.agents === undefined ? "" : `agents ${list(limits.agents)}`,
    limits.roots === undefined ? "" : `in ${list(limits.roots)}`,
    limits.permissionModes === undefined ? "" : `modes ${list(limits.permissionModes)}`,
    limits.mcp === undefined ? "" : limits.mcp === "none" ? "no MCP servers" : "MCP servers over HTTP",
  ].filter((word) => word !== "");
  return words.length === 0 ? "none" : words.join("; ");
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}
