/** The items of a transcript while an event is applied: which of them the event changed. */

import type { Item } from "./items";

/** When and where an event happened. */
export interface When {
  readonly seq: number;
  readonly at: number;
  readonly turn: number;
}

/** Items that are added or replaced, never removed: an index stays what it is. */
export class Draft {
  readonly items: Item[] = [];
  private touched = new Set<number>();
  private lastSeq = 0;
  private ofSeq = 0;

  /** A key for one more item of an event: the same whenever the same events are read. */
  key(when: When): string {
    this.ofSeq = when.seq === this.lastSeq ? this.ofSeq + 1 : 0;
    this.lastSeq = when.seq;
    return this.ofSeq === 0 ? String(when.seq) : `${when.seq}.${this.ofSeq}`;
  }

  add(item: Item): number {
    const index = this.items.push(item) - 1;
    this.touched.add(index);
    return index;
  }

  put(index: number, item: Item): void {
    this.items[index] = item;
    this.touched.add(index);
  }

  /** The indices that changed since the last call, in no order. */
  taken(): ReadonlySet<number> {
    const { touched } = this;
    if (touched.size > 0) this.touched = new Set();
    return touched;
  }
}
