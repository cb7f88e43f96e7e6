// Prints how each session has ended, the latest change first:
//
//     node ends.js
//
// ACPD_URL and ACPD_TOKEN name the daemon, if it is not at its usual place.

import { AcpdClient } from "acpd-client";

const { ACPD_URL: url = "http://127.0.0.1:2273", ACPD_TOKEN: token } = process.env;
const client = new AcpdClient({ url, ...(token ? { token } : {}) });

/** @param {import("acpd-client").TerminationInfo | undefined} info */
function words(info) {
  if (info === undefined) return "no record";
  const how = info.exitCode === undefined ? info.signal : `code ${info.exitCode}`;
  return [info.reason, info.cause, how].filter((word) => word !== undefined).join(", ");
}

for await (const session of client.listSessions({ ended: true })) {
  console.log(`${session.sessionId}  ${session.agent}  ${words(session.terminationInfo)}  ${session.title ?? ""}`);
}
