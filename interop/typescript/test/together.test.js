// Two clients on different transports at one session.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Conversation } from "../src/conversation.js";
import { Daemon } from "../src/daemon.js";

let daemon;
before(async () => {
  daemon = await Daemon.start();
});
after(() => daemon.stop());

// MC-1, UP-1: both see everything, in the same order, whoever prompts
test("clients over HTTP and WebSocket see the same", async () => {
  const [http, websocket] = await Promise.all(
    ["http", "websocket"].map((transport) => Conversation.begin(transport, daemon)),
  );
  const session = await http.create();
  await http.prompt(session, "before you came");
  await websocket.load(session);
  assert.equal(websocket.text(session), http.text(session));

  for (const [prompter, other] of [[http, websocket], [websocket, http]]) {
    const from = [prompter.updates.length, other.updates.length];
    await prompter.prompt(session, "stream 300 20\nthe end");
    await other.until(() => other.text(session, "agent_message_chunk", from[1]).endsWith("the end"));
    const [its, others] = [prompter, other].map((client, at) =>
      client.updates.slice(from[at]).filter(({ update }) => update.sessionUpdate !== "user_message_chunk"),
    );
    assert.deepEqual(others.map(({ update }) => update), its.map(({ update }) => update));
    const told = other.text(session, "user_message_chunk", from[1]);
    assert.equal(told, "stream 300 20\nthe end");
  }
  await Promise.all([http.leave(), websocket.leave()]);
});

// PE-2: both are asked, the first answer counts, the other's question is taken back
test("the first answer to a permission request counts", async () => {
  const watching = await Conversation.begin("http", daemon);
  const choosing = await Conversation.begin("websocket", daemon, (options) => {
    return options.find(({ kind }) => kind === "allow_once").optionId;
  });
  const session = await watching.create();
  await choosing.load(session);
  const { stopReason } = await watching.prompt(session, "ask edit");
  assert.equal(stopReason, "end_turn");
  assert.deepEqual([watching.permissions.length, choosing.permissions.length], [1, 1]);
  assert.match(watching.text(session), /allow/);
  await Promise.all([watching.leave(), choosing.leave()]);
});
