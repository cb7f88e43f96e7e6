/**
 * acpd's events folded into what a person reads. One event costs what it changes, not what came before; the same events
 * give the same items, however they are cut into batches. An event of a later version, or one that makes no sense, is a note.
 */

import type { TerminationInfo } from "acpd-client";
import { duration } from "../../ui/format";
import { content } from "./content";
import { Draft, type When } from "./draft";
import { isOpen, type AnsweredBy, type EndItem, type Item, type NoteItem, type QuestionItem, type StallItem, type TerminalItem, type TurnEndItem, type Voice } from "./items";
import { failure } from "./failure";
import { answered, asked } from "./questions";
import { type Json, defined, get, list, number, object, text } from "./raw";
import { changes, type Settings, UNSET, withState, withUpdate } from "./settings";
import { Speech } from "./speech";
import { Terminals } from "./terminals";
import { Tools } from "./tools";

/** What all events have; the rest depends on `kind`. */
export interface LoggedEvent {
  readonly seq: number;
  readonly kind: string;
  readonly at: string;
}

/** A turn that has begun. */
export interface Turn {
  readonly turn: number;
  readonly at: number;
  /** The index of its first item. */
  readonly index: number;
  /** The client's key for the prompt. */
  readonly idempotencyKey?: string;
}

/** A life of an agent process. */
export interface Run {
  readonly run: number;
  readonly at: number;
  readonly pid?: number;
  /** What was under way when it ended. */
  readonly pending: readonly string[];
  /** The termination record; none while it lives. */
  readonly info?: TerminationInfo;
}

/** What an event changed. */
export interface Change {
  /** Indices of items that are new or different. */
  readonly items: ReadonlySet<number>;
}

const SPOKEN: Readonly<Record<string, Voice>> = {
  user_message_chunk: "user",
  agent_message_chunk: "agent",
  agent_thought_chunk: "thought",
};

/** Requests of an agent about terminals, which the terminals themselves show. */
const OF_TERMINALS = /^terminal\//;

export class Transcript {
  private readonly draft = new Draft();
  private readonly speech = new Speech(this.draft);
  private readonly tools = new Tools(this.draft);
  private readonly terminals = new Terminals(this.draft);
  private readonly questions = new Map<number, number>();
  private readonly open = new Set<number>();
  private plan: { readonly turn: number; readonly index: number } | undefined;
  private stall: number | undefined;
  private running: Turn | undefined;

  settings: Settings = UNSET;
  readonly runs: Run[] = [];
  readonly turns: Turn[] = [];
  /** The last event that was applied. */
  seq = 0;
  agent = "";
  cwd = "";
  forkedFrom: string | undefined;

  get items(): readonly Item[] {
    return this.draft.items;
  }

  /** The turn that runs. */
  get activeTurn(): Turn | undefined {
    return this.running;
  }

  /** Whether the last run is over. */
  get isEnded(): boolean {
    return this.runs.at(-1)?.info !== undefined;
  }

  /** The questions that wait for an answer which any client may give, the oldest first. */
  openQuestions(): readonly QuestionItem[] {
    return [...this.open].flatMap((index) => {
      const item = this.draft.items[index];
      return item?.type === "question" ? [item] : [];
    });
  }

  /** A command by the id of its terminal. */
  terminal(terminalId: string): TerminalItem | undefined {
    return this.terminals.find(terminalId);
  }

  /** Applies the next event. One that was applied before changes nothing. */
  apply(event: LoggedEvent): Change {
    if (event.seq <= this.seq) return { items: new Set() };
    this.seq = event.seq;
    const at = Date.parse(event.at);
    const when = { seq: event.seq, at: Number.isNaN(at) ? 0 : at, turn: this.turns.at(-1)?.turn ?? 0 };
    this.read(when, event.kind, object(event));
    return { items: this.draft.taken() };
  }

  private read(when: When, kind: string, event: Json): void {
    switch (kind) {
      case "created": return this.created(event);
      case "run_started": return this.runStarted(when, event);
      case "prompt": return this.prompt(when, event);
      case "update": return this.update(when, object(get(event, "message", "params", "update")));
      case "turn_ended": return this.turnEnded(when, event);
      case "ended": return this.ended(when, event);
      case "permission_requested":
      case "elicitation_requested":
      case "file_forwarded": return this.question(when, kind, event);
      case "permission_resolved":
      case "elicitation_resolved":
      case "file_resolved": return this.answer(when, event);
      case "terminal": return this.terminalSaid(when, event);
      case "agent_request": return this.agentRequest(when, event);
      case "state_changed": return this.set(when, withState(this.settings, event), text(event["by"]));
      case "stalled": return this.stalled(when, event);
      case "reattached": return this.note(when, "info", `acpd was gone for ${duration(number(event["gapMs"]) ?? 0)}; the agent went on`);
      case "cancel_requested": return this.note(when, "info", `Cancel requested${by(event)}`);
      case "transcript": return this.note(when, "info", told(event));
      case "notification": return this.note(when, "quiet", `Notification ${text(get(event, "message", "method")) ?? ""}`);
      case "echo":
      case "elicitation_completed": return;
      default: return this.note(when, "quiet", `Event ${kind}, which this version does not know`);
    }
  }

  private created(event: Json): void {
    this.agent = text(event["agent"]) ?? "";
    this.cwd = text(event["cwd"]) ?? "";
    this.forkedFrom = text(event["forkedFrom"]);
  }

  private runStarted(when: When, event: Json): void {
    const run = this.runs.length + 1;
    const pid = number(event["pid"]);
    this.runs.push(defined<Run>({ run, at: when.at, pid, pending: [], info: undefined }));
    this.settings = withState(this.settings, event["state"]);
    const agent = [get(event, "agentInfo", "title") ?? get(event, "agentInfo", "name"), get(event, "agentInfo", "version")];
    this.show({
      ...defined<Extract<Item, { type: "run" }>>({
        ...when, key: this.draft.key(when), type: "run", run, pid,
        agent: agent.flatMap((each) => text(each) ?? []).join(" ") || this.agent,
        by: text(event["by"]),
        method: text(event["method"]),
        transcript: event["transcript"] === undefined ? undefined : object(event["transcript"]),
      }),
    });
  }

  private prompt(when: When, event: Json): void {
    const turn = number(event["turn"]) ?? when.turn + 1;
    const index = this.draft.items.length;
    this.running = defined<Turn>({ turn, at: when.at, index, idempotencyKey: text(event["idempotencyKey"]) });
    this.turns.push(this.running);
    const inTurn = { ...when, turn };
    this.speech.end();
    for (const block of paragraphs(list(event["prompt"]))) this.spoken(inTurn, "user", block, `prompt ${turn}`, text(event["by"]));
    this.speech.end();
  }

  /** A content block of a message, whole or in pieces. */
  private spoken(when: When, voice: Voice, block: unknown, messageId?: string, client?: string): void {
    const found = content(block);
    if (found.type === "text") return this.speech.say(when, voice, found.text, messageId, client);
    const message = this.speech.message(voice, messageId, client);
    this.show({ ...when, key: this.draft.key(when), type: "content", voice, content: found, message });
  }

  private update(when: When, update: Json): void {
    const kind = text(update["sessionUpdate"]) ?? "";
    const voice = SPOKEN[kind];
    if (voice !== undefined) return this.spoken(when, voice, update["content"], text(update["messageId"]));
    switch (kind) {
      case "tool_call":
      case "tool_call_update": return this.tool(when, update, kind === "tool_call");
      case "plan": return this.planned(when, update);
      case "notice": return this.note(when, level(update["severity"]), text(update["title"]) ?? "", text(update["description"]));
      case "compaction_update": return this.note(when, "info", `Context compaction: ${text(update["status"]) ?? ""}`, text(update["error"]));
      case "compaction_summary_chunk": return;
      case "session_info_update":
      case "usage_update":
      case "available_commands_update":
      case "current_mode_update":
      case "config_option_update": return this.set(when, withUpdate(this.settings, kind, update));
      default: return this.note(when, "quiet", `Update ${kind}, which this version does not know`);
    }
  }

  private tool(when: When, update: Json, isNew: boolean): void {
    const item = this.tools.tell(when, update, isNew);
    if (item.seq === when.seq) this.speech.end();
    for (const each of item.content) if (each.type === "terminal") this.terminals.claim(each.terminalId, item.callId);
  }

  private planned(when: When, update: Json): void {
    const entries = list(update["entries"]).map((entry) => ({
      content: text(get(entry, "content")) ?? "",
      status: text(get(entry, "status")) ?? "pending",
      priority: text(get(entry, "priority")) ?? "medium",
    }));
    const known = this.plan?.turn === when.turn ? this.draft.items[this.plan.index] : undefined;
    if (this.plan !== undefined && known?.type === "plan") return this.draft.put(this.plan.index, { ...known, entries });
    this.plan = { turn: when.turn, index: this.show({ ...when, key: this.draft.key(when), type: "plan", entries }) };
  }

  private turnEnded(when: When, event: Json): void {
    const error = event["error"];
    this.tools.leave(when.at);
    this.goesOn(when);
    this.show(
      defined<TurnEndItem>({
        ...when, key: this.draft.key(when), type: "turn_end",
        stopReason: text(event["stopReason"]),
        error: error === undefined ? undefined : failure(error),
        usage: get(event, "result", "usage") === undefined ? undefined : object(get(event, "result", "usage")),
        durationMs: when.at - (this.running?.at ?? when.at),
        ignoredCancel: event["agentIgnoredCancel"] === true,
      }),
    );
    this.running = undefined;
  }

  private ended(when: When, event: Json): void {
    // acpd wrote it itself.
    const info = object(event["terminationInfo"]) as unknown as TerminationInfo;
    const pending = [...(info.turnActive ? [`turn ${when.turn}`] : []), ...this.tools.pending().map((title) => `tool call: ${title}`), ...this.unanswered(when)];
    this.tools.leave(when.at);
    this.goesOn(when);
    const last = this.runs.pop() ?? { run: 1, at: when.at, pending: [] };
    this.runs.push({ ...last, info, pending });
    this.show({ ...when, key: this.draft.key(when), type: "end", run: last.run, info } satisfies EndItem);
    this.running = undefined;
  }

  /** Questions of the turn that were over because of the end, or are open still. */
  private unanswered(when: When): readonly string[] {
    return [...this.questions.values()].flatMap((index) => {
      const item = this.draft.items[index];
      if (item?.type !== "question" || item.turn !== when.turn) return [];
      return isOpen(item) || isEnd(item.answer?.by) ? [`question: ${item.title}`] : [];
    });
  }

  private question(when: When, kind: string, event: Json): void {
    const params = object(get(event, "message", "params"));
    const request = number(event["request"]) ?? when.seq;
    const unasked = event["unasked"] === true;
    const told = asked(kind, params);
    const index = this.show({ ...when, key: this.draft.key(when), type: "question", request, unasked, ...told });
    this.questions.set(request, index);
    // An address to open, and a file, are asked of one client alone.
    if (!unasked && (told.form === "permission" || told.form === "fields")) this.open.add(index);
    const callId = text(get(params, "toolCall", "toolCallId"));
    if (callId !== undefined) this.tools.waits(callId, request);
  }

  private answer(when: When, event: Json): void {
    const index = this.questions.get(number(event["request"]) ?? 0);
    const item = index === undefined ? undefined : this.draft.items[index];
    if (index === undefined || item?.type !== "question") return;
    this.open.delete(index);
    this.draft.put(index, { ...item, answer: answered(item, event, when.at) });
  }

  private terminalSaid(when: When, event: Json): void {
    const item = this.terminals.tell(when, event);
    if (item?.callId !== undefined) this.tools.touch(item.callId, item.terminalId);
  }

  private agentRequest(when: When, event: Json): void {
    const method = text(get(event, "message", "method")) ?? "a request";
    const error = text(get(event, "answer", "error", "message"));
    const terminalId = text(get(event, "answer", "terminalId"));
    const params = get(event, "message", "params");
    if (method === "terminal/create" && terminalId !== undefined) {
      this.speech.end();
      return this.terminals.start(when, terminalId, params);
    }
    if (error === undefined && OF_TERMINALS.test(method)) return;
    const path = text(get(params, "path"));
    this.note(when, error === undefined ? "quiet" : "error", path === undefined ? method : `${method} ${path}`, error);
  }

  private set(when: When, settings: Settings, client?: string): void {
    const told = changes(this.settings, settings);
    this.settings = settings;
    for (const change of told) this.note(when, "quiet", client === undefined ? change : `${change}, by ${client}`);
  }

  private stalled(when: When, event: Json): void {
    if (event["goesOn"] === true) return this.goesOn(when);
    const silentMs = number(event["silentMs"]) ?? 0;
    this.stall = this.show({ ...when, key: this.draft.key(when), type: "stall", silentMs } satisfies StallItem);
  }

  private goesOn(when: When): void {
    const item = this.stall === undefined ? undefined : this.draft.items[this.stall];
    if (this.stall !== undefined && item?.type === "stall") this.draft.put(this.stall, { ...item, goesOnAt: when.at });
    this.stall = undefined;
  }

  private note(when: When, level: NoteItem["level"], words: string, detail?: string): void {
    const last = this.draft.items.at(-1);
    const isSame = last?.type === "note" && last.text === words && last.detail === detail && last.turn === when.turn;
    if (isSame) return this.draft.put(this.draft.items.length - 1, { ...last, count: last.count + 1 });
    this.show(defined<NoteItem>({ ...when, key: this.draft.key(when), type: "note", level, text: words, detail, count: 1 }));
  }

  /** Adds what stands between messages: the one that is being said has ended. */
  private show(item: Item): number {
    this.speech.end();
    return this.draft.add(item);
  }
}

/** The blocks of a prompt, with texts that follow each other as one. */
function paragraphs(blocks: readonly unknown[]): readonly unknown[] {
  const all: unknown[] = [];
  for (const block of blocks) {
    const [last, next] = [content(all.at(-1)), content(block)];
    if (last.type !== "text" || next.type !== "text") all.push(block);
    else all.splice(-1, 1, { type: "text", text: `${last.text.trimEnd()}\n\n${next.text}` });
  }
  return all;
}

function isEnd(answer: AnsweredBy | undefined): boolean {
  return answer?.kind === "cause" && (answer.name === "end" || answer.name === "agent");
}

function by(event: Json): string {
  const client = text(event["by"]);
  return client === undefined ? "" : ` by ${client}`;
}

function told(event: Json): string {
  const messages = number(event["messages"]) ?? 0;
  const left = number(event["omittedMessages"]) ?? 0;
  return `The agent was given a transcript: ${messages} messages${left > 0 ? `, ${left} left out` : ""}`;
}

function level(severity: unknown): NoteItem["level"] {
  return severity === "error" || severity === "warning" ? severity : "info";
}
