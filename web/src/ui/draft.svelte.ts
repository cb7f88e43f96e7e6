const KEY = "acpd.draft.";

/** Words that are being written. They are kept in this tab, over reloads and ways through the pages, until they are emptied. */
export class Draft {
  #text = $state("");
  readonly #key: string;

  /** `name`: what they are for; one name is one draft of a tab. */
  constructor(name: string) {
    this.#key = KEY + name;
    this.#text = stored(this.#key);
  }

  get text(): string {
    return this.#text;
  }

  set text(text: string) {
    this.#text = text;
    try {
      if (text === "") sessionStorage.removeItem(this.#key);
      else sessionStorage.setItem(this.#key, text);
    } catch {
      // A browser that keeps nothing, or no more, has them as long as they are shown.
    }
  }
}

function stored(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}
