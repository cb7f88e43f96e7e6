// ACP through the official SDK, over each transport, with connections that are cut and daemons that are killed:
// ACPD_CLIENT_KILLS times (default 1; in full: 20).

import type { RequestPermissionRequest, SessionNotification } from "@agentclientprotocol/sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { AcpdClient, type AcpConnection, type ConnectOptions, type SessionEnd, type Transport } from "acpd-client";
import description from "../package.json" with { type: "json" };
import { VERSION } from "../src/acp/line.js";
import { Cutter } from "./cutter.js";
import { Daemon } from "./daemon.js";

const KILLS = Number(process.env["ACPD_CLIENT_KILLS"] ?? 1);

let daemon: Daemon;
let cutter: Cutter;
let open: AcpConnection[] = [];
beforeAll(async () => {
  daemon = await Daemon.start({ chief: ["--scope", "admin"] });
  cutter = await Cutter.to(daemon.url);
});
afterEach(async () => {
  await Promise.all(open.map((connection) => connection.close()));
  open = [];
});
afterAll(async () => {
  cutter?.close();
  await daemon?.stop();
});

const client = () => new AcpdClient({ url: cutter.url, token: daemon.tokens["chief"] ?? "" });

/** A connection and what it hears. */
class Ear {
  updates: SessionNotification[] = [];
  ends: [string, SessionEnd][] = [];
  replays: string[] = [];
  questions: RequestPermissionRequest[] = [];
  readonly #waiting: { enough: () => boolean; done: () => void }[] = [];

  static async open(transport: Transport, options: ConnectOptions = {}): Promise<[AcpConnection, Ear]> {
    const ear = new Ear();
    const connection = await client().connect({
      transport,
      WebSocket,
      onUpdate: (update) => ear.#heard(ear.updates, update),
      onReplay: (sessionId) => {
        ear.updates = [];
        ear.#heard(ear.replays, sessionId);
      },
      onSessionEnded: (sessionId, end) => ear.#heard(ear.ends, [sessionId, end]),
      ...options,
      onPermission: (request, context) => {
        ear.#heard(ear.questions, request);
        return options.onPermission?.(request, context);
      },
    });
    open.push(connection);
    return [connection, ear];
  }

  /** What the agent said, or the user. */
  text(kind = "agent_message_chunk"): string {
    const said = this.updates.map(({ update }) =>
      "content" in update && update.sessionUpdate === kind && "text" in (update.content ?? {})
        ? (update.content as { text: string }).text
        : "",
    );
    return said.join("");
  }

  until(enough: () => boolean): Promise<void> {
    if (enough()) return Promise.resolve();
    return new Promise((done) => this.#waiting.push({ enough, done }));
  }

  #heard<Item>(list: Item[], item: Item): void {
    list.push(item);
    for (const waiting of this.#waiting) if (waiting.enough()) waiting.done();
  }
}

const create = async (connection: AcpConnection) => (await connection.newSession({ cwd: daemon.directory })).sessionId;

const prompts = async (sessionId: string) => {
  const { events } = await client().eventsPage(sessionId, { limit: 1000 });
  return events.filter(({ kind }) => kind === "prompt").length;
};

test("the version is that of the package", () => {
  expect(VERSION).toBe(description.version);
});

describe.each<Transport>(["websocket", "http"])("over %s", (transport) => {
  // inspector: SDK: connect({agent})
  test("a turn streams and ends", async () => {
    const [connection, ear] = await Ear.open(transport, { agent: "example" });
    expect(connection.initialized.agentCapabilities?.loadSession).toBe(true);
    const { sessionId, modes } = await connection.newSession({ cwd: daemon.directory, title: "By ACP" });
    expect(modes?.currentModeId).toBe("default");
    expect(await connection.prompt(sessionId, "stream 200 50\na last word")).toMatchObject({ stopReason: "end_turn" });
    expect(ear.text()).toMatch(/a last word$/);
    expect((await client().getSession(sessionId)).title).toBe("By ACP");
    await connection.request("session/set_mode", { sessionId, modeId: "plan" });
    expect((await client().getSession(sessionId)).mode).toBe("plan");
    await connection.closeSession(sessionId);
    await ear.until(() => ear.ends.length === 1);
    expect(ear.ends).toMatchObject([[sessionId, { reason: "completed", terminatedBy: "daemon" }]]);
  });

  // inspector: SDK: permission handling; contract 2.1: the first valid answer wins
  test("questions are answered, or left to others", async () => {
    const [watcher, other] = await Ear.open(transport);
    const onPermission = async ({ options }: RequestPermissionRequest) => {
      await other.until(() => other.questions.length === 1);
      const optionId = options.find(({ kind }) => kind === "reject_once")?.optionId ?? "";
      return { outcome: "selected" as const, optionId };
    };
    const onElicitation = () => ({ action: "decline" as const });
    const [connection, ear] = await Ear.open(transport, { onPermission, onElicitation });
    const sessionId = await create(connection);
    await watcher.load(sessionId);
    expect((await connection.prompt(sessionId, "ask edit\nelicit Name?")).stopReason).toBe("end_turn");
    expect(ear.text()).toContain("reject-once");
    expect(other.questions[0]?.toolCall.rawInput).toEqual({ title: "example edit" });
  });

  // contract 1.2: the record of the end
  test("a crash is an error with the record of it", async () => {
    const [connection, ear] = await Ear.open(transport);
    const sessionId = await create(connection);
    const crashed = connection.prompt(sessionId, "crash");
    await expect(crashed).rejects.toMatchObject({
      kind: "agent",
      terminationInfo: { cause: "agent_crash", exitCode: 1, stderr: { totalLines: 250 } },
    });
    await ear.until(() => ear.ends.length === 1);
    expect(ear.ends[0]?.[1]).toMatchObject({ reason: "error", exitCode: 1, stderr: { totalLines: 250 } });
  });

  // inspector: SDK: every failure a typed error
  test("what is not there", async () => {
    await expect(client().connect({ transport, WebSocket, agent: "nothing" })).rejects.toMatchObject({ code: -32602 });
    const [connection] = await Ear.open(transport);
    const unknown = "00000000-0000-7000-8000-000000000000";
    await expect(connection.prompt(unknown, "hello")).rejects.toMatchObject({ kind: "agent", code: -32002 });
    await expect(connection.load(unknown, { cwd: "/" })).rejects.toMatchObject({ kind: "agent", code: -32002 });
    const stranger = new AcpdClient({ url: daemon.url, token: "acpd_wrong" });
    await expect(stranger.connect({ transport, WebSocket })).rejects.toMatchObject({ code: "unauthorized" });
  });

  // inspector: SDK: reconnect; a prompt in flight is answered by its turn, which runs once
  test("a turn is not lost with its connection", async () => {
    const states: string[] = [];
    const [connection, ear] = await Ear.open(transport, { onConnection: ({ state }) => states.push(state) });
    const sessionId = await create(connection);
    const answer = connection.prompt(sessionId, "first\nask edit\nlast");
    await ear.until(() => ear.questions.length === 1);
    cutter.cut();
    await ear.until(() => ear.questions.length === 2);
    const { openQuestions } = await client().getSession(sessionId);
    expect(openQuestions).toBe(1);
    const { events } = await client().eventsPage(sessionId);
    const question = events.find(({ kind }) => kind === "permission_requested")?.seq ?? 0;
    await client().answer(sessionId, question, { outcome: "selected", optionId: "allow-once" });
    expect(await answer).toMatchObject({ stopReason: "end_turn" });
    expect(ear.replays).toEqual([sessionId]);
    expect(ear.text()).toMatch(/^first[^]*allow-once[^]*last$/);
    expect(await prompts(sessionId)).toBe(1);
    expect(states.filter((state) => state === "open").length).toBe(2);
  });

  // inspector: SDK: a prompt in flight when the daemon is killed fails with how it ended, and the session goes on
  test("turns that die with the daemon fail, once", { timeout: 120_000 + KILLS * 20_000 }, async () => {
    const [connection, ear] = await Ear.open(transport);
    const sessionId = await create(connection);
    let told = "";
    for (let kill = 0; kill < KILLS; kill += 1) {
      const failed = expect(connection.prompt(sessionId, `begun ${kill}\nhang`)).rejects.toMatchObject({ code: -32603 });
      await ear.until(() => ear.text().endsWith(`begun ${kill}`));
      await daemon.kill();
      const waiting = connection.prompt(sessionId, "sent while it is away");
      await daemon.restart();
      await failed;
      expect(await waiting).toMatchObject({ stopReason: "end_turn" });
      told += `begun ${kill}sent while it is away`;
      expect(ear.text()).toBe(told);
      expect(await prompts(sessionId)).toBe(2 * (kill + 1));
    }
    expect(ear.replays.length).toBeGreaterThanOrEqual(KILLS);
  });

  // inspector: SDK: AbortSignal everywhere
  test("a prompt is withdrawn, and a connection closed", async () => {
    const [connection, ear] = await Ear.open(transport);
    const sessionId = await create(connection);
    const stop = new AbortController();
    const withdrawn = connection.prompt(sessionId, "begun\nhang", { signal: stop.signal });
    await ear.until(() => ear.text() === "begun");
    stop.abort();
    await expect(withdrawn).rejects.toMatchObject({ kind: "aborted" });
    for await (const event of client().events(sessionId)) {
      if (event.kind !== "turn_ended") continue;
      expect(event.stopReason).toBe("cancelled");
      break;
    }
    const pending = expect(connection.prompt(sessionId, "hang")).rejects.toMatchObject({ kind: "aborted" });
    await ear.until(() => ear.text("agent_message_chunk").length > 0);
    await connection.close();
    await pending;
    expect(await connection.closed).toBeUndefined();
    await expect(connection.prompt(sessionId, "too late")).rejects.toMatchObject({ kind: "aborted" });
    expect((await client().getSession(sessionId)).ended).toBe(false);
  });

  // inspector: SDK: what cannot come back is told
  test("a session that is removed meanwhile is lost, the others go on", async () => {
    const lost: string[] = [];
    const [connection, ear] = await Ear.open(transport, { onSessionLost: (sessionId) => lost.push(sessionId) });
    const [gone, kept] = [await create(connection), await create(connection)];
    await connection.prompt(kept, "kept");
    cutter.block();
    await daemon.client("chief").deleteSession(gone);
    cutter.unblock();
    expect((await connection.prompt(kept, "and on")).stopReason).toBe("end_turn");
    expect(lost).toEqual([gone]);
    expect(ear.ends).toEqual([]);
    await expect(connection.prompt(gone, "hello")).rejects.toMatchObject({ kind: "agent" });
  });
});

// protocol: META.joins: the process of a live session answers and none is started
test("a connection joins a session, and comes back without it", async () => {
  const processes = async () => (await client().agents())[0]?.processes ?? 0;
  const { sessionId } = await client().createSession({ cwd: daemon.directory });
  const before = await processes();
  const [connection, ear] = await Ear.open("websocket", { joins: sessionId });
  await connection.load(sessionId);
  await connection.request("session/set_mode", { sessionId, modeId: "plan" });
  // Fewer when one of an earlier connection has gone meanwhile.
  expect(await processes()).toBeLessThanOrEqual(before);
  cutter.block();
  await daemon.client("chief").closeSession(sessionId);
  cutter.unblock();
  expect((await connection.prompt(sessionId, "and on")).stopReason).toBe("end_turn");
  expect(ear.text()).toBe("and on");
});

// inspector: SDK: open prompts answered: what acpd does not take is not sent for ever
test("a prompt that is too long", async () => {
  const strict = await Daemon.forTest({}, '[limits]\nline_bytes = "64 KiB"\n');
  for (const [transport, failure] of [["http", { code: "too_large" }], ["websocket", { kind: "network" }]] as const) {
    const connection = await strict.client().connect({ transport, WebSocket });
    const { sessionId } = await connection.newSession({ cwd: strict.directory });
    await expect(connection.prompt(sessionId, "x".repeat(100_000))).rejects.toMatchObject(failure);
    expect(await connection.prompt(sessionId, "short")).toMatchObject({ stopReason: "end_turn" });
    await connection.close();
  }
});

// inspector: SDK: what may be done once is not done again by itself
test("a request that is cut says that it is not known what became of it", async () => {
  const [connection, ear] = await Ear.open("websocket");
  const sessionId = await create(connection);
  const prompt = [{ type: "text" as const, text: "begun\nhang" }];
  const cut = expect(connection.request("session/prompt", { sessionId, prompt })).rejects.toThrow(/done or not/);
  await ear.until(() => ear.text() === "begun");
  cutter.cut();
  await cut;
  await connection.cancel(sessionId);
});

// inspector: SDK: a daemon that stays away is given up in time
test("a daemon that does not come back", async () => {
  const other = await Daemon.forTest();
  const connection = await other.client().connect({ retryForMs: 300 });
  const { sessionId } = await connection.newSession({ cwd: other.directory });
  const pending = expect(connection.prompt(sessionId, "hang")).rejects.toMatchObject({ kind: "network" });
  await other.kill();
  await pending;
  expect(await connection.closed).toMatchObject({ kind: "network" });
  await expect(connection.prompt(sessionId, "hello")).rejects.toMatchObject({ kind: "network" });
});
