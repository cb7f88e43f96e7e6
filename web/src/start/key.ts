/** A key under which a request can be sent again: 32 hexadecimal digits. Also where the page is not served over TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
