import { describe, expect, it } from "vitest";
import { openEventSocket } from "./event-socket";

/** A WebSocket whose other end is the test. */
class Fake extends EventTarget {
  static last: Fake;
  isClosed = false;

  constructor(
    readonly url: string,
    readonly protocols: string[],
  ) {
    super();
    Fake.last = this;
  }

  close(): void {
    this.isClosed = true;
  }

  tell(type: string, members: object = {}): void {
    this.dispatchEvent(Object.assign(new Event(type), members));
  }
}

const open = (signal?: AbortSignal, token?: string) => openEventSocket(new URL("http://127.0.0.1:2273/v1/sessions/a/events?after=3"), token, signal, Fake);

// contract 1.6: the frames of a WebSocket are the event stream, whole or broken off
describe("openEventSocket", () => {
  it("gives the frames as a body, and its end with the socket's", async () => {
    const opening = open(undefined, "secret");
    expect(Fake.last.url).toBe("ws://127.0.0.1:2273/v1/sessions/a/events?after=3");
    expect(Fake.last.protocols).toEqual(["acpd.events", "acpd.bearer.secret"]);
    Fake.last.tell("open");
    const response = await opening;
    Fake.last.tell("message", { data: "id: 4\ndata: {}\n\n" });
    Fake.last.tell("message", { data: ": keepalive\n\n" });
    Fake.last.tell("close", { code: 1000 });
    expect(await response?.text()).toBe("id: 4\ndata: {}\n\n: keepalive\n\n");
  });

  it("breaks off where the socket does", async () => {
    const opening = open();
    expect(Fake.last.protocols).toEqual([]);
    Fake.last.tell("open");
    const response = await opening;
    Fake.last.tell("close", { code: 1006 });
    await expect(response?.text()).rejects.toThrow("was lost");
  });

  it("gives nothing where no socket opens, or there is none", async () => {
    const opening = open();
    Fake.last.tell("error");
    Fake.last.tell("close", { code: 1006 });
    expect(await opening).toBeUndefined();
    const refused = class {
      constructor() {
        throw new SyntaxError("the subprotocol is invalid");
      }
    };
    expect(await openEventSocket(new URL("http://127.0.0.1/"), "a b", undefined, refused as never)).toBeUndefined();
  });

  it("is given up by its signal, before it is open and afterwards", async () => {
    const early = new AbortController();
    const opening = open(early.signal);
    early.abort();
    await expect(opening).rejects.toThrow();
    expect(Fake.last.isClosed).toBe(true);

    const late = new AbortController();
    const opened = open(late.signal);
    Fake.last.tell("open");
    const response = await opened;
    late.abort();
    await expect(response?.text()).rejects.toThrow();
    expect(Fake.last.isClosed).toBe(true);
    await expect(open(late.signal)).rejects.toThrow();
  });
});
