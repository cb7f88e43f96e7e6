import { parseRoute, type Route } from "./route";

/** Where the pages are. It follows the address; `go` changes both. */
class Router {
  #route = $state.raw<Route>(parseRoute(location.hash));
  /** The entry of the history that is shown, and how far each was scrolled down when it was left. */
  #entry = entry();
  readonly #scrolls = new Map<number, number>();

  constructor() {
    // The browser would scroll before a list is as long again as it was.
    history.scrollRestoration = "manual";
    addEventListener("hashchange", () => this.#arrive());
  }

  get route(): Route {
    return this.#route;
  }

  /** How far down the place was when it was left by a step that was now taken back, in pixels; 0 for a new one. */
  get scroll(): number {
    return this.#scrolls.get(this.#entry) ?? 0;
  }

  /** Goes to the place with this fragment. */
  go(fragment: string): void {
    location.hash = fragment;
  }

  /** Goes there in place of where it is: no step back leads here again. */
  replace(fragment: string): void {
    history.replaceState(history.state, "", fragment);
    this.#route = parseRoute(fragment);
  }

  #arrive(): void {
    this.#scrolls.set(this.#entry, scrollY);
    this.#entry = entry();
    this.#route = parseRoute(location.hash);
  }
}

/** The number of the history's entry that is shown; one without gets it. */
function entry(): number {
  const state: unknown = history.state;
  if (typeof state === "object" && state !== null && "entry" in state && typeof state.entry === "number") return state.entry;
  const made = performance.timeOrigin + performance.now();
  history.replaceState({ entry: made }, "");
  return made;
}

export const router = new Router();
