/** What a session is set to: the agent's own modes, options and commands, as it names them. */

import { type Json, defined, get, list, number, object, text } from "./raw";

/** A value that can be chosen. */
export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  /** The heading under which the agent puts it. */
  readonly group?: string;
}

/** An option of the agent. */
export interface ConfigOption {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly category?: string;
  /** The chosen value, or whether it is on. */
  readonly value: string | boolean;
  /** None for an option that is on or off. */
  readonly choices: readonly Choice[];
}

export interface Command {
  readonly name: string;
  readonly description: string;
  readonly hint?: string;
}

/** How full the context is, and what the session has cost. */
export interface ContextUsage {
  readonly used: number;
  readonly size: number;
  readonly cost?: { readonly amount: number; readonly currency: string };
}

/** The latest of each that was told. */
export interface Settings {
  readonly title?: string;
  readonly mode?: string;
  readonly modes: readonly Choice[];
  readonly options: readonly ConfigOption[];
  readonly commands: readonly Command[];
  readonly usage?: ContextUsage;
}

export const UNSET: Settings = { modes: [], options: [], commands: [] };

/** Takes over what an agent said of its state, in an answer or in a `state_changed` event. */
export function withState(settings: Settings, state: unknown): Settings {
  const modes = get(state, "modes");
  const mode = text(get(state, "currentModeId")) ?? text(get(modes, "currentModeId"));
  const options = get(state, "configOptions");
  return {
    ...settings,
    ...(mode === undefined ? {} : { mode }),
    ...(modes === undefined ? {} : { modes: list(get(modes, "availableModes")).flatMap((each) => choice(each, "id")) }),
    ...(options === undefined ? {} : { options: list(options).flatMap(option) }),
  };
}

/** Takes over an update of the agent, if it is about settings. */
export function withUpdate(settings: Settings, kind: string, update: Json): Settings {
  switch (kind) {
    case "session_info_update": {
      const title = text(update["title"]);
      return title === undefined ? settings : { ...settings, title };
    }
    case "current_mode_update":
    case "config_option_update":
      return withState(settings, update);
    case "available_commands_update":
      return { ...settings, commands: list(update["availableCommands"]).flatMap(command) };
    case "usage_update":
      return { ...settings, ...defined<{ usage?: ContextUsage }>({ usage: usage(update) }) };
    default:
      return settings;
  }
}

/** What a change is called: the agent's own names of what is set now. */
export function changes(before: Settings, after: Settings): readonly string[] {
  const told: string[] = [];
  if (after.mode !== before.mode && after.mode !== undefined) told.push(`Mode: ${nameOf(after.modes, after.mode)}`);
  for (const now of after.options) {
    const old = before.options.find((each) => each.id === now.id);
    if (old !== undefined && old.value !== now.value) told.push(`${now.name}: ${valueName(now)}`);
  }
  return told;
}

/** The name of the value of an option. */
export function valueName(option: ConfigOption): string {
  if (typeof option.value === "boolean") return option.value ? "on" : "off";
  return nameOf(option.choices, option.value);
}

/** The name of what was chosen, or its id where it has none. */
export function nameOf(choices: readonly Choice[], id: string): string {
  return choices.find((each) => each.id === id)?.name ?? id;
}

/** Choices under the headings that the agent gives them, in its order; the heading of those without one is empty. */
export function grouped(choices: readonly Choice[]): readonly { readonly group: string; readonly members: readonly Choice[] }[] {
  const names = new Set(choices.map((each) => each.group ?? ""));
  return [...names].map((group) => ({ group, members: choices.filter((each) => (each.group ?? "") === group) }));
}

function choice(value: unknown, idMember: string, group?: string): readonly Choice[] {
  const id = text(get(value, idMember));
  if (id === undefined) return [];
  const description = text(get(value, "description"));
  return [defined<Choice>({ id, name: text(get(value, "name")) ?? id, description, group })];
}

function option(value: unknown): readonly ConfigOption[] {
  const id = text(get(value, "id"));
  const current = get(value, "currentValue");
  if (id === undefined || (typeof current !== "string" && typeof current !== "boolean")) return [];
  return [
    defined<ConfigOption>({
      id,
      name: text(get(value, "name")) ?? id,
      description: text(get(value, "description")),
      category: text(get(value, "category")),
      value: current,
      choices: list(get(value, "options")).flatMap(choices),
    }),
  ];
}

/** A choice, or a group of them. */
function choices(value: unknown): readonly Choice[] {
  const inside = list(get(value, "options"));
  if (inside.length === 0) return choice(value, "value");
  const group = text(get(value, "name"));
  return inside.flatMap((each) => choice(each, "value", group));
}

function command(value: unknown): readonly Command[] {
  const name = text(get(value, "name"));
  if (name === undefined) return [];
  const description = text(get(value, "description")) ?? "";
  return [defined<Command>({ name, description, hint: text(get(value, "input", "hint")) })];
}

function usage(update: Json): ContextUsage | undefined {
  const used = number(update["used"]);
  const size = number(update["size"]);
  if (used === undefined || size === undefined) return undefined;
  const cost = object(update["cost"]);
  const amount = number(cost["amount"]);
  const currency = text(cost["currency"]);
  return amount === undefined || currency === undefined ? { used, size } : { used, size, cost: { amount, currency } };
}
