import type { StatsStep } from "acpd-client";

/** One value over time: when (milliseconds), and how much. */
export interface Point {
  at: number;
  value: number;
}

/** Over how long charts go, in milliseconds. */
export const SPAN_MS = 3_600_000;

/** The value of each step, as `read` has it; steps that do not tell it are left out. */
export function series(steps: readonly StatsStep[], read: (step: StatsStep) => number | undefined): Point[] {
  return steps.flatMap((step) => {
    const value = read(step);
    return value === undefined ? [] : [{ at: Date.parse(step.at), value }];
  });
}

/** The end of a scale from 0: the next of 1, 2, 5, 10, 20, ... at or above the largest value, or of such powers of 2. */
export function scaleEnd(largest: number, binary = false): number {
  if (largest <= 1) return 1;
  if (binary) return 2 ** Math.ceil(Math.log2(largest));
  const power = 10 ** Math.floor(Math.log10(largest));
  return ([1, 2, 5, 10].find((step) => step * power >= largest) ?? 10) * power;
}

/** The largest value of some lines; 0 without any. */
export function largest(lines: readonly (readonly Point[])[]): number {
  return lines.reduce((most, line) => line.reduce((max, point) => Math.max(max, point.value), most), 0);
}

/** A place in a chart, in its own units. */
export interface Frame {
  width: number;
  height: number;
  /** The end of the hour that is shown, in milliseconds. */
  end: number;
  /** The value at its upper edge. */
  top: number;
}

/** The path of a line through the points, for SVG; empty below two points. */
export function linePath(points: readonly Point[], frame: Frame): string {
  if (points.length < 2) return "";
  return points.map((point, index) => `${index === 0 ? "M" : "L"}${place(point, frame)}`).join("");
}

/** The path around what lies below that line. */
export function areaPath(points: readonly Point[], frame: Frame): string {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < 2) return "";
  return `${linePath(points, frame)}L${x(last.at, frame)} ${frame.height}L${x(first.at, frame)} ${frame.height}Z`;
}

/** Where a moment is, from the left. */
export function x(at: number, frame: Frame): string {
  return ((1 - (frame.end - at) / SPAN_MS) * frame.width).toFixed(1);
}

/** The point nearest to a place, given as a share of the width from the left. */
export function nearest(points: readonly Point[], share: number, end: number): Point | undefined {
  const at = end - (1 - share) * SPAN_MS;
  return points.reduce<Point | undefined>((best, point) => (best === undefined || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best), undefined);
}

function place(point: Point, frame: Frame): string {
  return `${x(point.at, frame)} ${(frame.height - (point.value / frame.top) * frame.height).toFixed(1)}`;
}

/** What a line tells, for those who do not see it. `words` says a value with its unit. */
export function inWords(points: readonly Point[], words: (value: number) => string, when: (at: number) => string): string {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return "nothing is told yet";
  const most = points.reduce((a, b) => (b.value > a.value ? b : a));
  const least = points.reduce((a, b) => (b.value < a.value ? b : a));
  if (most.value === least.value) return `${words(last.value)} since ${when(first.at)}`;
  return `now ${words(last.value)}, at most ${words(most.value)} at ${when(most.at)}, at least ${words(least.value)} at ${when(least.at)}`;
}
