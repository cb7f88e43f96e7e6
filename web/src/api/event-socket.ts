/**
 * A session's events over a WebSocket, in the form of an answer whose body is the event stream.
 *
 * Over HTTP/1.1 a browser has six connections to a host, for all of its tabs together; a stream by `fetch` takes one for as long
 * as it is followed, and the seventh tab would not even load. WebSockets are not counted among them.
 */

/** How long a WebSocket may take to open, in milliseconds: some proxies swallow the upgrade without an answer. */
const OPEN_MS = 5000;
/** What acpd closes a socket with behind the last message of its stream. */
const WHOLE = 1000;

/** The part of a `WebSocket` that is used here. */
export type SocketConstructor = new (url: string, protocols: string[]) => Pick<WebSocket, "addEventListener" | "close">;

/**
 * Opens the stream at `url`, under a token if there is one. Gives `undefined` where no WebSocket opens: a plain request
 * says why, since browsers do not tell. Fails when `signal` is aborted.
 */
export function openEventSocket(
  url: URL,
  token: string | undefined,
  signal: AbortSignal | undefined,
  Socket: SocketConstructor | undefined = globalThis.WebSocket,
): Promise<Response | undefined> {
  const address = new URL(url);
  address.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = Socket === undefined ? undefined : construct(Socket, address.href, token);
  if (socket === undefined) return Promise.resolve(undefined);
  const encoder = new TextEncoder();
  let isOpen = false;
  let isOver = false;
  return new Promise((resolve, reject) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        /** Ends the stream, once. */
        const over = (end: () => void): void => {
          if (isOver) return;
          isOver = true;
          clearTimeout(timer);
          signal?.removeEventListener("abort", abort);
          end();
        };
        const abort = (): void => {
          over(() => {
            controller.error(signal?.reason);
            reject(signal?.reason as Error);
          });
          socket.close();
        };
        const timer = setTimeout(() => {
          over(() => resolve(undefined));
          socket.close();
        }, OPEN_MS);
        socket.addEventListener("open", () => {
          if (isOver) return;
          isOpen = true;
          clearTimeout(timer);
          resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
        });
        socket.addEventListener("message", ({ data }) => {
          if (!isOver && typeof data === "string") controller.enqueue(encoder.encode(data));
        });
        socket.addEventListener("close", ({ code }) =>
          over(() => {
            if (!isOpen) resolve(undefined);
            else if (code === WHOLE) controller.close();
            else controller.error(new TypeError("the WebSocket of the events was lost"));
          }),
        );
        signal?.addEventListener("abort", abort, { once: true });
        if (signal?.aborted === true) abort();
      },
      cancel() {
        isOver = true;
        socket.close();
      },
    });
  });
}

/** A token that no header could have is refused by the platform; the daemon says so in words. */
function construct(Socket: SocketConstructor, url: string, token: string | undefined) {
  try {
    return new Socket(url, token === undefined ? [] : ["acpd.events", `acpd.bearer.${token}`]);
  } catch {
    return undefined;
  }
}
