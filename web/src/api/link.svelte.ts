/** Whether the daemon answers. `fetching` is the state before the first answer. */
class Link {
  #lost = $state(false);

  /** The last request found no daemon. */
  get lost(): boolean {
    return this.#lost;
  }

  told(answered: boolean): void {
    this.#lost = !answered;
  }
}

export const link = new Link();
