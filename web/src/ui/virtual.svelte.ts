import { untrack } from "svelte";
import { observeWindowOffset, observeWindowRect, type VirtualItem, Virtualizer, windowScroll } from "@tanstack/virtual-core";

/** What of a long list is near the window. */
export interface Rows {
  /** The rows to be drawn. */
  readonly items: readonly VirtualItem[];
  /** Height of the whole list, in pixels. */
  readonly height: number;
}

/**
 * Draws of a list that scrolls with the page only the rows near the window. Called while a component is set up.
 *
 * @param count rows of the list
 * @param rowHeight height of a row in pixels
 * @param top where the list begins on the page, in pixels
 */
export function windowRows(count: () => number, rowHeight: () => number, top: () => number): Rows {
  // Raised when the window has scrolled or changed its size.
  let version = $state(0);
  const options = () => ({
    count: count(),
    estimateSize: rowHeight,
    scrollMargin: top(),
    overscan: 2,
    getScrollElement: () => window,
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll,
    initialRect: { width: innerWidth, height: innerHeight },
    onChange: () => (version += 1),
  });
  const virtualizer = new Virtualizer<Window, HTMLElement>(untrack(options));
  // Follows the list in the same step: a row is never drawn for what has moved to another one.
  const drawn = $derived.by(() => {
    void version;
    virtualizer.setOptions(options());
    return { items: virtualizer.getVirtualItems(), height: virtualizer.getTotalSize() };
  });

  $effect(() => virtualizer._didMount());
  $effect(() => {
    void drawn;
    virtualizer._willUpdate();
  });
  $effect(() => {
    rowHeight();
    untrack(() => virtualizer.measure());
  });
  return {
    get items() {
      return drawn.items;
    },
    get height() {
      return drawn.height;
    },
  };
}
