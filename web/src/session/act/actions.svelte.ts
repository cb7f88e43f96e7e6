import { isProblem } from "acpd-client";
import { access } from "../../api/access.svelte";
import { api } from "../../api/api";
import { inWords } from "../../api/errors";
import { router } from "../../router/router.svelte";
import { sessionHref } from "../../router/route";
import type { Feed } from "../feed.svelte";
import { ability, type Ability, type Action } from "./abilities";

/** An agent that hangs is stopped by a ladder, which takes seconds; one that is started may take as long. */
const DOING: Readonly<Partial<Record<Action, string>>> = { close: "Closing…", terminate: "Terminating…", delete: "Deleting…", fork: "Forking…", resume: "Resuming…" };

/** What can be done with a session, done, and what came of it. */
export class Actions {
  #refused = $state.raw<Readonly<Partial<Record<Action, string>>>>({});
  #busy = $state<Action>();
  #error = $state("");

  constructor(
    private readonly id: string,
    private readonly feed: Feed,
  ) {}

  /** Why the last action failed; empty when it did not. */
  get error(): string {
    return this.#error;
  }

  get busy(): Action | undefined {
    return this.#busy;
  }

  /** What is under way that can take a while, in a word. */
  get doing(): string | undefined {
    return this.#busy === undefined ? undefined : DOING[this.#busy];
  }

  can(action: Action): Ability {
    // What the transcript says changes with the frame.
    void this.feed.frame;
    const { transcript, info } = this.feed;
    const owner = info?.metadata["createdBy"];
    return ability(action, {
      scope: access.who?.scope ?? "observe",
      isOwn: owner === undefined || owner === access.who?.name,
      agent: transcript.agent || (info?.agent ?? "The agent"),
      isEnded: transcript.isEnded,
      isRemoved: this.feed.state.state === "removed",
      isTerminated: transcript.runs.at(-1)?.info?.reason === "terminated",
      isTurnActive: transcript.activeTurn !== undefined,
      capabilities: info?.agentCapabilities,
      refused: this.#refused,
    });
  }

  cancel(): Promise<void> {
    return this.#do("cancel", () => api.cancel(this.id));
  }

  close(): Promise<void> {
    return this.#do("close", () => api.closeSession(this.id));
  }

  terminate(): Promise<void> {
    return this.#do("terminate", () => api.terminateSession(this.id));
  }

  delete(): Promise<void> {
    return this.#do("delete", async () => {
      await api.deleteSession(this.id);
      router.go("#/sessions");
    });
  }

  resume(): Promise<void> {
    return this.#do("resume", async () => {
      await api.resume(this.id);
      this.feed.look();
    });
  }

  fork(): Promise<void> {
    return this.#do("fork", async () => {
      const copy = await api.fork(this.id);
      router.go(sessionHref(copy.sessionId));
    });
  }

  async #do(action: Action, act: () => Promise<void>): Promise<void> {
    this.#busy = action;
    this.#error = "";
    try {
      await act();
    } catch (error) {
      this.#error = inWords(error);
      // What the agent cannot do, it will not be able to do the next time.
      if (isProblem(error, "not_supported", "not_resumable")) this.#refused = { ...this.#refused, [action]: this.#error };
    } finally {
      this.#busy = undefined;
    }
  }
}
