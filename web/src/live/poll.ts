/** Longest pause between tries while they fail, in milliseconds: while the page is seen, and while it is not. */
const LONGEST_MS = 5000;
const LONGEST_UNSEEN_MS = 15_000;
/** How much longer pauses are while nothing of the pages is seen. */
const UNSEEN = 5;

/**
 * Runs `task` again and again, the next time `everyMs` after the last has ended, until the returned function is called.
 * Failures of it are not its last time: pauses double up to 5 s. A page that comes to the front is up to date at once.
 */
export function poll(task: (signal: AbortSignal) => Promise<void>, everyMs: number): () => void {
  const stop = new AbortController();
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const run = async (): Promise<void> => {
    timer = undefined;
    try {
      await task(stop.signal);
      failures = 0;
    } catch {
      // The api has told it; here it only matters for the pause.
      failures += 1;
    }
    if (!stop.signal.aborted) timer = setTimeout(() => void run(), pause(everyMs, failures, document.hidden));
  };
  const seen = (): void => {
    if (document.hidden || timer === undefined) return;
    clearTimeout(timer);
    void run();
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("online", seen);
  void run();
  return () => {
    stop.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
    removeEventListener("online", seen);
  };
}

/** How long to wait, in milliseconds: after `failures` in a row, of a page that is `hidden`. */
export function pause(everyMs: number, failures: number, hidden: boolean): number {
  if (failures > 0) return Math.min(1000 * 2 ** (failures - 1), hidden ? LONGEST_UNSEEN_MS : LONGEST_MS);
  return hidden ? everyMs * UNSEEN : everyMs;
}
