// What REST says and takes, under the names of its document, with the unions that JSON Schema cannot say.
//
// Boundary: types only. Everything here comes from `generated/openapi.ts` or from ACP's own types.

import type { ContentBlock, ElicitationContentValue, McpServer } from "@agentclientprotocol/sdk";
import type { operations } from "./generated/openapi.js";

export type {
  Agent,
  AgentCheck,
  AgentState,
  AgentStatus,
  AnsweredBy,
  Cause,
  Code,
  ExitStatus,
  FinalOutput,
  HandingOver,
  Health,
  HealthStatus,
  KnownToken,
  LastTurn,
  Limits,
  McpLimit,
  Node,
  Nodes,
  Opened,
  Part,
  PermissionMode,
  ProblemDocument,
  ProblemType,
  Prunable,
  Pruned,
  Ready,
  Reason,
  Reloaded,
  RemovedNode,
  Scope,
  SearchHit,
  SearchPage,
  Sees,
  Session,
  SessionInfo,
  SessionsPage,
  SessionState,
  Snapshot,
  Standing,
  Stats,
  StatsStep,
  StderrInfo,
  TerminatedBy,
  TerminationInfo,
  TranscriptFacts,
  Usage,
  Whoami,
} from "./generated/openapi.js";

type Query<Operation extends { parameters: { query?: unknown } }> = NonNullable<Operation["parameters"]["query"]>;
type Body<Operation extends { requestBody?: unknown }> =
  NonNullable<Operation["requestBody"]> extends { readonly content: { readonly "application/json": infer Json } }
    ? Json
    : never;

/** What a prompt is made of: text, or content blocks of ACP. */
export type Prompt = string | readonly ContentBlock[];

/** What a list of sessions can be narrowed to. */
export type SessionsFilter = Omit<Query<operations["listSessions"]>, "cursor" | "limit">;

/** A session that is to be created. */
export type NewSession = Omit<Body<operations["createSession"]>, "prompt" | "mcpServers"> & {
  /** Its first prompt. */
  readonly prompt?: Prompt;
  /** MCP servers, as in ACP. */
  readonly mcpServers?: readonly McpServer[];
};

/** Where a session that is taken up or forked is to work. What is absent is as it was. */
export type Whereabouts = Omit<Body<operations["resumeSession"]>, "mcpServers"> & {
  /** MCP servers, as in ACP. Default: none. */
  readonly mcpServers?: readonly McpServer[];
};

/** Which sessions a pruning removes. */
export type Prune = Body<operations["pruneSessions"]>;

/** The forms of an exported session. */
export type ExportFormat = NonNullable<Query<operations["exportSession"]>["format"]>;

/** What became of a prompt: it began a turn, or it waits behind so many others. */
export type PromptAccepted =
  | {
      /** The turn that it began. */
      readonly turn: number;
      /** The `seq` of the turn's first event. */
      readonly seq: number;
      readonly waiting?: undefined;
    }
  | {
      /** How many prompts will have their turns before. */
      readonly waiting: number;
      readonly turn?: undefined;
      readonly seq?: undefined;
    };

/** What is said to a permission request. */
export type PermissionOutcome =
  { readonly outcome: "selected"; readonly optionId: string } | { readonly outcome: "cancelled" };

/** What is said to an elicitation. */
export type ElicitationOutcome =
  | { readonly action: "accept"; readonly content?: Readonly<Record<string, ElicitationContentValue>> }
  | { readonly action: "decline" | "cancel" };
