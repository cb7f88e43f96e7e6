import type { PermissionMode, Whoami } from "acpd-client";

/** Who answers what an agent asks; contract 2.1. */
export const MODES: readonly { value: PermissionMode; text: string; more: string }[] = [
  { value: "default", text: "Ask me", more: "Questions wait until they are answered here or by another client." },
  { value: "acceptEdits", text: "Accept edits", more: "Edits, deletions and moves are allowed; the rest is asked." },
  { value: "bypassPermissions", text: "Allow everything", more: "Commands too, without a question. Only where nothing can be lost." },
  { value: "deny", text: "Deny", more: "Whatever is asked is rejected." },
];

/** A permission mode in the words of the form; one that is not known here in its own. */
export function permissionText(value: string): string {
  return MODES.find((mode) => mode.value === value)?.text ?? value;
}

/** The permission modes that the pages may choose. */
export function modesFor(who: Whoami | undefined): typeof MODES {
  const allowed = who?.limits?.permissionModes;
  return allowed === undefined ? MODES : MODES.filter((mode) => allowed.includes(mode.value));
}

/** What is wrong with a directory that was entered; undefined when the daemon has to say. */
export function directoryProblem(cwd: string, who: Whoami | undefined): string | undefined {
  const path = cwd.trim();
  if (path === "") return "Name a directory where acpd runs.";
  if (!path.startsWith("/")) return "Give the whole path, from /.";
  if (isWithin(path, who)) return undefined;
  return `Sessions of this token work in ${who?.limits?.roots?.join(", ") ?? "no directory"} only.`;
}

/** The directory that a form begins with: the one that was used last, if it is still allowed, else one that is there. */
export function firstDirectory(used: readonly string[], who: Whoami): string {
  return used.find((path) => isWithin(path, who)) ?? who.cwd ?? "";
}

function isWithin(path: string, who: Whoami | undefined): boolean {
  const roots = who?.limits?.roots;
  return roots === undefined || roots.some((root) => path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`));
}
