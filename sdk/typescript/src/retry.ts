// When something is tried again.

import { AbortedError, AcpdError, ArgumentError, isTransient, ProblemError } from "./errors.js";

/** The first wait, in milliseconds. */
const FIRST = 100;
/** The longest wait, in milliseconds. */
const LONGEST = 5_000;

/**
 * How long to wait before the try number `attempt` (from 1), in milliseconds: 100, 200, 400 and so on up to 5000, of
 * which `chance` (0 to 1) takes up to a half, so that clients who lost a daemon together do not come back together.
 */
export function backoff(attempt: number, chance: number): number {
  const full = Math.min(LONGEST, FIRST * 2 ** Math.min(attempt - 1, 16));
  return Math.round(full * (1 - chance / 2));
}

/** How long to wait before the next try: at least as long as the daemon asked. */
export function delayAfter(error: AcpdError, attempt: number, chance: number): number {
  const asked = error instanceof ProblemError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, backoff(attempt, chance));
}

/** How long something is tried for, if that can be told so: milliseconds, from 0 to `Infinity`. */
export function checkedPatience(retryForMs: number): number {
  if (retryForMs >= 0) return retryForMs;
  throw new ArgumentError("retryForMs", "milliseconds are required, from 0 to Infinity");
}

/** Waits so many milliseconds. Fails with an `AbortedError` when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      if (signal !== undefined) reject(new AbortedError(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
  });
}

/**
 * Does something that can be repeated until it succeeds, fails for good, or `forMs` milliseconds are over: then the
 * last error is thrown. `told` hears of each failure and the wait behind it.
 */
export async function persistently<Answer>(
  attempt: () => Promise<Answer>,
  forMs: number,
  signal?: AbortSignal,
  told?: (error: AcpdError, wait: number) => void,
): Promise<Answer> {
  const until = Date.now() + checkedPatience(forMs);
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof AcpdError) || !isTransient(error)) throw error;
      const wait = delayAfter(error, tries, Math.random());
      if (Date.now() + wait > until) throw error;
      told?.(error, wait);
      await pause(wait, signal);
    }
  }
}
