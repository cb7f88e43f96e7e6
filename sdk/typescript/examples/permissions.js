// Prompts an agent over ACP and lets it edit files, but run no commands:
//
//     node permissions.js "tidy up"
//
// ACPD_URL and ACPD_TOKEN name the daemon, if it is not at its usual place. The turn is not lost with the connection.

import { AcpdClient } from "acpd-client";

const { ACPD_URL: url = "http://127.0.0.1:2273", ACPD_TOKEN: token } = process.env;
const client = new AcpdClient({ url, ...(token ? { token } : {}) });

const connection = await client.connect({
  onUpdate({ update }) {
    if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
      process.stdout.write(update.content.text);
    }
  },
  onPermission({ toolCall, options }) {
    const wanted = toolCall.kind === "edit" ? "allow_once" : "reject_once";
    console.log(`${toolCall.title}: ${wanted}`);
    const option = options.find(({ kind }) => kind === wanted);
    // Without such an option the question is left to the session's other clients.
    return option && { outcome: "selected", optionId: option.optionId };
  },
  onConnection(state) {
    if (state.state === "waiting") console.error(`${state.error.message}; again in ${state.retryInMs} ms`);
  },
});

const { sessionId } = await connection.newSession({ cwd: process.cwd() });
const { stopReason } = await connection.prompt(sessionId, process.argv.slice(2).join(" ") || "hello");
console.log(`\n${stopReason}`);
await connection.closeSession(sessionId);
await connection.close();
