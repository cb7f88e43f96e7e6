import { type AcpdClient, isProblem, type Prompt } from "acpd-client";
import { inWords } from "../../api/errors";
import { newKey } from "../../start/key";
import { content } from "../fold/content";
import type { Turn } from "../fold/transcript";

/** An image that goes with a prompt, base64. */
export interface Attachment {
  readonly mimeType: string;
  readonly data: string;
  readonly name: string;
}

/** A prompt that has no turn yet. */
export interface Waiting {
  readonly key: string;
  readonly text: string;
  readonly images: readonly Attachment[];
  readonly state: "sending" | "waiting" | "leaving" | "failed";
  /** The prompts before it, or why it failed. */
  readonly note: string;
}

/** What was sent and has not begun: each prompt goes once, under a key that its event bears. */
export class Outbox {
  #waiting = $state.raw<readonly Waiting[]>([]);

  constructor(
    private readonly id: string,
    private readonly client: AcpdClient,
    /** Has it known how many wait. */
    private readonly lineChanged: () => Promise<void>,
  ) {}

  get waiting(): readonly Waiting[] {
    return this.#waiting;
  }

  /** Sends a prompt; gives whether it was accepted. */
  async send(text: string, images: readonly Attachment[], prompt: Prompt = blocks(text, images)): Promise<boolean> {
    const entry: Waiting = { key: newKey(), text, images, state: "sending", note: "" };
    this.#waiting = [...this.#waiting, entry];
    try {
      const accepted = await this.client.prompt(this.id, prompt, { idempotencyKey: entry.key });
      if (accepted.waiting === undefined) this.drop(entry.key);
      else this.#put({ ...entry, state: "waiting", note: `${accepted.waiting} before it` });
      return true;
    } catch (error) {
      this.#put({ ...entry, state: "failed", note: inWords(error) });
      return false;
    }
  }

  /** Sends a prompt once more, with all that was in it, as it was recorded. */
  again(prompt: readonly unknown[]): Promise<boolean> {
    const parts = prompt.map(content);
    const words = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    const images = parts.flatMap((part) => (part.type === "image" ? [{ mimeType: part.mimeType, data: part.data, name: "" }] : []));
    return this.send(words.join("\n\n"), images, prompt as Prompt);
  }

  /** Takes one that waits out of the line; gives whether it has left. One that has just begun is cancelled. */
  async takeBack(entry: Waiting): Promise<boolean> {
    this.#put({ ...entry, state: "leaving" });
    try {
      await this.client.cancel(this.id, { idempotencyKey: entry.key });
    } catch (error) {
      const isGone = isProblem(error, "prompt_over", "session_ended");
      this.#put({ ...entry, state: isGone ? "failed" : "waiting", note: inWords(error) });
      return false;
    }
    await this.lineChanged().catch(() => undefined);
    this.drop(entry.key);
    return true;
  }

  /** Takes one out: it is shown no more. */
  drop(key: string): void {
    this.#waiting = this.#waiting.filter((entry) => entry.key !== key);
  }

  /** The turns that have begun: a prompt that has one waits no more. */
  began(turns: readonly Turn[]): void {
    if (this.#waiting.length === 0) return;
    const begun = new Set(turns.slice(-32).map((turn) => turn.idempotencyKey));
    if (this.#waiting.some((entry) => begun.has(entry.key))) this.#waiting = this.#waiting.filter((entry) => !begun.has(entry.key));
  }

  /** The run ended: what waited is gone. */
  ended(): void {
    if (!this.#waiting.some((entry) => entry.state === "waiting")) return;
    const note = "The session ended before it began.";
    this.#waiting = this.#waiting.map((entry) => (entry.state === "waiting" ? { ...entry, state: "failed", note } : entry));
  }

  #put(entry: Waiting): void {
    this.#waiting = this.#waiting.map((each) => (each.key === entry.key ? entry : each));
  }
}

function blocks(text: string, images: readonly Attachment[]) {
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...images.map(({ mimeType, data }) => ({ type: "image" as const, mimeType, data })),
  ];
}
