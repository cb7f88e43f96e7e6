import type { SessionsFilter, SessionState } from "acpd-client";

/** What of the list is shown, as the fragment names it: `#/sessions?state=waiting&agent=...&cwd=...&q=...`. */
export interface Filters {
  /** Empty for all, `live` for all that have not ended. */
  state: "" | "live" | SessionState;
  agent: string;
  cwd: string;
  q: string;
}

export const STATES: readonly { value: Filters["state"]; text: string }[] = [
  { value: "", text: "All states" },
  { value: "live", text: "Live" },
  { value: "waiting", text: "Waiting for you" },
  { value: "running", text: "Running" },
  { value: "idle", text: "Idle" },
  { value: "ended", text: "Ended" },
];

/** The filters in a fragment; a state that is none counts as all. */
export function readFilters(query: URLSearchParams): Filters {
  const state = query.get("state") ?? "";
  return {
    state: STATES.find((one) => one.value === state)?.value ?? "",
    agent: query.get("agent") ?? "",
    cwd: query.get("cwd") ?? "",
    q: query.get("q") ?? "",
  };
}

/** The place of the list under these filters. */
export function filtersHref(filters: Filters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== "") query.set(name, value);
  const text = query.toString();
  return text === "" ? "#/sessions" : `#/sessions?${text}`;
}

/** Whether they leave anything out. */
export function isFiltered(filters: Filters): boolean {
  return Object.values(filters).some((value) => value.trim() !== "");
}

/** What the daemon is asked. A directory that is not absolute is looked for as a word: the daemon compares whole ones. */
export function toQuery(filters: Filters): SessionsFilter {
  const absolute = filters.cwd.startsWith("/");
  const words = [filters.q, absolute ? "" : filters.cwd].join(" ").trim();
  return {
    ...(filters.agent === "" ? {} : { agent: filters.agent }),
    ...(words === "" ? {} : { q: words }),
    ...(absolute ? { cwd: filters.cwd } : {}),
    ...stateQuery(filters.state),
  };
}

function stateQuery(state: Filters["state"]): SessionsFilter {
  if (state === "") return {};
  return state === "live" ? { ended: false } : { state };
}
