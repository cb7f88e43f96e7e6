import { isProblem } from "acpd-client";
import { access } from "../api/access.svelte";
import { api, exchange } from "../api/api";
import { inWords, isAway } from "../api/errors";
import { openingOf } from "../router/route";
import { router } from "../router/router.svelte";

/** A code is good once, and for a minute. */
const USED = "This link was good once; acpd open makes another.";
/** Between tries to learn who the pages are, while the daemon does not answer, in milliseconds. */
const AGAIN_MS = 1000;

/**
 * Finds out who the pages are to the daemon. A code in the fragment is erased from the history before it is exchanged,
 * so that neither a step back nor a copied address has it.
 */
export async function enter(): Promise<void> {
  const opening = openingOf(location.hash);
  if (opening !== undefined) {
    router.replace(opening.place);
    try {
      access.use(await exchange(opening.code));
    } catch (error) {
      access.refuse(isProblem(error, "unauthorized") ? USED : `The code of acpd open was not taken: ${inWords(error)}`);
      return;
    }
  }
  await introduce();
}

/** Asks until there is an answer; a refusal is one, and asks for a token by itself. */
export async function introduce(): Promise<void> {
  try {
    access.known(await api.whoami());
  } catch (error) {
    if (isAway(error)) setTimeout(() => void introduce(), AGAIN_MS);
  }
}
