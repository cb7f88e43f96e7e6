import { inWords, isAbort } from "../api/errors";
import { poll } from "./poll";

/** The latest answer to a question that is asked again and again. What was there stays while it cannot be had. */
export interface Watched<Value> {
  readonly value: Value | undefined;
  /** Why the last try failed, in words; only while there is nothing to show. */
  readonly error: string | undefined;
}

/**
 * Asks `ask` every `everyMs` milliseconds while the component lives and `when` holds. Called while a component is set up.
 */
export function watch<Value>(ask: (signal: AbortSignal) => Promise<Value>, everyMs: number, when: () => boolean): Watched<Value> {
  let value = $state.raw<Value | undefined>();
  let error = $state<string | undefined>();
  const wanted = $derived(when());
  $effect(() => {
    if (!wanted) return;
    return poll(async (signal) => {
      try {
        value = await ask(signal);
        error = undefined;
      } catch (failure) {
        if (!isAbort(failure)) error = inWords(failure);
        throw failure;
      }
    }, everyMs);
  });
  return {
    get value() {
      return value;
    },
    get error() {
      return value === undefined ? error : undefined;
    },
  };
}
