import { describe, expect, it } from "vitest";
import { areaPath, type Frame, inWords, largest, linePath, nearest, type Point, scaleEnd, SPAN_MS } from "./series";

const end = 10 * SPAN_MS;
const frame: Frame = { width: 100, height: 50, end, top: 10 };
const points: Point[] = [
  { at: end - SPAN_MS, value: 0 },
  { at: end - SPAN_MS / 2, value: 10 },
  { at: end, value: 5 },
];

// inspector: Daemon view (the last hour as small charts, with text for screen readers)
describe("charts", () => {
  it.each([
    [0, false, 1],
    [0.4, false, 1],
    [3, false, 5],
    [5, false, 5],
    [51, false, 100],
    [1200, false, 2000],
    [1200, true, 2048],
  ])("the scale to %d (binary: %s) ends at %d", (value, binary, expected) => expect(scaleEnd(value, binary)).toBe(expected));

  it("draws a line over the hour, from the bottom", () => {
    expect(linePath(points, frame)).toBe("M0.0 50.0L50.0 0.0L100.0 25.0");
    expect(areaPath(points, frame)).toBe("M0.0 50.0L50.0 0.0L100.0 25.0L100.0 50L0.0 50Z");
  });

  it("draws nothing of less than two points", () => {
    expect(linePath(points.slice(1, 2), frame) + areaPath([], frame)).toBe("");
  });

  it("finds the largest of several lines", () => {
    expect([largest([points, [{ at: end, value: 12 }]]), largest([[]])]).toEqual([12, 0]);
  });

  it.each([
    [0, 0],
    [0.4, 10],
    [0.9, 5],
  ])("at %d of the width it is %d", (share, value) => expect(nearest(points, share, end)?.value).toBe(value));

  it("says what it shows", () => {
    const say = (line: readonly Point[]) => inWords(line, (value) => `${value} B`, (at) => `T${(end - at) / SPAN_MS}`);
    expect(say(points)).toBe("now 5 B, at most 10 B at T0.5, at least 0 B at T1");
    expect(say(points.slice(2))).toBe("5 B since T0");
    expect(say([])).toBe("nothing is told yet");
  });
});
