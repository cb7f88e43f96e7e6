import { AcpdClient } from "acpd-client";
import { access } from "./access.svelte";
import { fromDaemon } from "./errors";
import { link } from "./link.svelte";

/** The one way from the pages to the daemon that they come from: with their token, and an ear for how it goes. */
export const api = new AcpdClient({ url: "", fetch: send });

/** A token for the single-use code of `acpd open`. Throws what `fetch` throws; a refusal as a sentence of the daemon's. */
export async function exchange(code: string): Promise<string> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) };
  const response = await send("/v1/open", init);
  const answer: unknown = await response.json();
  if (response.ok && typeof answer === "object" && answer !== null && "token" in answer) return String(answer.token);
  throw new Error((await detailOf(response)) ?? "the daemon did not take it");
}

async function send(input: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (access.token !== undefined) headers.set("Authorization", `Bearer ${access.token}`);
  try {
    const response = await fetch(input, { ...init, headers });
    link.told(fromDaemon(response.status, response.headers.get("Content-Type")));
    if (response.status === 401) access.refuse((await detailOf(response.clone())) ?? "");
    return response;
  } catch (error) {
    if (init.signal?.aborted !== true) link.told(false);
    throw error;
  }
}

/** What a problem document says; undefined for what is none. */
async function detailOf(response: Response): Promise<string | undefined> {
  const problem: unknown = await response.json().catch(() => undefined);
  return typeof problem === "object" && problem !== null && "detail" in problem ? String(problem.detail) : undefined;
}
