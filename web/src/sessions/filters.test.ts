import { describe, expect, it } from "vitest";
import { filtersHref, isFiltered, readFilters, toQuery } from "./filters";

const read = (query: string) => readFilters(new URLSearchParams(query));

// inspector: Sessions view (filter by state, agent, directory, text)
describe("filters", () => {
  it.each([["#/sessions"], ["#/sessions?state=live&agent=opencode"], ["#/sessions?cwd=%2Fsrv&q=fix+it"]])("%s comes back", (href) => {
    expect(filtersHref(read(href.split("?")[1] ?? ""))).toBe(href);
  });

  it("takes a state that is none for all", () => {
    expect(read("state=sleeping").state).toBe("");
  });

  it.each([
    ["", false],
    ["q=+", false],
    ["q=a", true],
    ["state=live", true],
  ])("%s filters: %s", (query, expected) => expect(isFiltered(read(query))).toBe(expected));

  it.each([
    ["", {}],
    ["state=live", { ended: false }],
    ["state=waiting&agent=a", { agent: "a", state: "waiting" }],
    ["cwd=/srv&q=fix", { q: "fix", cwd: "/srv" }],
    ["cwd=srv&q=fix", { q: "fix srv" }],
  ])("%s asks for %o", (query, expected) => expect(toQuery(read(query))).toEqual(expected));
});
