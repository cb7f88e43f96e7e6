/** How long a sentence stays, in milliseconds. */
const STAYS_MS = 6000;

/** One sentence at the lower edge, about what a button has done; the next one takes its place. */
class Toast {
  #text = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;

  get text(): string {
    return this.#text;
  }

  say(text: string): void {
    clearTimeout(this.#timer);
    this.#text = text;
    this.#timer = setTimeout(() => (this.#text = ""), STAYS_MS);
  }
}

export const toast = new Toast();
