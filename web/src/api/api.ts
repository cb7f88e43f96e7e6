import { AcpdClient, type ProblemDocument } from "acpd-client";
import { access } from "./access.svelte";
import { fromDaemon, refusal } from "./errors";
import { openEventPages } from "./event-pages";
import { openEventSocket } from "./event-socket";
import { link } from "./link.svelte";
import { tab } from "./tab";

/** A path of a session's events, as the client asks for them. */
const EVENTS = /^(\/v1\/sessions\/[^/?]+)\/events\?after=(\d+)$/;

/** The one way from the pages to the daemon that they come from: with their token, and an ear for how it goes. */
export const api = new AcpdClient({ url: "", fetch: send });

/**
 * A token for the single-use code of `acpd open`. Throws an `AcpdError`. The token of this tab is not sent: one that is
 * old would be refused in place of the code.
 */
export async function exchange(code: string): Promise<string> {
  return (await new AcpdClient({ url: "" }).open(code)).token;
}

async function send(input: string, init: RequestInit): Promise<Response> {
  const isStream = new Headers(init.headers).get("Accept") === "text/event-stream";
  const [, session, after] = (isStream ? EVENTS.exec(input) : undefined) ?? [];
  return session === undefined ? request(input, init) : follow(input, session, Number(after), init);
}

/** A stream of events that takes none of the few connections of the browser. */
async function follow(input: string, session: string, after: number, init: RequestInit): Promise<Response> {
  const signal = init.signal ?? undefined;
  const carried = await openEventSocket(new URL(input, location.href), access.token, signal);
  if (carried !== undefined) link.told(true);
  if (carried !== undefined) return carried;
  // One connection of HTTP/2 has room for all streams.
  if (isMultiplexed()) return request(input, init);
  return openEventPages(session, after, (path) => request(path, { ...init, headers: { Accept: "application/json" } }));
}

async function request(input: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("Acpd-Client", tab);
  if (access.token !== undefined) headers.set("Authorization", `Bearer ${access.token}`);
  const answered = link.waits(init.method ?? "GET", input);
  try {
    const response = await fetch(input, { ...init, headers });
    link.told(fromDaemon(response.status, response.headers.get("Content-Type")));
    if (response.status === 401) access.refuse(refusal(await problemOf(response.clone()), access.token !== undefined));
    return response;
  } catch (error) {
    if (init.signal?.aborted !== true) link.told(false);
    throw error;
  } finally {
    answered();
  }
}

/** Whether the pages came over a protocol that has many requests on one connection. */
function isMultiplexed(): boolean {
  const [page] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return page !== undefined && ["h2", "h3"].includes(page.nextHopProtocol);
}

/** The problem document that is the answer; what is none says nothing. */
async function problemOf(response: Response): Promise<Partial<ProblemDocument>> {
  const body: unknown = await response.json().catch(() => undefined);
  return typeof body === "object" && body !== null ? body : {};
}
