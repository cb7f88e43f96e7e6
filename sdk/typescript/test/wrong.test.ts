// Wrong use, wrong servers, and none at all: each is an error of its own class.

import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { AbortedError, AcpdClient, ArgumentError, NetworkError, ProtocolError } from "acpd-client";

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

const answering = async (listener: RequestListener): Promise<AcpdClient> => {
  server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return new AcpdClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
};

// inspector: SDK: bad input names the argument and the fix
test.each(["", "127.0.0.1:2273", "ftp://host", "http://host?x=1", "http://user@host", "/path"])("the url %j", (url) => {
  expect(() => new AcpdClient({ url })).toThrow(ArgumentError);
  expect(() => new AcpdClient({ url })).toThrow(/^url: /);
});

test.each(["", " ", "a  b", "ü", "x".repeat(41)])("the name %j", (name) => {
  expect(() => new AcpdClient({ url: "http://127.0.0.1:1", name })).toThrow(/^name: /);
});

// inspector: SDK: and nothing is sent
test("arguments that cannot be right", async () => {
  let requests = 0;
  const client = await answering(() => (requests += 1));
  for (const id of ["", ".", ".."]) await expect(client.getSession(id)).rejects.toThrow(/^sessionId: /);
  await expect(client.deleteSession("..")).rejects.toThrow(ArgumentError);
  for (const after of [-1, 1.5, NaN, "x", "1@"]) expect(() => client.events("id", { after })).toThrow(/^after: /);
  for (const idempotencyKey of ["", "a b", "ü", "x".repeat(256)]) {
    await expect(client.prompt("id", "text", { idempotencyKey })).rejects.toThrow(/^idempotencyKey: /);
  }
  for (const retryForMs of [-1, NaN]) {
    expect(() => client.events("id", { retryForMs })).toThrow(/^retryForMs: /);
    await expect(client.prompt("id", "text", { retryForMs })).rejects.toThrow(/^retryForMs: /);
    await expect(client.connect({ retryForMs })).rejects.toThrow(/^retryForMs: /);
  }
  expect(requests).toBe(0);
});

test("tokens that cannot be right", async () => {
  const url = "http://127.0.0.1:1";
  for (const token of ["", " ", "a b", "tök"]) expect(() => new AcpdClient({ url, token })).toThrow(/^token: /);
  const headers: string[] = [];
  const fetch = (_url: string, init: RequestInit) => {
    headers.push(new Headers(init.headers).get("Authorization") ?? "");
    return Promise.resolve(Response.json({}));
  };
  await new AcpdClient({ url, token: "acpd_from_a_file\n", fetch }).whoami();
  expect(headers).toEqual(["Bearer acpd_from_a_file"]);
});

// inspector: SDK: every failure is a typed error
test("nothing listens there", async () => {
  const client = await answering(() => undefined);
  server?.close();
  await expect(client.health()).rejects.toThrow(NetworkError);
  await expect(client.health()).rejects.toMatchObject({ kind: "network", message: expect.stringContaining("ECONNREFUSED") as string });
});

test.each([
  [200, "hello"],
  [200, '"hello"'],
  [404, "<html>"],
  [500, '{"error":"x"}'],
])("another server: %i %s", async (status, body) => {
  const client = await answering((_request, response) => response.writeHead(status).end(body));
  await expect(client.health()).rejects.toMatchObject({ kind: "protocol", status });
});

// contract 7.3: what breaks off has no end
test("an answer that breaks off", async () => {
  const client = await answering((_request, response) => {
    response.writeHead(200, { "Content-Length": "1000" }).write('{"status":');
    setImmediate(() => response.destroy());
  });
  await expect(client.health()).rejects.toThrow(NetworkError);
  const stream = await client.exportSession("id");
  await expect(new Response(stream).text()).rejects.toThrow(NetworkError);
});

// contract 1.6: a hole is an error, never silent
test("a stream with a hole", async () => {
  const client = await answering((_request, response) => {
    const event = (seq: number) => `data: ${JSON.stringify({ seq, kind: "update" })}\n\n`;
    response.writeHead(200, { "Content-Type": "text/event-stream" }).end(event(1) + event(3));
  });
  const events = client.events("id");
  expect((await events.next()).value).toMatchObject({ seq: 1 });
  await expect(events.next()).rejects.toThrow(ProtocolError);
});

// inspector: SDK: AbortSignal everywhere
test("the caller gives up", async () => {
  const client = await answering(() => undefined);
  const stop = new AbortController();
  const { signal } = stop;
  const pending = [
    client.getSession("id", { signal }),
    client.prompt("id", "text", { signal }),
    client.closeSession("id", { signal }),
    client.events("id", { signal }).next(),
    client.waitForEnd("id", { signal }),
    client.listSessions({}, { signal }).next(),
  ];
  stop.abort(new Error("enough"));
  for (const outcome of await Promise.allSettled(pending)) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "aborted", cause: { message: "enough" } } });
  }
  await expect(client.health({ signal })).rejects.toThrow(AbortedError);
});
