import { expect, it } from "vitest";
import { Slots } from "./slots";

// inspector: Sessions view (10,000 sessions scroll; what stays is not drawn again)
it.each<[string, string[], number[]]>([
  ["what stays keeps its row", ["b", "c"], [1, 2]],
  ["what comes takes the row of what has gone", ["b", "c", "d"], [1, 2, 0]],
  ["also when all is new", ["x", "y", "z"], [0, 1, 2]],
  ["another order moves rows", ["c", "b", "a"], [2, 1, 0]],
  ["more sessions need more rows", ["a", "b", "c", "d", "e"], [0, 1, 2, 3, 4]],
])("%s", (_, ids, slots) => {
  const rows = new Slots();
  expect(rows.take(["a", "b", "c"])).toEqual([0, 1, 2]);
  expect(rows.take(ids)).toEqual(slots);
});

// Two sessions in one row would be one key twice.
it("gives no row twice, whatever comes and goes", () => {
  const rows = new Slots();
  for (const [from, to] of [[0, 5], [3, 4], [2, 9], [40, 41], [38, 60], [41, 43], [41, 60]] as const) {
    const slots = rows.take(Array.from({ length: to - from }, (_, index) => String(from + index)));
    expect(new Set(slots).size).toBe(to - from);
  }
});
