// acpd as clients of sandbox-agent see it, unchanged but for the `fetch` of docs/migration.md.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AcpHttpClient } from "acp-http-client";
import { SandboxAgent } from "sandbox-agent";
import { Daemon } from "../src/daemon.js";
import { acpdFetch } from "../src/sandbox-agent.js";

let daemon;
before(async () => {
  daemon = await Daemon.start();
});
after(() => daemon.stop());

// What the agent said in some events of a session.
const text = (events) =>
  events
    .map(({ payload }) => payload?.params?.update)
    .filter((update) => update?.sessionUpdate === "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");

// HT-1, PE-1, SE-11: connect, create, prompt, permission, list, end
test("a client of sandbox-agent keeps its code", async () => {
  const client = await SandboxAgent.connect({
    baseUrl: `http://${daemon.address}`,
    token: daemon.token,
    fetch: acpdFetch(),
  });
  const session = await client.createSession({ agent: "example", cwd: daemon.directory });
  const asked = [];
  session.onPermissionRequest((request) => {
    asked.push(request);
    session.respondPermission(request.id, "reject");
  });
  const prompt = (words) => session.prompt([{ type: "text", text: words }]);
  assert.equal((await prompt("a first word")).stopReason, "end_turn");
  assert.equal((await prompt("ask edit Change it")).stopReason, "end_turn");
  assert.equal(asked.length, 1);
  assert.equal(asked[0].toolCall.title, "Change it");
  const { items } = await client.getEvents({ sessionId: session.id });
  assert.match(text(items), /a first word/);
  const chosen = asked[0].options.find(({ kind }) => kind === "reject_once").optionId;
  assert.match(text(items), new RegExp(chosen));

  const listed = await client.listSessions();
  assert.deepEqual(listed.items.map(({ id }) => id), [session.id]);
  const shown = await daemon.session(session.agentSessionId);
  assert.equal(shown.ended, false);
  await client.destroySession(session.id);
  await client.dispose();
});

// HT-1, SE-11: the client below it, which names its connections itself too
test("acp-http-client reaches acpd at its own path", async () => {
  const chunks = [];
  const client = new AcpHttpClient({
    baseUrl: `http://${daemon.address}`,
    token: daemon.token,
    fetch: acpdFetch(),
    transport: { path: "/v1/acp/any-name", bootstrapQuery: { agent: "example" } },
    client: { sessionUpdate: async ({ update }) => void chunks.push(update) },
  });
  await client.initialize();
  const { sessionId } = await client.newSession({ cwd: daemon.directory, mcpServers: [] });
  const answer = await client.prompt({ sessionId, prompt: [{ type: "text", text: "hello" }] });
  assert.equal(answer.stopReason, "end_turn");
  assert.ok(chunks.some(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk"));
  const { sessions } = await client.listSessions({});
  assert.ok(sessions.some((session) => session.sessionId === sessionId));
  await client.extMethod("_sandboxagent/session/terminate", { sessionId });
  assert.equal((await daemon.session(sessionId)).terminationInfo.cause, "client_terminate");
  await client.disconnect();
});
