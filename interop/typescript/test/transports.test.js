// acpd over each transport, as an unchanged client on the official SDK sees it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { RequestError } from "@agentclientprotocol/sdk";
import { Conversation, TRANSPORTS } from "../src/conversation.js";
import { Daemon } from "../src/daemon.js";

const rejectOnce = (options) => options.find(({ kind }) => kind === "reject_once").optionId;

for (const transport of Object.keys(TRANSPORTS)) {
  describe(transport, () => {
    let daemon;
    const open = [];
    const begin = async (answer) => {
      const conversation = await Conversation.begin(transport, daemon, answer);
      open.push(conversation);
      return conversation;
    };
    before(async () => {
      daemon = await Daemon.start();
    });
    after(async () => {
      await Promise.all(open.map((conversation) => conversation.leave()));
      await daemon.stop();
    });

    // HT-1, WS-1, IN-1: initialize, then sessions and turns, each update before the turn's answer
    test("a turn streams and ends", async () => {
      const client = await begin();
      assert.equal(client.offers.protocolVersion, 1);
      assert.ok(client.offers.agentCapabilities.loadSession);
      const session = await client.create();
      const { stopReason } = await client.prompt(session, "stream 200 50\na last word");
      assert.equal(stopReason, "end_turn");
      const chunks = client.updates.filter(({ update }) => update.sessionUpdate === "agent_message_chunk");
      assert.ok(chunks.length > 200, `${chunks.length} chunks`);
      assert.ok(client.text(session).endsWith("a last word"));
    });

    // PE-1: the options as the agent gave them; the chosen one goes back
    test("a permission request is answered", async () => {
      const client = await begin(rejectOnce);
      const session = await client.create();
      const { stopReason } = await client.prompt(session, "ask edit Change it");
      assert.equal(stopReason, "end_turn");
      assert.equal(client.permissions.length, 1);
      const [{ options, toolCall }] = client.permissions;
      assert.equal(options.length, 4);
      assert.equal(toolCall.title, "Change it");
      assert.match(client.text(session), new RegExp(rejectOnce(options)));
    });

    // PR-4, PR-7: ended by cancel, and the session goes on
    test("a hanging turn is cancelled", async () => {
      const client = await begin();
      const session = await client.create();
      const answer = client.prompt(session, "waiting\nhang");
      await client.until(() => client.text(session) === "waiting");
      await client.cancel(session);
      assert.equal((await answer).stopReason, "cancelled");
      assert.equal((await client.prompt(session, "again")).stopReason, "end_turn");
    });

    // UP-6: the mode is set, and whoever loads the session is told
    test("a mode is set", async () => {
      const client = await begin();
      const session = await client.create();
      await client.agent.request("session/set_mode", { sessionId: session, modeId: "plan" });
      const later = await begin();
      assert.equal((await later.load(session)).modes.currentModeId, "plan");
    });

    // HT-5, UP-4: the replay is what was seen live, all of it before the answer of load
    test("a second connection loads the whole history", async () => {
      const client = await begin();
      const session = await client.create();
      await client.prompt(session, "stream 500 100\nplan A,B\ntool build");
      const later = await begin();
      await later.load(session);
      assert.equal(later.text(session), client.text(session));
      assert.match(later.text(session, "user_message_chunk"), /^stream 500 100/);
      const kinds = (heard) => new Set(heard.updates.map(({ update }) => update.sessionUpdate));
      assert.ok(kinds(later).has("plan") && kinds(later).has("tool_call"));
      const seen = later.updates.length;
      assert.equal((await later.prompt(session, "and on")).stopReason, "end_turn");
      assert.equal(later.text(session, "agent_message_chunk", seen), "and on");
    });

    // SE-9: listed; closed, but kept
    test("sessions are listed and closed", async () => {
      const client = await begin();
      const session = await client.create();
      const listed = async () => (await client.agent.request("session/list", {})).sessions;
      assert.ok((await listed()).some(({ sessionId }) => sessionId === session));
      await client.agent.request("session/close", { sessionId: session });
      assert.ok((await listed()).some(({ sessionId }) => sessionId === session));
      const { ended, terminationInfo } = await daemon.session(session);
      assert.deepEqual([ended, terminationInfo.cause], [true, "client_close"]);
    });

    // SC-3, FR-4: an error of the request only; the connection stays usable
    test("an unknown session is an error, and the connection stays", async () => {
      const client = await begin();
      const session = await client.create();
      const unknown = "00000000-0000-7000-8000-000000000000";
      for (const request of [client.load(unknown), client.prompt(unknown, "anybody?")]) {
        await assert.rejects(request, (error) => {
          assert.ok(error instanceof RequestError, String(error));
          assert.equal(error.code, -32002);
          return true;
        });
      }
      assert.equal((await client.prompt(session, "still here")).stopReason, "end_turn");
      assert.equal(client.text(session), "still here");
    });

    // PR-11, contract 1.2: the error says how the agent ended, the end is told once
    test("a crash is told with its exit code", async () => {
      const client = await begin();
      const session = await client.create();
      await assert.rejects(client.prompt(session, "crash"), (error) => {
        const { cause, exitCode, stderr } = error.data.terminationInfo;
        assert.deepEqual([cause, exitCode, stderr.totalLines], ["agent_crash", 1, 250]);
        return true;
      });
      await client.until(() => client.ended.length === 1);
      assert.equal(client.ended[0].session_id, session);
      const other = await client.create();
      assert.equal((await client.prompt(other, "still here")).stopReason, "end_turn");
      assert.equal(client.ended.length, 1);
    });

    // MC-2, PR-12: who leaves ends nothing; the turn goes on and can be watched by who comes
    test("a session lives on when its client leaves", async () => {
      const client = await begin();
      const session = await client.create();
      const answer = client.prompt(session, "ask edit");
      const lost = assert.rejects(answer);
      await client.until(() => client.permissions.length === 1);
      await client.leave();
      await lost;
      const later = await begin(rejectOnce);
      await later.load(session);
      await later.until(() => later.permissions.length === 1);
      await later.until(() => later.text(session).includes("reject"));
      assert.equal((await later.prompt(session, "done")).stopReason, "end_turn");
      const { ended, state } = await daemon.session(session);
      assert.deepEqual([ended, state], [false, "idle"]);
    });

    // SC-1: no work for who has no token
    test("without a token there is nothing", async () => {
      const stranger = { ...daemon, headers: { Authorization: "Bearer acpd_wrong" } };
      await assert.rejects(Conversation.begin(transport, stranger), /401/);
    });
  });
}
