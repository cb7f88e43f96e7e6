/** Who answered what, in words. */

import type { Answer, AnsweredBy, QuestionItem } from "../fold/items";
import type { Tone } from "../../ui/tone";

const CAUSES: Readonly<Record<string, string>> = {
  cancel: "the turn was cancelled",
  turn_ended: "the turn ended",
  end: "the session ended",
  agent: "the agent took it back",
  timeout: "nothing was answered in time",
  declined: "no client could show it",
  nobody: "there was no client to ask",
};

/** What was answered: `Allow once`, `Declined`, ... */
export function outcome(answer: Answer): string {
  if (answer.option !== undefined) return answer.option.name;
  return OUTCOMES[answer.outcome] ?? answer.outcome;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  accept: "Filled in",
  decline: "Declined",
  cancel: "Cancelled",
  cancelled: "Not answered",
};

/** Who or what answered: `by you`, `by REST`, `by the mode acceptEdits`, `because the turn was cancelled`. */
export function author(by: AnsweredBy, isOwn: (client: string) => boolean): string {
  switch (by.kind) {
    case "client":
      return isOwn(by.name) ? "by you" : `by ${by.name}`;
    case "mode":
      return `by the permission mode ${by.name}`;
    case "cause":
      return `because ${CAUSES[by.name] ?? by.name.replaceAll("_", " ")}`;
    case "unknown":
      return "";
  }
}

/** What a question waits for: some are put to one client alone. */
export function pending(question: QuestionItem): string {
  return question.form === "permission" || question.form === "fields" ? "waits for an answer" : "waits for the client that it is put to";
}

/** The tone of a question: waiting, refused, or over. */
export function tone(question: QuestionItem): Tone {
  const { answer } = question;
  if (answer === undefined) return "wait";
  if (answer.option?.kind.startsWith("reject") === true) return "bad";
  return answer.option?.kind.startsWith("allow") === true || answer.outcome === "accept" ? "good" : "still";
}
