/**
 * An ACP agent for the tests: it does what the prompt says, a JSON array of steps.
 * `{"update": {...}}` sends that update, `{"ask": {...}}` that permission request, `{"elicit": {...}}` that form,
 * `{"chunks": N, "every": MS, "text": "..."}` streams, `{"wait": true}` waits for the cancellation, `{"fail": {...}}` answers with that
 * error, the first time it is asked for. `#` in a text is a number.
 */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** The steps of prompts that say what people would, from a file. */
const SCENES = process.argv[2] === undefined ? {} : JSON.parse(readFileSync(process.argv[2], "utf8"));

const waiting = new Map();
const turns = new Map();
let asked = 0;
let sessions = 0;

const MODES = { currentModeId: "build", availableModes: [{ id: "build", name: "Build" }, { id: "plan", name: "Plan first" }] };

const failed = new Set();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const update = (sessionId, body) => send({ method: "session/update", params: { sessionId, update: body } });

function request(method, params) {
  asked += 1;
  const id = `ask-${asked}`;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

const ANSWERS = {
  initialize: () => ({
    protocolVersion: 1,
    agentInfo: { name: "steps", title: "Steps", version: "1.0.0" },
    agentCapabilities: { promptCapabilities: {}, sessionCapabilities: { close: {} } },
  }),
  "session/new": () => ({ sessionId: `steps-${process.pid}-${(sessions += 1)}`, modes: MODES }),
  "session/close": () => ({}),
  "session/prompt": async ({ sessionId, prompt }) => {
    const turn = { isCancelled: false, stop: () => {} };
    turns.set(sessionId, turn);
    for (const step of stepsOf(prompt[0].text)) {
      if (turn.isCancelled) break;
      await perform(sessionId, turn, step);
    }
    return { stopReason: turn.isCancelled ? "cancelled" : "end_turn" };
  },
};

const stepsOf = (text) => SCENES[text] ?? JSON.parse(text);

async function perform(sessionId, turn, step) {
  if (step.fail && !failed.has(step.fail.message)) {
    failed.add(step.fail.message);
    throw step.fail;
  }
  if (step.update) update(sessionId, step.update);
  if (step.ask) await request("session/request_permission", { sessionId, ...step.ask });
  if (step.elicit) await request("elicitation/create", { sessionId, ...step.elicit });
  if (step.wait) await new Promise((resolve) => (turn.stop = resolve));
  for (let at = 0; at < (step.chunks ?? 0) && !turn.isCancelled; at += 1) {
    const text = step.text.replaceAll("#", String(at));
    update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    if (step.every) await new Promise((resolve) => setTimeout(resolve, step.every));
  }
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) return void waiting.get(id)?.(result);
  if (method === "session/cancel") {
    const turn = turns.get(params.sessionId);
    if (turn) turn.isCancelled = true;
    turn?.stop();
  }
  if (id === undefined) return;
  const answer = ANSWERS[method];
  if (answer === undefined) return send({ id, error: { code: -32601, message: "no such method" } });
  try {
    send({ id, result: await answer(params) });
  } catch (error) {
    send({ id, error: error instanceof Error ? { code: -32602, message: String(error) } : error });
  }
}).on("close", () => process.exit(0));
