/** A request without an answer for so many milliseconds is reported to the reader. */
export const SLOW_MS = 2000;

/** Requests that take their time by nature, and whose buttons say so: agents are started and stopped, files are taken over. */
const LONG = /\/(sessions|resume|fork|close|terminate|check|import|prune|reload|handover|drain)$/;

/** Whether the daemon answers, and in time. */
class Link {
  #lost = $state(false);
  #slow = $state(0);

  /** The last request found no daemon. */
  get lost(): boolean {
    return this.#lost;
  }

  /** A request waits for its answer for longer than it should. */
  get slow(): boolean {
    return this.#slow > 0;
  }

  told(answered: boolean): void {
    this.#lost = !answered;
  }

  /** Watches a request that has just been sent; the returned function is called when it is answered, or given up. */
  waits(method: string, path: string): () => void {
    if (!isPrompt(method, path)) return () => undefined;
    let isSlow = false;
    const timer = setTimeout(() => {
      isSlow = true;
      this.#slow += 1;
    }, SLOW_MS);
    return () => {
      clearTimeout(timer);
      if (isSlow) this.#slow -= 1;
    };
  }
}

/** Whether the answer to a request is due at once. */
export function isPrompt(method: string, path: string): boolean {
  return method === "GET" || (method === "POST" && !LONG.test(path));
}

export const link = new Link();
