/** Something that an agent may support. */
export interface Capability {
  text: string;
  has: boolean;
}

/** Where ACP has each in `agentCapabilities`, and what it means to a person. */
const KNOWN: readonly (readonly [path: string, text: string])[] = [
  ["loadSession", "Take up, with replay"],
  ["sessionCapabilities.resume", "Take up"],
  ["sessionCapabilities.fork", "Fork"],
  ["sessionCapabilities.list", "List"],
  ["sessionCapabilities.close", "Close"],
  ["sessionCapabilities.delete", "Delete"],
  ["sessionCapabilities.additionalDirectories", "More directories"],
  ["promptCapabilities.image", "Images"],
  ["promptCapabilities.audio", "Audio"],
  ["promptCapabilities.embeddedContext", "Embedded files"],
  ["mcpCapabilities.http", "MCP over HTTP"],
  ["mcpCapabilities.sse", "MCP over SSE"],
  ["auth.logout", "Logout"],
];

/** What an agent supports of what is known, and what else it names, under its own names. */
export function capabilitiesOf(told: Readonly<Record<string, unknown>>): Capability[] {
  const known = KNOWN.map(([path, text]) => ({ text, has: isSupported(at(told, path)) }));
  const names = new Set(KNOWN.map(([path]) => path));
  const others = Object.entries(told)
    .flatMap(([group, value]) => (isRecord(value) ? Object.entries(value).map(([name, one]) => [`${group}.${name}`, one] as const) : []))
    .filter(([path, value]) => !names.has(path) && !path.includes("_meta") && isSupported(value))
    .map(([path]) => ({ text: path.split(".").at(-1) ?? path, has: true }));
  return [...known, ...others];
}

function at(told: Readonly<Record<string, unknown>>, path: string): unknown {
  return path.split(".").reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), told);
}

/** ACP: `true`, or an object, even an empty one. */
function isSupported(value: unknown): boolean {
  return value === true || isRecord(value);
}

/** Whether a value is an object with members. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
