// What acpd asks and tells over ACP, brought to the functions of `ConnectOptions`.
//
// Invariant: messages of agents pass as they came. The SDK's own checks would drop what is of a later version of ACP.

import type {
  ClientApp,
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
} from "@agentclientprotocol/sdk";
import { isRecord, type JsonRecord } from "../records.js";
import { isElicitation, isPermissionRequest, isUpdate } from "../shapes.js";
import { ask, tell } from "../telling.js";
import type { ElicitationOutcome } from "../types.js";
import type { ConnectOptions, SessionEnd } from "./options.js";

type Sdk = typeof import("@agentclientprotocol/sdk");

/** The client's side of one connection. `ended` hears of sessions that have ended before the caller does. */
export function dialogue(sdk: Sdk, options: ConnectOptions, ended: (sessionId: string) => void): ClientApp {
  const app = sdk.client({ name: options.clientInfo?.name ?? "acpd-client" });
  // In the order of how often they come: each handler behind another one is a step later.
  app.onNotification("session/update", asUpdate, ({ params }) => tell(() => options.onUpdate?.(params)));
  app.onNotification("_sandboxagent/session/ended", asEnded, ({ params: { sessionId, end } }) => {
    ended(sessionId);
    tell(() => options.onSessionEnded?.(sessionId, end));
  });
  answerQuestions(app, options);
  options.configure?.(app);
  app.onNotification("*", ({ method, params }) => tell(() => options.onNotification?.(method, params)));
  return app;
}

function answerQuestions(app: ClientApp, options: ConnectOptions): void {
  app.onRequest("session/request_permission", asPermission, async ({ params, signal }) => {
    const outcome = await ask(() => options.onPermission?.(params, { signal }));
    if (outcome === undefined) await over(signal);
    return { outcome: outcome ?? { outcome: "cancelled" } } satisfies RequestPermissionResponse;
  });
  if (options.onElicitation === undefined) return;
  app.onRequest("elicitation/create", asElicitation, async ({ params, signal }) => {
    const outcome = await ask(() => options.onElicitation?.(params, { signal }));
    if (outcome === undefined) await over(signal);
    return answerOf(outcome ?? { action: "cancel" });
  });
}

// A question that is left to others is answered when the answer does not count any more.
function over(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}

function answerOf(outcome: ElicitationOutcome): CreateElicitationResponse {
  if (outcome.action !== "accept" || outcome.content === undefined) return { action: outcome.action };
  return { action: "accept", content: { ...outcome.content } };
}

function asUpdate(params: unknown): SessionNotification {
  return checked(params, isNotification, "session/update");
}

function asPermission(params: unknown): RequestPermissionRequest {
  return checked(params, isPermissionRequest, "session/request_permission");
}

function asElicitation(params: unknown): CreateElicitationRequest {
  return checked(params, isElicitation, "elicitation/create");
}

function checked<Params>(params: unknown, is: (params: unknown) => params is Params, method: string): Params {
  if (is(params)) return params;
  throw new TypeError(`the parameters of ${method} are not those of ACP`);
}

function isNotification(value: unknown): value is SessionNotification {
  return isRecord(value) && typeof value["sessionId"] === "string" && isUpdate(value["update"]);
}

/** `_sandboxagent/session/ended`, whose members are written with underscores. */
export function asEnded(params: unknown): { sessionId: string; end: SessionEnd } {
  if (!isRecord(params) || typeof params["session_id"] !== "string" || !isRecord(params["data"])) {
    throw new TypeError("the parameters of _sandboxagent/session/ended are not those of acpd");
  }
  const end = camelCased(params["data"]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- docs/protocol.md says what it is
  return { sessionId: params["session_id"], end: end as SessionEnd };
}

// Of the members of an object, and of those of the objects in it.
function camelCased(record: JsonRecord): JsonRecord {
  const named = Object.entries(record).map(([name, value]): [string, unknown] => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    isRecord(value) ? camelCased(value) : value,
  ]);
  return Object.fromEntries(named);
}
