// Prompts an agent in this directory and prints what it says:
//
//     node prompt.js "what is in this directory?"
//
// ACPD_URL and ACPD_TOKEN name the daemon, if it is not at its usual place.

import { AcpdClient, updateOf } from "acpd-client";

const { ACPD_URL: url = "http://127.0.0.1:2273", ACPD_TOKEN: token } = process.env;
const client = new AcpdClient({ url, ...(token ? { token } : {}) });

const prompt = process.argv.slice(2).join(" ") || "hello";
const { sessionId } = await client.createSession({ cwd: process.cwd(), prompt, closeAfterTurn: true });

for await (const event of client.events(sessionId)) {
  const update = updateOf(event);
  if (update?.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
    process.stdout.write(update.content.text);
  }
  if (event.kind === "permission_requested") console.error("\n(it asks for a permission: `acpd sessions answer`)");
  if (event.kind === "turn_ended") console.log(`\n${event.stopReason ?? "failed"}`);
}
