const KEY = "acpd.tab";

/** What this tab is called where the daemon says who answered or prompted: `inspector-7f3a`. It stays over reloads. */
export const tab = stored() ?? named();

/** Whether a client that the daemon names is this tab; behind a name stands that of its token, if it has one. */
export function isThisTab(client: string): boolean {
  return client === tab || client.startsWith(`${tab} (`);
}

function named(): string {
  const digits = crypto.getRandomValues(new Uint16Array(1))[0] ?? 0;
  const name = `inspector-${digits.toString(16).padStart(4, "0")}`;
  try {
    sessionStorage.setItem(KEY, name);
  } catch {
    // A browser that keeps nothing has another name after a reload.
  }
  return name;
}

function stored(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}
