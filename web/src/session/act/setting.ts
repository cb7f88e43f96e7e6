import type { AcpConnection, AcpdClient } from "acpd-client";
import { tab } from "../../api/tab";

/** What is set is told under the name of this tab. */
const CLIENT = { name: tab, title: "acpd inspector", version: "1" };

/** A change of what a session is set to. */
export type Setting =
  | { readonly what: "mode"; readonly modeId: string }
  | { readonly what: "option"; readonly configId: string; readonly value: string | boolean };

/** Sets a mode or an option of a live session, over ACP: REST has no way to. The connection lasts as long as that takes. */
export async function change(client: AcpdClient, sessionId: string, agent: string, setting: Setting): Promise<void> {
  // Over HTTP it uses the fetch of the pages, which has their token and hears how it went.
  const connection = await client.connect({ agent, joins: sessionId, transport: "http", clientInfo: CLIENT });
  try {
    await connection.resume(sessionId);
    await ask(connection, sessionId, setting);
  } finally {
    await connection.close();
  }
}

async function ask(connection: AcpConnection, sessionId: string, setting: Setting): Promise<void> {
  if (setting.what === "mode") {
    await connection.request("session/set_mode", { sessionId, modeId: setting.modeId });
    return;
  }
  const { configId, value } = setting;
  const params = typeof value === "boolean" ? { sessionId, configId, type: "boolean" as const, value } : { sessionId, configId, value };
  await connection.request("session/set_config_option", params);
}
