import { AcpdClient, type ProblemDocument } from "acpd-client";
import { access } from "./access.svelte";
import { fromDaemon, refusal } from "./errors";
import { link } from "./link.svelte";
import { tab } from "./tab";

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
  const headers = new Headers(init.headers);
  headers.set("Acpd-Client", tab);
  if (access.token !== undefined) headers.set("Authorization", `Bearer ${access.token}`);
  try {
    const response = await fetch(input, { ...init, headers });
    link.told(fromDaemon(response.status, response.headers.get("Content-Type")));
    if (response.status === 401) access.refuse(refusal(await problemOf(response.clone()), access.token !== undefined));
    return response;
  } catch (error) {
    if (init.signal?.aborted !== true) link.told(false);
    throw error;
  }
}

/** The problem document that is the answer; what is none says nothing. */
async function problemOf(response: Response): Promise<Partial<ProblemDocument>> {
  const body: unknown = await response.json().catch(() => undefined);
  return typeof body === "object" && body !== null ? body : {};
}
