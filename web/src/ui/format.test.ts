import { describe, expect, it } from "vitest";
import { age, bytes, cost, count, counted, duration, since } from "./format";

// inspector: Sessions view (age, turn duration, tokens and cost)
describe("format", () => {
  it.each([
    [-500, "now"],
    [4999, "now"],
    [12_999, "12 s"],
    [60_000, "1 min"],
    [3_599_999, "59 min"],
    [7_200_000, "2 h"],
    [200_000_000, "2 d"],
  ])("age of %i", (ms, text) => expect(age(ms)).toBe(text));

  it.each([
    [0, "0 ms"],
    [0.2538, "0.25 ms"],
    [4, "4 ms"],
    [85.4, "85 ms"],
    [1000, "1 s"],
    [1440, "1.4 s"],
    [59_400, "59 s"],
    [125_000, "2 min 5 s"],
    [120_000, "2 min"],
    [10_920_000, "3 h 2 min"],
    [187_200_000, "2 d 4 h"],
  ])("duration of %d", (ms, text) => expect(duration(ms)).toBe(text));

  it.each([
    [512, "512 B"],
    [1536, "1.5 KiB"],
    [39_145_472, "37 MiB"],
    [2 ** 40 * 2048, "2048 TiB"],
  ])("%i bytes", (size, text) => expect(bytes(size)).toBe(text));

  it.each([
    [0, "0"],
    [0.25, "0.3"],
    [950, "950"],
    [1234, "1.2k"],
    [9960, "10k"],
    [34_100, "34k"],
    [999_499, "999k"],
    [999_501, "1M"],
    [1_200_000, "1.2M"],
  ])("a count of %d", (value, text) => expect(count(value)).toBe(text));

  it.each([
    [{ USD: 0.12 }, "$0.12"],
    [{ USD: 0.0042 }, "$0.0042"],
    [{ EUR: 3 }, "€3.00"],
    [{ credits: 3.5 }, "3.50 credits"],
    [{ USD: 1, credits: 2 }, "$1.00 + 2 credits"],
    [{}, ""],
  ])("a cost of %o", (costs, text) => expect(cost(costs)).toBe(text));

  it.each([
    [0, "now"],
    [60_000, "1 min ago"],
  ])("%i since then", (ms, text) => expect(since(ms)).toBe(text));

  it("counts with a noun", () => {
    expect([counted(1, "session"), counted(1200, "session"), counted(2, "entry", "entries")]).toEqual(["1 session", "1,200 sessions", "2 entries"]);
  });
});
