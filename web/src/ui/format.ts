const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Made once: to make one takes longer than to draw a row.
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** How long ago, from milliseconds: `now`, `12 s`, `5 min`, `3 h`, `2 d`; what lies ahead is `now`. */
export function age(ms: number): string {
  if (ms < 5 * SECOND) return "now";
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** The same in a sentence: `now`, `12 s ago`. */
export function since(ms: number): string {
  const text = age(ms);
  return text === "now" ? text : `${text} ago`;
}

/** How long something took, from milliseconds: `0.25 ms`, `85 ms`, `1.4 s`, `2 min 5 s`, `3 h 2 min`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms)} ms`;
  if (ms < MINUTE) return `${trimmed(ms / SECOND, ms < 10 * SECOND ? 1 : 0)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "min", SECOND, "s");
  if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "min");
  return pair(ms, DAY, "d", HOUR, "h");
}

/** A size from bytes: `512 B`, `1.5 KiB`, `37 MiB`. */
export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = size;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${trimmed(value, value < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** A count in few characters: `950`, `1.2k`, `34k`, `1.2M`. */
export function count(value: number): string {
  if (value < 1000) return trimmed(value, value < 10 && !Number.isInteger(value) ? 1 : 0);
  const [scaled, unit] = value < 999_500 ? [value / 1000, "k"] : value < 999_500_000 ? [value / 1e6, "M"] : [value / 1e9, "G"];
  return `${trimmed(scaled, scaled < 9.95 ? 1 : 0)}${unit}`;
}

/** A number with its noun: `1 session`, `12 sessions`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

/** What something cost, by currency or unit: `$0.12`, `3.5 credits`. */
export function cost(costs: Record<string, number>): string {
  return Object.entries(costs)
    .map(([unit, value]) => (/^[A-Z]{3}$/.test(unit) ? money(unit, value) : `${trimmed(value, 2)} ${unit}`))
    .join(" + ");
}

/** The date and time where the reader is: `23 Nov 2026, 09:21:14`. */
export function moment(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? iso : MOMENT.format(at);
}

/** The time of day, from milliseconds: `09:21`. */
export function clock(at: number): string {
  return TIME.format(at);
}

function money(currency: string, value: number): string {
  const digits = value !== 0 && Math.abs(value) < 0.01 ? 4 : 2;
  return value.toLocaleString("en", { style: "currency", currency, minimumFractionDigits: 2, maximumFractionDigits: digits });
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest === 0 ? "" : ` ${rest} ${smallName}`}`;
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0+$/, "");
}
