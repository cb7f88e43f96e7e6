import { access } from "./access.svelte";
import { Client } from "./client";
import { isOfDaemon } from "./errors";
import { link } from "./link.svelte";

/** The one way from the pages to the daemon that they come from. */
export const api = new Client({
  token: () => access.token,
  heard: (status, error) => {
    link.told(status !== undefined && isOfDaemon(status, error));
    if (status === 401) access.refuse(error?.message ?? "");
  },
});
