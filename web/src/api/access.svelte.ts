import type { Scope, Whoami } from "acpd-client";

const KEY = "acpd.token";
const RANKS: Record<Scope, number> = { observe: 0, control: 1, admin: 2 };

/** Who the pages are to the daemon. The token is in the session's storage of this tab and nowhere else. */
class Access {
  #token = $state<string | undefined>(stored());
  #who = $state.raw<Whoami | undefined>(undefined);
  /** Why a token is asked for; undefined while none is. */
  #refused = $state<string | undefined>(undefined);

  get token(): string | undefined {
    return this.#token;
  }

  get who(): Whoami | undefined {
    return this.#who;
  }

  get refused(): string | undefined {
    return this.#refused;
  }

  /** Whether the daemon lets these pages do what needs this scope; before it has said who they are, no. */
  may(scope: Scope): boolean {
    return this.#who !== undefined && RANKS[this.#who.scope] >= RANKS[scope];
  }

  /** The daemon has said who they are. */
  known(who: Whoami): void {
    this.#who = who;
    this.#refused = undefined;
  }

  /** The daemon wants a token, or another one. */
  refuse(why: string): void {
    this.#who = undefined;
    this.#refused = why;
  }

  /** Uses this token from now on, without one: none. */
  use(token: string | undefined): void {
    this.#token = token;
    this.#who = undefined;
    try {
      if (token === undefined) sessionStorage.removeItem(KEY);
      else sessionStorage.setItem(KEY, token);
    } catch {
      // A browser that keeps nothing asks again after a reload.
    }
  }
}

function stored(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export const access = new Access();
