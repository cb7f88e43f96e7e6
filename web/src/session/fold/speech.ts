/** Messages that come in pieces: which pieces make up one message, and its blocks. */

import { append, EMPTY, type Running } from "./blocks";
import type { TextItem, Voice } from "./items";
import type { Draft, When } from "./draft";
import { defined } from "./raw";

/** The message that is being said. */
interface Open {
  readonly voice: Voice;
  readonly messageId: string | undefined;
  readonly message: number;
  readonly by: string | undefined;
  readonly running: Running;
  /** Where its running block is shown; none before it has a visible character. */
  readonly index: number | undefined;
}

/** Writes what is said into a draft. One message is said at a time; anything else that is shown ends it. */
export class Speech {
  private open: Open | undefined;
  private messages = 0;
  /** The last message that a person wrote: what stands between its parts, as a picture does, ends none. */
  private written: Pick<Open, "messageId" | "message"> | undefined;

  constructor(private readonly draft: Draft) {}

  /** The number of a message that goes on with `voice`, or of a new one. */
  message(voice: Voice, messageId: string | undefined, by?: string): number {
    const goesOn = this.open?.voice === voice && (messageId === undefined || messageId === this.open.messageId);
    if (this.open !== undefined && goesOn) return this.open.message;
    this.end();
    const isWritten = voice === "user" && messageId !== undefined;
    const message = isWritten && this.written?.messageId === messageId ? this.written.message : (this.messages += 1);
    this.written = isWritten ? { messageId, message } : undefined;
    this.open = { voice, messageId, message, by, running: EMPTY, index: undefined };
    return message;
  }

  /** Adds a piece of text. */
  say(when: When, voice: Voice, piece: string, messageId?: string, by?: string): void {
    this.message(voice, messageId, by);
    const open = this.open;
    if (open === undefined) return;
    // Only markdown is shown in blocks; what a person wrote stays as it was written.
    const { finished, running } = voice === "user" ? { finished: [], running: { ...open.running, text: open.running.text + piece } } : append(open.running, piece);
    let index = open.index;
    for (const block of finished) {
      this.write(when, open, index, block, true);
      index = undefined;
    }
    if (running.text.trim() !== "") index = this.write(when, open, index, running.text, false);
    this.open = { ...open, running, index };
  }

  /** Ends the message: what runs is finished. */
  end(): void {
    const { open } = this;
    this.open = undefined;
    if (open?.index === undefined) return;
    const item = this.draft.items[open.index];
    if (item?.type === "text") this.draft.put(open.index, { ...item, text: item.text.replace(/\s+$/, ""), done: true });
  }

  private write(when: When, open: Open, index: number | undefined, text: string, done: boolean): number {
    const known = index === undefined ? undefined : this.draft.items[index];
    if (index !== undefined && known?.type === "text") {
      this.draft.put(index, { ...known, text, done, until: when.at });
      return index;
    }
    const { voice, message, by } = open;
    return this.draft.add(defined<TextItem>({ ...when, key: this.draft.key(when), type: "text", voice, text, done, message, until: when.at, by }));
  }
}
