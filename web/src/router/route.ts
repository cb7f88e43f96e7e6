/** A place in the pages, as the fragment of the address names it. */
export type Route =
  | { view: "sessions"; filters: URLSearchParams }
  | { view: "session"; id: string; part: string; query: URLSearchParams }
  | { view: "start" }
  | { view: "agents" }
  | { view: "daemon" }
  | { view: "unknown"; path: string };

/**
 * The place that a fragment names: `#/sessions?state=waiting`, `#/sessions/ID`, `#/sessions/ID/PART`, ...
 * An empty one is the list of sessions.
 */
export function parseRoute(fragment: string): Route {
  const [path = "", search = ""] = split(fragment.replace(/^#/, ""), "?");
  const [view = "", ...rest] = path.split("/").filter((part) => part !== "");
  const query = new URLSearchParams(search);
  const [id, part, ...more] = rest.map(decoded);
  if (view === "" || (view === "sessions" && id === undefined)) return { view: "sessions", filters: query };
  if (view === "sessions" && id !== undefined && more.length === 0) {
    return { view: "session", id, part: part ?? "", query };
  }
  if (rest.length === 0 && (view === "start" || view === "agents" || view === "daemon")) return { view };
  return { view: "unknown", path };
}

/** The address of a session, and of a part of its page. */
export function sessionHref(id: string, part = ""): string {
  return `#/sessions/${encodeURIComponent(id)}${part === "" ? "" : `/${encodeURIComponent(part)}`}`;
}

/** What `acpd open` passes: a single-use code, and the place that is to be shown; `#code=...&to=/sessions/ID`. */
export interface Opening {
  code: string;
  /** A fragment. */
  place: string;
}

/** Reads what `acpd open` has passed in a fragment, if it has. */
export function openingOf(fragment: string): Opening | undefined {
  const passed = new URLSearchParams(fragment.replace(/^#/, ""));
  const code = passed.get("code");
  if (code === null) return undefined;
  const to = passed.get("to") ?? "";
  return { code, place: to.startsWith("/") ? `#${to}` : "#/sessions" };
}

function split(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
