import { isProblem, type NewSession } from "acpd-client";
import { api } from "../api/api";
import { inWords } from "../api/errors";
import { sessionHref } from "../router/route";
import { router } from "../router/router.svelte";
import { newKey } from "./key";

/** One try after another to begin a session; the same request is sent again under the same key, and begins one at most. */
export class Beginning {
  #busy = $state(false);
  #error = $state<string | undefined>(undefined);
  #sent: { body: string; key: string } | undefined;

  get busy(): boolean {
    return this.#busy;
  }

  /** Why the last try failed, in words. */
  get error(): string | undefined {
    return this.#error;
  }

  /** Begins the session and goes to it; gives whether it began. */
  async begin(session: NewSession): Promise<boolean> {
    const body = JSON.stringify(session);
    if (this.#sent?.body !== body) this.#sent = { body, key: newKey() };
    this.#busy = true;
    this.#error = undefined;
    try {
      const { sessionId } = await api.createSession(session, { idempotencyKey: this.#sent.key });
      router.go(sessionHref(sessionId));
      return true;
    } catch (error) {
      this.#error = refusal(error);
      return false;
    } finally {
      this.#busy = false;
    }
  }
}

/** Why no session began, and what to do. */
export function refusal(error: unknown): string {
  // The form calls it the directory; the rest says what is wrong with it.
  const words = inWords(error).replace(/^Cwd: /, "");
  if (isProblem(error, "authentication_required")) return `${words} Log in to the agent where acpd runs, then try again.`;
  if (isProblem(error, "agent_failed")) return `${words} A check of the agent says more: see Agents.`;
  return words;
}
