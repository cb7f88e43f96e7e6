/** What an agent asks, and what it was answered, read from the events. */

import type { Answer, AnsweredBy, Option, QuestionItem } from "./items";
import { type Json, defined, get, list, object, text } from "./raw";

/** The members of a question that its request gives. */
export function asked(kind: string, params: Json): Pick<QuestionItem, "form" | "title" | "options" | "params"> {
  switch (kind) {
    case "permission_requested":
      return { form: "permission", title: permissionTitle(params), options: list(params["options"]).flatMap(option), params };
    case "elicitation_requested":
      return { form: formOf(params), title: text(params["message"]) ?? "The agent asks for something", options: [], params };
    default:
      return { form: "file", title: `An editor is asked for ${text(params["path"]) ?? "a file"}`, options: [], params };
  }
}

function permissionTitle(params: Json): string {
  return text(get(params, "toolCall", "title")) ?? text(get(params, "toolCall", "toolCallId")) ?? "The agent asks for permission";
}

function formOf(params: Json): QuestionItem["form"] {
  const mode = params["mode"];
  return mode === "form" ? "fields" : mode === "url" ? "url" : "other";
}

function option(value: unknown): readonly Option[] {
  const optionId = text(get(value, "optionId"));
  if (optionId === undefined) return [];
  return [{ optionId, name: text(get(value, "name")) ?? optionId, kind: text(get(value, "kind")) ?? "" }];
}

/** Reads an answer from a `*_resolved` event. */
export function answered(question: QuestionItem, event: Json, at: number): Answer {
  const result = event["result"];
  const outcome = text(get(result, "outcome", "outcome")) ?? text(get(result, "action")) ?? "answered";
  const chosen = text(get(result, "outcome", "optionId"));
  const content = get(result, "content");
  return defined<Answer>({
    at,
    by: answeredBy(event["by"]),
    outcome,
    option: chosen === undefined ? undefined : (question.options.find((each) => each.optionId === chosen) ?? unnamed(chosen)),
    content: content === undefined || content === null ? undefined : object(content),
  });
}

function unnamed(optionId: string): Option {
  return { optionId, name: optionId, kind: "" };
}

/** Reads what answered. */
export function answeredBy(by: unknown): AnsweredBy {
  for (const kind of ["client", "mode", "cause"] as const) {
    const name = text(get(by, kind));
    if (name !== undefined) return { kind, name };
  }
  return { kind: "unknown" };
}
