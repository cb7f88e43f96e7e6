// Calls of functions that the caller gave.

/**
 * Calls a listener. What it throws is the caller's own mistake and becomes an uncaught error, as with listeners of the
 * platform; it does not stop what it listens to.
 */
export function tell(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    uncaught(error);
  }
}

/** Asks a function for an answer; one that fails, which is uncaught as well, has none. */
export async function ask<Answer>(question: () => Answer | Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await question();
  } catch (error) {
    uncaught(error);
    return undefined;
  }
}

function uncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
