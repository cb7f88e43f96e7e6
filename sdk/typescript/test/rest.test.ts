// Every operation of REST, against a real daemon and the example agent.

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type AcpdClient, AcpdClient as Client, isProblem, type Session } from "acpd-client";
import { Daemon } from "./daemon.js";

let daemon: Daemon;
let client: AcpdClient;
beforeAll(async () => {
  daemon = await Daemon.start();
  client = daemon.client();
});
afterAll(() => daemon?.stop());

const create = (prompt?: string) =>
  client.createSession({ cwd: daemon.directory, ...(prompt === undefined ? {} : { prompt }) });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const until = async (sessionId: string, kind: string, after = 0) => {
  for await (const event of client.events(sessionId, { after })) if (event.kind === kind) return event;
  throw new Error(`no ${kind}`);
};

// contract 1.6: events say whose a prompt is
test("a client has a name", async () => {
  const named = new Client({ url: daemon.url, name: "inspector 7f3a" });
  const { sessionId } = await create();
  await named.prompt(sessionId, "hello");
  expect(await until(sessionId, "prompt")).toMatchObject({ by: "inspector 7f3a" });
});

// contract 7.3: each operation of the document has its method
test("nothing of the document is missing", async () => {
  const document = await readFile(new URL("../../../docs/openapi.json", import.meta.url), "utf8");
  const { paths } = JSON.parse(document) as { paths: Record<string, Record<string, { operationId?: string }>> };
  const operations = Object.values(paths).flatMap((path) => Object.values(path).flatMap(({ operationId }) => operationId ?? []));
  const methods: Record<string, keyof AcpdClient> = {
    answerQuestion: "answer",
    cancelTurn: "cancel",
    forkSession: "fork",
    getHealth: "health",
    getReady: "ready",
    getSessionEvents: "events",
    getStats: "stats",
    listAgents: "agents",
    listTokens: "tokens",
    openByCode: "open",
    promptSession: "prompt",
    pruneSessions: "prune",
    reloadConfiguration: "reload",
    resumeSession: "resume",
  };
  const missing = operations.filter((name) => !((methods[name] ?? name) in Client.prototype));
  expect(operations.length).toBeGreaterThan(20);
  expect(missing).toEqual([]);
});

describe("a session", () => {
  // contract 7.3: POST /v1/sessions, prompt, close, resume, fork, terminate, delete
  test("from its creation to its removal", async () => {
    const { sessionId, state } = await client.createSession({ cwd: daemon.directory, title: "A title" });
    expect(state).toBe("idle");
    const accepted = await client.prompt(sessionId, "hello");
    expect(accepted).toEqual({ turn: 1, seq: 4 });
    await until(sessionId, "turn_ended");
    await client.cancel(sessionId);
    await client.closeSession(sessionId);
    expect(await client.getSession(sessionId)).toMatchObject({ title: "A title", ended: true, state: "ended" });
    expect(await client.resume(sessionId)).toMatchObject({ ended: false });
    const forked = await client.fork(sessionId);
    expect(forked.sessionId).not.toBe(sessionId);
    await client.terminateSession(sessionId);
    expect((await client.getSession(sessionId)).terminationInfo?.reason).toBe("terminated");
    for (const id of [sessionId, forked.sessionId]) await client.deleteSession(id);
    await expect(client.getSession(sessionId)).rejects.toMatchObject({ code: "session_not_found", status: 404 });
  });

  // contract 7.3: answer {question, outcome} 204, 409 question_closed, 422 not_offered
  test("a question is answered, once", async () => {
    const { sessionId } = await create("ask edit\nelicit Your name?");
    const asked = await until(sessionId, "permission_requested");
    if (asked.kind !== "permission_requested") throw new Error("the kind that was waited for");
    // Options by what they mean: their ids are the agent's own.
    const { toolCall, options } = asked.question;
    expect(options.map(({ kind }) => kind)).toEqual(["allow_once", "allow_always", "reject_once", "reject_always"]);
    expect(toolCall?.kind).toBe("edit");
    const once = options.find(({ kind }) => kind === "allow_once")?.optionId ?? "";
    const page = await client.eventsPage(sessionId, { after: asked.seq - 1, limit: 1 });
    expect(page.events.map((event) => event.kind === "permission_requested" && event.question)).toEqual([asked.question]);
    expect(JSON.stringify(page.events)).not.toContain('"question"');
    const wrong = client.answer(sessionId, asked.seq, { outcome: "selected", optionId: "nothing" });
    await expect(wrong).rejects.toMatchObject({ code: "not_offered" });
    await client.answer(sessionId, asked.seq, { outcome: "selected", optionId: once });
    const late = client.answer(sessionId, asked.seq, { outcome: "cancelled" });
    await expect(late).rejects.toMatchObject({ code: "question_closed" });
    const form = await until(sessionId, "elicitation_requested");
    expect(form.kind === "elicitation_requested" && form.question.message).toBe("Your name?");
    await client.answer(sessionId, form.seq, { action: "decline" });
    expect(await until(sessionId, "turn_ended")).toMatchObject({ stopReason: "end_turn" });
  });

  // contract 7.3: a prompt is taken back by its key, whether it waits or runs
  test("a prompt is taken back", async () => {
    const { sessionId } = await create();
    await client.prompt(sessionId, "hang", { idempotencyKey: "runs" });
    expect(await client.prompt(sessionId, "hello", { idempotencyKey: "waits" })).toEqual({ waiting: 1 });
    await client.cancel(sessionId, { idempotencyKey: "waits" });
    const late = client.cancel(sessionId, { idempotencyKey: "waits" });
    await expect(late).rejects.toMatchObject({ code: "prompt_over", status: 409 });
    await client.cancel(sessionId, { idempotencyKey: "runs" });
    expect(await until(sessionId, "turn_ended")).toMatchObject({ turn: 1, stopReason: "cancelled" });
    expect(await client.getSession(sessionId)).toMatchObject({ promptsWaiting: 0 });
  });

  // contract 7.3: the same key is the same request
  test("a prompt that is sent again runs once", async () => {
    const { sessionId } = await create();
    const options = { idempotencyKey: "k-1" };
    const first = await client.prompt(sessionId, "hello", options);
    expect(await client.prompt(sessionId, "hello", options)).toEqual(first);
    await expect(client.prompt(sessionId, "other", options)).rejects.toMatchObject({ code: "idempotency_key_reused" });
    const second = await client.createSession({ cwd: daemon.directory }, { idempotencyKey: "k-2" });
    const again = await client.createSession({ cwd: daemon.directory }, { idempotencyKey: "k-2" });
    expect(again.sessionId).toBe(second.sessionId);
  });

  // contract 7.3: export and import are byte-equal
  test("is exported and imported", async () => {
    const { sessionId } = await create("wanderlust");
    await until(sessionId, "turn_ended");
    await client.closeSession(sessionId);
    const file = await new Response(await client.exportSession(sessionId)).text();
    const markdown = await new Response(await client.exportSession(sessionId, { format: "markdown" })).text();
    expect(markdown).toContain("wanderlust");
    await expect(client.importSession(file)).rejects.toMatchObject({ code: "session_exists" });
    await client.deleteSession(sessionId);
    expect((await client.importSession(new Blob([file]).stream())).sessionId).toBe(sessionId);
    expect(await new Response(await client.exportSession(sessionId)).text()).toBe(file);
  });

  // issue 28, RA10: with what tool calls and terminals wrote, where that is asked for
  test("is exported with details", async () => {
    const { sessionId } = await create("run echo wanderlust");
    await until(sessionId, "turn_ended");
    const page = async (options: { details?: boolean } = {}) =>
      new Response(await client.exportSession(sessionId, { format: "markdown", ...options })).text();
    const output = "\n```\nwanderlust\n```\n";
    expect(await page({ details: true })).toContain(output);
    expect(await page()).not.toContain(output);
    expect(await page({ details: false })).toBe(await page());
    await expect(client.exportSession(sessionId, { details: true })).rejects.toMatchObject({ code: "bad_request" });
  });

  // contract 1.6: pages of events, with a cursor
  test("its events come in pages, too", async () => {
    const { sessionId } = await create("one\ntwo");
    await until(sessionId, "turn_ended");
    const first = await client.eventsPage(sessionId, { limit: 2 });
    expect(first.events.map(({ seq }) => seq)).toEqual([1, 2]);
    const cursor = first.nextCursor ?? "";
    const rest = await client.eventsPage(sessionId, { after: cursor });
    expect(rest.events[0]?.seq).toBe(3);
    const followed = client.events(sessionId, { after: cursor });
    expect((await followed.next()).value).toEqual(rest.events[0]);
    await followed.return({ reason: "removed", after: 0 });
  });
});

describe("lists", () => {
  // inspector: SDK: listSessions, an iterator over pages
  test("sessions come over all pages, filtered", async () => {
    const made: Session[] = [];
    for (let n = 0; n < 5; n += 1) made.push(await client.createSession({ cwd: "/", title: `paged ${n}` }));
    await client.closeSession(made[0]?.sessionId ?? "");
    const titles = async (filter: { ended?: boolean }) =>
      (await all(client.listSessions({ cwd: "/", q: "paged", ...filter }, { limit: 2 }))).map(({ title }) => title).toSorted();
    expect(await titles({})).toEqual([0, 1, 2, 3, 4].map((n) => `paged ${n}`));
    expect(await titles({ ended: true })).toEqual(["paged 0"]);
    const page = await client.sessionsPage({ cwd: "/" }, { limit: 2 });
    expect(page.sessions.length).toBe(2);
    const next = await client.sessionsPage({ cwd: "/" }, { limit: 2, cursor: page.nextCursor ?? "" });
    expect(next.sessions[0]?.sessionId).not.toBe(page.sessions[0]?.sessionId);
  });

  // contract 7.3: GET /v1/search
  test("words are found", async () => {
    const { sessionId } = await create("a kaleidoscope");
    await until(sessionId, "turn_ended");
    // The index follows a moment behind the turn.
    while ((await client.searchPage("kaleidoscope")).incomplete);
    expect(await all(client.search("kaleidoscope", { limit: 1 }))).toMatchObject([{ sessionId }]);
  });
});

// contract 7.3: what tells of the daemon
test("the daemon", async () => {
  expect(await client.health()).toMatchObject({ status: "ok" });
  // A log that is slow to say so is a reason against it.
  await vi.waitFor(async () => expect(await client.ready()).toEqual({ ready: true }), { timeout: 60_000 });
  expect(await client.whoami()).toMatchObject({ scope: "admin", sees: "all" });
  expect(await client.tokens()).toEqual([]);
  expect(await client.stats()).toMatchObject({ stepMs: 10_000 });
  expect(await client.agents()).toMatchObject([{ name: "example", default: true }]);
  expect(await client.checkAgent("example")).toMatchObject({ ok: true });
  expect(await client.reload()).toMatchObject({ agents: 1 });
  // One of its own is in no fleet.
  for (const ask of [() => client.listNodes(), () => client.drainNode("a"), () => client.undrainNode("a"), () => client.removeNode("a")]) {
    await expect(ask()).rejects.toMatchObject({ code: "no_fleet", status: 409 });
  }
  expect(await client.prune({ olderThanMs: 3_600_000, dryRun: true })).toEqual({ sessions: [] });
});

// contract 7.1: the daemon goes on as what is installed, and waits for no client
test("a daemon hands over", async () => {
  const own = await Daemon.forTest();
  const { version } = await own.client().health();
  expect(await own.client().handOver()).toEqual({ version });
  // A connection that is kept for the next request may end under it.
  await vi.waitFor(async () => expect(await own.client().health()).toMatchObject({ version }), { timeout: 60_000 });
});

// inspector: Token entry: a code is good once
test("a code lets in, once", async () => {
  const guarded = await Daemon.forTest({ looker: ["--scope", "observe"] });
  const { code } = await guarded.owner().issueCode();
  await expect(guarded.client("looker").issueCode()).rejects.toMatchObject({ code: "forbidden" });
  const { token } = await guarded.client().open(code);
  const opened = new Client({ url: guarded.url, token });
  expect(await opened.whoami()).toMatchObject({ scope: "admin", sees: "all" });
  await expect(guarded.client().open(code)).rejects.toMatchObject({ code: "unauthorized" });
});

// contract 1.7: what the token does not include is a problem with a name
test("a token and its scope", async () => {
  const guarded = await Daemon.forTest({ looker: ["--scope", "observe"] });
  const looker = guarded.client("looker");
  expect(await looker.whoami()).toMatchObject({ name: "looker", scope: "observe" });
  const refused = looker.createSession({ cwd: guarded.directory }).catch((error: unknown) => error);
  expect(isProblem(await refused, "forbidden")).toBe(true);
  await expect(guarded.client().whoami()).rejects.toMatchObject({ code: "unauthorized", status: 401 });
});
