import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { extname, join, resolve } from "node:path";

/** What the daemon sends with its pages. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** The built pages with the daemon behind them, at one address. */
export interface Pages {
  url: string;
  close: () => Promise<void>;
}

/** Serves `dist` under the policy that the daemon sends, and passes all else on to the daemon. */
export async function servePages(daemon: string): Promise<Pages> {
  const dist = resolve(import.meta.dirname, "../dist");
  const sockets = new Set<Socket>();
  const server = createServer((incoming, outgoing) => void answer(dist, daemon, incoming, outgoing));
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (incoming: IncomingMessage, socket: Socket) => tunnel(daemon, incoming, socket));
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => close(server, sockets) };
}

async function answer(dist: string, daemon: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const path = new URL(incoming.url ?? "/", "http://x").pathname;
  if (path !== "/" && !path.startsWith("/assets/")) return pass(daemon, incoming, outgoing);
  const file = join(dist, path === "/" ? "index.html" : path);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !found.isFile()) {
    outgoing.writeHead(404).end();
    return;
  }
  outgoing.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Content-Security-Policy": POLICY });
  createReadStream(file).pipe(outgoing);
}

function pass(daemon: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const ahead = request(new URL(incoming.url ?? "/", daemon), { method: incoming.method, headers: incoming.headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(outgoing);
    response.on("error", () => outgoing.destroy());
  });
  ahead.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
  outgoing.on("close", () => ahead.destroy());
  incoming.pipe(ahead);
}

function tunnel(daemon: string, incoming: IncomingMessage, socket: Socket): void {
  const { hostname, port } = new URL(daemon);
  const ahead = connect(Number(port), hostname, () => {
    const head = [`${incoming.method} ${incoming.url} HTTP/1.1`];
    for (let at = 0; at < incoming.rawHeaders.length; at += 2) head.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`);
    ahead.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.pipe(ahead).pipe(socket);
  });
  ahead.on("error", () => socket.destroy());
  socket.on("error", () => ahead.destroy());
}

function close(server: Server, sockets: Set<Socket>): Promise<void> {
  return new Promise((done) => {
    server.close(() => done());
    for (const socket of sockets) socket.destroy();
  });
}
