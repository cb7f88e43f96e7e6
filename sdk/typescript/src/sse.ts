// Text of an event stream, as https://html.spec.whatwg.org/multipage/server-sent-events.html has it, into messages.

/** A message of an event stream. */
export interface SseMessage {
  /** The field `event`; empty when there was none. */
  readonly event: string;
  readonly data: string;
}

/** Takes the text as it comes. What is unfinished when the stream ends is no message. */
export class SseParser {
  // A line may come in many pieces: they are joined once.
  #pieces: string[] = [];
  #afterReturn = false;
  #event = "";
  #data: string[] = [];

  /** The messages that this text completes. */
  push(text: string): SseMessage[] {
    const fresh = this.#afterReturn && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") this.#afterReturn = text.endsWith("\r");
    const lines = fresh.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? "";
    const messages = lines.flatMap((line) => this.#line(this.#whole(line)));
    if (rest !== "") this.#pieces.push(rest);
    return messages;
  }

  #whole(lastPiece: string): string {
    if (this.#pieces.length === 0) return lastPiece;
    const whole = this.#pieces.join("") + lastPiece;
    this.#pieces = [];
    return whole;
  }

  #line(line: string): SseMessage[] {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
    return [];
  }

  #dispatch(): SseMessage[] {
    const message = { event: this.#event, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    return isEmpty ? [] : [message];
  }
}
