// Names of requests, under which they can be sent again.

import { ArgumentError } from "./errors.js";

/** A new key. `crypto.randomUUID` is not there in pages that came by plain HTTP. */
export function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The key, if it can be one. */
export function checkedKey(key: string): string {
  if (/^[!-~]{1,255}$/.test(key)) return key;
  throw new ArgumentError("idempotencyKey", "1 to 255 visible ASCII characters are required");
}
