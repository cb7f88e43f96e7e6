// Events over connections that are cut and daemons that are killed.
//
// ACPD_CLIENT_EVENTS (default 2000) events and ACPD_CLIENT_KILLS (default 4) kills; in full: 20000 and 20.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type AcpdClient, type AcpdEvent, type ConnectionState, SessionRemovedError } from "acpd-client";
import { Daemon } from "./daemon.js";

const EVENTS = Number(process.env["ACPD_CLIENT_EVENTS"] ?? 2_000);
const KILLS = Number(process.env["ACPD_CLIENT_KILLS"] ?? 4);
const PATIENT = 120_000 + KILLS * 20_000;

let daemon: Daemon;
let client: AcpdClient;
beforeAll(async () => {
  daemon = await Daemon.start();
  client = daemon.client();
});
afterAll(() => daemon?.stop());

const create = async (prompt?: string) =>
  (await client.createSession({ cwd: daemon.directory, ...(prompt === undefined ? {} : { prompt }) })).sessionId;

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

// contract 1.6: exactly what is missing, from the log, also after a restart
test("each event of a long history once, over kills", { timeout: PATIENT }, async () => {
  const sessionId = await create(`stream ${EVENTS} 400`);
  for await (const event of client.events(sessionId)) if (event.kind === "turn_ended") break;
  const states: ConnectionState["state"][] = [];
  const seen: number[] = [];
  let kills = 0;
  const events = client.events(sessionId, { onConnection: ({ state }) => states.push(state) });
  for await (const { seq, kind } of events) {
    seen.push(seq);
    if (kind === "ended") break;
    if (kills < KILLS && seq >= ((kills + 1) * EVENTS) / (KILLS + 1)) {
      kills += 1;
      await daemon.kill();
      await daemon.restart();
    }
  }
  expect(kills).toBe(KILLS);
  expect(seen.length).toBeGreaterThan(EVENTS);
  expect(seen).toEqual(numbers(seen.length));
  expect(states).toContain("waiting");
});

// contract 1.6, issue 12: killed in the middle of a turn; the end of the run is told by the daemon that comes
test("each event of a live stream once, over kills", { timeout: PATIENT }, async () => {
  const sessionId = await create();
  const each = Math.ceil(EVENTS / KILLS);
  const seen: AcpdEvent[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    if (kill > 0) await client.resume(sessionId);
    await client.prompt(sessionId, `stream ${each} 100\nhang`);
    const begun = seen.length;
    for await (const event of client.events(sessionId, { after: begun })) {
      seen.push(event);
      if (seen.length !== begun + Math.floor(each / 2)) continue;
      await daemon.kill();
      await daemon.restart();
    }
    expect(seen.at(-1)).toMatchObject({ kind: "ended", terminationInfo: { cause: "daemon_lost", turnActive: true } });
  }
  expect(seen.length).toBeGreaterThan(EVENTS / 2);
  expect(seen.map(({ seq }) => seq)).toEqual(numbers(seen.length));
  expect((await client.getSession(sessionId)).eventCount).toBe(seen.length);
});

// inspector: SDK: an iterator that ends with the session's run
test("events end with the run, and say so", async () => {
  const sessionId = await create("hello");
  for await (const event of client.events(sessionId)) if (event.kind === "turn_ended") break;
  await client.closeSession(sessionId);
  const { eventCount } = await client.getSession(sessionId);
  const events = client.events(sessionId, { after: eventCount });
  expect(await events.next()).toEqual({ done: true, value: { reason: "ended", after: eventCount } });
  const whole = client.events(sessionId);
  for (let seq = 1; seq <= eventCount; seq += 1) expect((await whole.next()).value).toMatchObject({ seq });
  expect(await whole.next()).toMatchObject({ done: true, value: { reason: "ended" } });
});

// protocol: `deleted`: the session was removed
test("events end when the session is removed", async () => {
  const sessionId = await create(`stream ${EVENTS} 2000`);
  for await (const event of client.events(sessionId)) if (event.kind === "turn_ended") break;
  // More than fits on the way: the reader is in the middle when the session goes.
  const events = client.events(sessionId, { retryForMs: 60_000 });
  await events.next();
  await client.deleteSession(sessionId);
  let last = 1;
  for (;;) {
    const { done, value } = await events.next();
    if (done) {
      expect(value.after).toBe(last);
      return;
    }
    expect(value.seq).toBe((last += 1));
  }
});

// inspector: SDK: what cannot be followed is told, not waited for
test("events of what is not there, or not yet there", async () => {
  const nothing = "00000000-0000-7000-8000-000000000000";
  await expect(client.events(nothing).next()).rejects.toMatchObject({ code: "session_not_found" });
  const sessionId = await create();
  await expect(client.events(sessionId, { after: 99 }).next()).rejects.toMatchObject({ code: "cursor_in_the_future" });
});

// inspector: SDK: a daemon that stays away is given up in time
test("a daemon that is away", async () => {
  const gone = await Daemon.forTest();
  const states: ConnectionState[] = [];
  const { sessionId } = await gone.client().createSession({ cwd: gone.directory });
  const events = gone.client().events(sessionId, { retryForMs: 8_000, onConnection: (state) => states.push(state) });
  await events.next();
  await events.next();
  // On a busy machine it takes seconds until its end is seen, which count.
  await gone.kill();
  await expect(drained(events)).rejects.toMatchObject({ kind: "network" });
  expect(states.map(({ state }) => state)).toEqual(expect.arrayContaining(["open", "waiting"]));
});

async function drained(events: AsyncIterable<AcpdEvent>): Promise<void> {
  for await (const event of events) void event;
}

// inspector: SDK: waitForEnd, onSessionEnded
test("the end of a session is waited for", async () => {
  const sessionId = await create("hang");
  const ends = [client.waitForEnd(sessionId), client.waitForEnd(sessionId)];
  const told = new Promise((ended, failed) => client.onSessionEnded(sessionId, { ended, failed }));
  const untold = new Promise((ended, failed) => client.onSessionEnded(sessionId, { ended, failed })());
  await client.terminateSession(sessionId);
  const info = { reason: "terminated", cause: "client_terminate" };
  expect(await Promise.all([...ends, told])).toMatchObject([info, info, info]);
  expect(await client.waitForEnd(sessionId)).toMatchObject(info);
  expect(await Promise.race([untold, Promise.resolve("not told")])).toBe("not told");
});

test("a session that is removed has no end to wait for", async () => {
  const nothing = "00000000-0000-7000-8000-000000000000";
  const failed = new Promise((resolve) => client.onSessionEnded(nothing, { ended: () => undefined, failed: resolve }));
  expect(await failed).toMatchObject({ code: "session_not_found" });
  expect(new SessionRemovedError(nothing)).toMatchObject({ kind: "removed", sessionId: nothing });
});

// inspector: SDK: retries are safe: a prompt that is sent while the daemon is away runs once
test("a prompt outlives a restart", async () => {
  const sessionId = await create();
  await client.closeSession(sessionId);
  await daemon.kill();
  const accepted = client.createSession({ cwd: daemon.directory, prompt: "once" }, { retryForMs: 60_000 });
  await daemon.restart();
  const created = await accepted;
  for await (const event of client.events(created.sessionId)) if (event.kind === "turn_ended") break;
  const { events } = await client.eventsPage(created.sessionId);
  expect(events.filter(({ kind }) => kind === "prompt").length).toBe(1);
  await expect(client.prompt(sessionId, "late")).rejects.toMatchObject({ code: "session_ended" });
});
