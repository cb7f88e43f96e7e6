// Pages that follow each other, as one sequence.

/** A page that says where the next one begins, unless it is the last. */
export interface Page {
  readonly nextCursor?: string;
}

/** The items of all pages; a page is asked for when the one before was used up. */
export async function* itemsOf<Of extends Page, Item>(
  open: (cursor: string | undefined) => Promise<Of>,
  items: (page: Of) => readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await open(cursor);
    yield* items(page);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}
