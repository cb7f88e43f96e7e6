/** An answer of the daemon that is an error: `application/problem+json`. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The kind, the last part of `type`: `token_limit`, `session_not_found`, ... */
    readonly kind: string,
    /** What happened and what to do about it. */
    detail: string,
  ) {
    super(detail);
    this.name = "ApiError";
  }
}

/** The daemon was not reached, or its answer broke off. */
export class NoConnection extends Error {
  constructor(cause: unknown) {
    super("The daemon does not answer.", { cause });
    this.name = "NoConnection";
  }
}

/** Reads an error from the body of an answer; an answer of something between here and the daemon has no problem in it. */
export function problemOf(status: number, body: string): ApiError {
  try {
    const problem: unknown = JSON.parse(body);
    if (typeof problem === "object" && problem !== null && "type" in problem && "detail" in problem) {
      return new ApiError(status, String(problem.type).split(":").at(-1) ?? "", String(problem.detail));
    }
  } catch {
    // Not of the daemon's.
  }
  return new ApiError(status, "", `The answer was ${status}, without a word of the daemon's.`);
}

/** Whether an answer is the daemon's own, and not of something in front of one that is not there. */
export function isOfDaemon(status: number, error: Error | undefined): boolean {
  return status < 502 || status > 504 || (error instanceof ApiError && error.kind !== "");
}

/** Whether a request was given up by the page itself. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** An error as a sentence that says what happened and what to do. */
export function inWords(error: unknown): string {
  if (error instanceof NoConnection) {
    return "The daemon does not answer. If it was stopped, start it again (acpd serve); the pages go on by themselves.";
  }
  if (error instanceof ApiError) return sentence(error.message);
  return error instanceof Error ? sentence(error.message) : "Something unexpected happened.";
}

/** With a capital letter in front and a full stop behind. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const start = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
