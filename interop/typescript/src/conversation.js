// What a test says to acpd through the official SDK, and what it heard, in the order in which it came.
//
// Invariant: the SDK's streams are used as they come, with no option but the header of the token.

import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";

export const TRANSPORTS = {
  http: (daemon) => createHttpStream(`http://${daemon.address}/acp`, { headers: daemon.headers }),
  websocket: (daemon) =>
    createWebSocketStream(`ws://${daemon.address}/acp`, { WebSocket, headers: daemon.headers }),
};

const { agent: calls, client: served } = acp.methods;

export class Conversation {
  updates = [];
  permissions = [];
  ended = [];
  #waiting = [];

  // `answer` chooses the option of a permission request; without it, the request stays open.
  static async begin(transport, daemon, answer) {
    const conversation = new Conversation(TRANSPORTS[transport](daemon), daemon, answer);
    conversation.offers = await conversation.agent.request(calls.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: { name: `typescript-${transport}`, version: "1" },
      clientCapabilities: {},
    });
    return conversation;
  }

  constructor(stream, daemon, answer) {
    this.daemon = daemon;
    this.connection = acp
      .client({ name: "interop" })
      .onNotification(served.session.update, ({ params }) => this.#heard(this.updates, params))
      .onNotification("_sandboxagent/session/ended", (params) => params, ({ params }) => this.#heard(this.ended, params))
      .onRequest(served.session.requestPermission, ({ params, signal }) => {
        this.#heard(this.permissions, params);
        if (answer) return { outcome: { outcome: "selected", optionId: answer(params.options) } };
        return new Promise((resolve) =>
          signal.addEventListener("abort", () => resolve({ outcome: { outcome: "cancelled" } })),
        );
      })
      .connect(stream);
    this.agent = this.connection.agent;
  }

  async create() {
    const { sessionId } = await this.agent.request(calls.session.new, { cwd: this.daemon.directory, mcpServers: [] });
    return sessionId;
  }

  load(sessionId) {
    const request = { sessionId, cwd: this.daemon.directory, mcpServers: [] };
    return this.agent.request(calls.session.load, request);
  }

  prompt(sessionId, text) {
    return this.agent.request(calls.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  }

  cancel(sessionId) {
    return this.agent.notify(calls.session.cancel, { sessionId });
  }

  // The text of a session's updates of one kind, from the update number `from` on.
  text(sessionId, kind = "agent_message_chunk", from = 0) {
    const said = this.updates.slice(from).filter((update) => update.sessionId === sessionId);
    const chunks = said.map(({ update }) => update).filter((update) => update.sessionUpdate === kind);
    return chunks.map(({ content }) => content.text).join("");
  }

  // Waits until what was heard is enough.
  until(isEnough) {
    if (isEnough(this)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ isEnough, resolve });
      this.connection.closed.then(() => reject(new Error("the connection has closed")), reject);
    });
  }

  async leave() {
    this.connection.close();
    await this.connection.closed.catch(() => {});
  }

  #heard(list, params) {
    list.push(params);
    this.#waiting = this.#waiting.filter(({ isEnough, resolve }) => {
      const enough = isEnough(this);
      if (enough) resolve();
      return !enough;
    });
  }
}
