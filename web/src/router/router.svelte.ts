import { parseRoute, type Route } from "./route";

/** Where the pages are. It follows the address; `go` changes both. */
class Router {
  #route = $state.raw<Route>(parseRoute(location.hash));

  constructor() {
    addEventListener("hashchange", () => this.#read());
  }

  get route(): Route {
    return this.#route;
  }

  /** Goes to the place with this fragment. */
  go(fragment: string): void {
    location.hash = fragment;
  }

  /** Goes there in place of where it is: no step back leads here again. */
  replace(fragment: string): void {
    history.replaceState(null, "", fragment);
    this.#read();
  }

  #read(): void {
    this.#route = parseRoute(location.hash);
  }
}

export const router = new Router();
