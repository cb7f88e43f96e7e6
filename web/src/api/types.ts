/** What the daemon says, as far as the pages read it; contract 7.3. */
export type SessionState = "starting" | "idle" | "running" | "waiting" | "ended";
export type Scope = "observe" | "control" | "admin";
export type PermissionMode = "default" | "acceptEdits" | "bypassPermissions" | "deny";

export interface Usage {
  tokens?: Record<string, number>;
  cost?: Record<string, number>;
}

export interface TerminationInfo {
  reason: "completed" | "error" | "terminated";
  terminatedBy: "agent" | "daemon";
  message?: string;
  exitCode?: number;
  signal?: string;
  endedAt: string;
  cause?: string;
  initiator?: string;
  turnActive: boolean;
  lastStopReason?: string;
  leaked: boolean;
  stderr?: { head?: string; tail?: string; truncated: boolean; totalLines: number };
}

export interface Session {
  sessionId: string;
  agent: string;
  cwd: string;
  title?: string;
  ended: boolean;
  state: SessionState;
  createdAt: string;
  updatedAt: string;
  eventCount: number;
  usage?: Usage;
  lastTurn?: { stopReason?: string; durationMs: number; endedAt: string };
  openQuestions: number;
  model?: string;
  mode?: string;
  terminationInfo?: TerminationInfo;
  node?: string;
  metadata: Record<string, unknown>;
}

export interface SessionsPage {
  sessions: Session[];
  nextCursor?: string;
}

export interface SessionFilter {
  state?: SessionState;
  ended?: boolean;
  agent?: string;
  cwd?: string;
  q?: string;
  limit?: number;
  cursor?: string;
}

export interface NewSession {
  cwd: string;
  agent?: string;
  prompt?: string;
  permissionMode?: PermissionMode;
  title?: string;
}

export interface Agent {
  default: boolean;
  name: string;
  status: "running" | "stopped" | "error";
  uptimeMs?: number;
  restartCount: number;
  lastError?: string;
  lastErrorAt?: string;
  processes: number;
  capabilities?: Record<string, unknown>;
}

export interface AgentCheck {
  name: string;
  ok: boolean;
  startMs?: number;
  initialize?: Record<string, unknown>;
  end?: string;
  error?: string;
  terminationInfo?: TerminationInfo;
}

export interface Standing {
  sessions: number;
  running: number;
  waiting: number;
  agentProcesses: number;
  viewers: number;
  memoryBytes: number;
  openFiles: number;
  queueBytes: number;
}

export interface StatsStep extends Standing {
  at: string;
  turns: number;
  turnsEnded: number;
  runs: number;
  events: number;
  eventBytes: number;
  requests: number;
}

export interface Stats {
  stepMs: number;
  now: Standing;
  steps: StatsStep[];
}

export interface Limits {
  agents?: string[];
  roots?: string[];
  permissionModes?: PermissionMode[];
  mcp?: "http" | "none";
}

export interface KnownToken {
  name: string;
  scope: Scope;
  sees: "own" | "all";
  limits?: Limits;
  expires?: string;
  expired: boolean;
  lastUsed?: string;
}

export interface Whoami {
  name?: string;
  scope: Scope;
  sees: "own" | "all";
  limits?: Limits;
}

export interface Health {
  status: "ok" | "degraded";
  reason?: string;
  version: string;
  uptimeMs: number;
}
