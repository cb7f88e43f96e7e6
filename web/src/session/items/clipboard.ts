/** Puts a text on the clipboard. Fails with a sentence where the browser does not let a page do that. */
export async function toClipboard(text: string): Promise<void> {
  // Not there in pages that came by plain HTTP from another machine.
  const clipboard: Clipboard | undefined = navigator.clipboard;
  if (clipboard !== undefined) return clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.className = "unseen";
  box.value = text;
  document.body.append(box);
  const before = document.activeElement;
  box.select();
  const isDone = document.execCommand("copy");
  box.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!isDone) throw new Error("the browser does not let this page copy");
}
