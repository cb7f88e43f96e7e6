// A look at values that came from elsewhere.

/** An object of JSON, whatever is in it. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Whether a value is an object; a list is one too. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null;
}

/** The object that a text is in JSON, or `undefined`. */
export function readRecord(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
