import { createSubscriber } from "svelte/reactivity";

/** Between its steps, in milliseconds. */
const STEP_MS = 1000;

/** The time, for ages that grow while they are looked at. It stands still while nothing reads it. */
class Clock {
  readonly #subscribe = createSubscriber((update) => {
    const timer = setInterval(update, STEP_MS);
    return () => clearInterval(timer);
  });

  /** Now, in milliseconds. */
  get now(): number {
    this.#subscribe();
    return Date.now();
  }
}

export const clock = new Clock();
