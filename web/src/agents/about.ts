import type { Agent, AgentCheck } from "acpd-client";
import type { Tone } from "../ui/tone";
import { isRecord } from "./capabilities";

/** How an agent stands, in a word. */
export function health(agent: Agent): { tone: Tone; text: string; more: string } {
  switch (agent.status) {
    case "running":
      return { tone: "good", text: "Running", more: "A process of it runs." };
    case "stopped":
      return { tone: "still", text: "Not running", more: "None of its processes runs; one is started when it is needed." };
    case "error":
      return { tone: "bad", text: "Failing", more: "The last start failed, or the last process crashed." };
  }
}

/** What an agent calls itself, with its version, in its answer to `initialize`. */
export function introduced(initialize: unknown): string | undefined {
  const info = isRecord(initialize) ? initialize["agentInfo"] : undefined;
  if (!isRecord(info)) return undefined;
  const words = [info["title"] ?? info["name"], info["version"]].filter((word): word is string => typeof word === "string" && word !== "");
  return words.length === 0 ? undefined : words.join(" ");
}

/** The ways in which a login to the agent is possible, as it names them. */
export function logins(initialize: unknown): string[] {
  const methods = isRecord(initialize) ? initialize["authMethods"] : undefined;
  if (!Array.isArray(methods)) return [];
  return methods.flatMap((method: unknown) => {
    if (!isRecord(method)) return [];
    const name = method["name"] ?? method["id"];
    return typeof name === "string" ? [name] : [];
  });
}

/** What of an agent is known to be supported: what it has said while acpd ran, or in a check. */
export function toldCapabilities(agent: Agent, check: AgentCheck | undefined): Record<string, unknown> | undefined {
  const checked = check?.initialize?.["agentCapabilities"];
  return isRecord(checked) ? checked : agent.capabilities;
}
