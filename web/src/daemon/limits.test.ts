import { expect, it } from "vitest";
import { limitsInWords } from "./limits";

// contract 7.2: limits of a token; inspector: Daemon view
it.each([
  [undefined, "none"],
  [{}, "none"],
  [{ agents: ["a", "b"], mcp: "none" as const }, "agents a, b; no MCP servers"],
  [{ roots: ["/srv"], permissionModes: ["deny" as const], mcp: "http" as const }, "in /srv; modes deny; MCP servers over HTTP"],
  [{ agents: [] }, "agents none"],
])("%o is %s", (limits, words) => expect(limitsInWords(limits)).toBe(words));
