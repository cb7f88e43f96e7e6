import type { AcpdClient } from "acpd-client";

/** The session as the daemon exports it, as text. */
export async function exported(client: AcpdClient, id: string, format: "jsonl" | "markdown"): Promise<string> {
  return new Response(await client.exportSession(id, { format })).text();
}

/** Has the browser save a text as a file. */
export function save(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
