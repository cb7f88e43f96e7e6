/** The colours: as the system has them, or one of the two for good. */
export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const KEY = "acpd.theme";

/** What was chosen in this browser; `system` where nothing was, or where nothing can be kept. */
export function storedTheme(): Theme {
  try {
    return parseTheme(localStorage.getItem(KEY));
  } catch {
    return "system";
  }
}

/** A stored value; `system` for all that is none. */
export function parseTheme(value: string | null): Theme {
  return value === "light" || value === "dark" ? value : "system";
}

/** The one behind it in the switch. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}

/** Shows the page in these colours and keeps the choice. */
export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing shows it until it is closed.
  }
}

/** Shows the page in these colours; `system` leaves it to the media query. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
