// Whether what an agent sent has the shape without which nothing could be done with it.
//
// Invariant: asks for no more than that. What is of a later version of ACP passes.

import type { CreateElicitationRequest, PermissionOption, RequestPermissionRequest, SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord } from "./records.js";

/** Whether a value is an update that names its kind. */
export function isUpdate(value: unknown): value is SessionUpdate {
  return isRecord(value) && typeof value["sessionUpdate"] === "string";
}

/** Whether a value asks for a permission and offers options. */
export function isPermissionRequest(value: unknown): value is RequestPermissionRequest {
  return isRecord(value) && isRecord(value["toolCall"]) && Array.isArray(value["options"]);
}

/** Whether a value is a tool call that can be named. */
export function isToolCall(value: unknown): value is ToolCallUpdate {
  return isRecord(value) && typeof value["toolCallId"] === "string";
}

/** Whether a value is an option that can be chosen and shown. */
export function isOption(value: unknown): value is PermissionOption {
  return isRecord(value) && ["optionId", "name", "kind"].every((member) => typeof value[member] === "string");
}

/** Whether a value asks for something in words. */
export function isElicitation(value: unknown): value is CreateElicitationRequest {
  return isRecord(value) && typeof value["message"] === "string";
}
