/**
 * Which row of a list that is drawn in part has which session. A session keeps its row as long as it is drawn; the row of
 * one that is not any more is taken by one that comes: to change its words costs a third of a new row, and leaves nothing
 * to be collected.
 */
export class Slots {
  #of: ReadonlyMap<string, number> = new Map();

  /** The rows of these sessions, in their order. */
  take(ids: readonly string[]): readonly number[] {
    const kept = new Set(ids.flatMap((id) => this.#of.get(id) ?? []));
    let next = 0;
    const free = (): number => {
      while (kept.has(next)) next += 1;
      return next++;
    };
    const slots = ids.map((id) => this.#of.get(id) ?? free());
    this.#of = new Map(ids.map((id, index) => [id, slots[index] as number]));
    return slots;
  }
}
