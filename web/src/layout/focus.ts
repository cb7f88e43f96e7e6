/**
 * Gives the focus to the heading of what is shown in `main`, as soon as there is one, unless something else has taken it
 * until then. Ends when the signal is aborted.
 */
export function focusHeading(main: HTMLElement, signal: AbortSignal): void {
  if (focused(main)) return;
  const observer = new MutationObserver(() => {
    if (document.activeElement !== document.body || focused(main)) observer.disconnect();
  });
  observer.observe(main, { childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect());
}

function focused(main: HTMLElement): boolean {
  const heading = main.querySelector<HTMLElement>("h1");
  heading?.focus({ preventScroll: true });
  return heading !== null;
}
