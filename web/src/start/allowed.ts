import type { PermissionMode, Whoami } from "acpd-client";

/** Who answers what an agent asks; contract 2.1. */
export const MODES: readonly { value: PermissionMode; text: string; more: string }[] = [
  { value: "default", text: "Ask me", more: "Questions wait until they are answered here or by another client." },
  { value: "acceptEdits", text: "Accept edits", more: "Edits, deletions and moves are allowed; the rest is asked." },
  { value: "bypassPermissions", text: "Allow everything", more: "Commands too, without a question. Only where nothing can be lost." },
  { value: "deny", text: "Deny", more: "Whatever is asked is rejected." },
];

/** The permission modes that the pages may choose. */
export function modesFor(who: Whoami | undefined): typeof MODES {
  const allowed = who?.limits?.permissionModes;
  return allowed === undefined ? MODES : MODES.filter((mode) => allowed.includes(mode.value));
}

/** Whether the pages may begin sessions of this agent. */
export function mayUse(who: Whoami | undefined, agent: string): boolean {
  return who?.limits?.agents?.includes(agent) ?? true;
}

/** A directory that is there, for a session that needs none in particular. */
export function directoryOf(who: Whoami | undefined): string {
  return who?.limits?.roots?.[0] ?? "/";
}

/** What is wrong with a directory that was entered; undefined when the daemon has to say. */
export function directoryProblem(cwd: string, who: Whoami | undefined): string | undefined {
  const path = cwd.trim();
  if (path === "") return "Name a directory where acpd runs.";
  if (!path.startsWith("/")) return "Give the whole path, from /.";
  const roots = who?.limits?.roots;
  if (roots === undefined || roots.some((root) => path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`))) return undefined;
  return `Sessions of this token work in ${roots.join(", ")} only.`;
}
