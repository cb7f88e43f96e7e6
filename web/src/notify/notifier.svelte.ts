import type { Session, SessionState } from "acpd-client";
import { changes } from "../live/changes";
import { sessionHref } from "../router/route";
import { router } from "../router/router.svelte";
import type { Newest } from "../sessions/ordering";
import { type News, newsOf } from "./news";

const KEY = "acpd.notify";

/** Calls for a person when a session waits or ends, once that was asked for by a button. */
class Notifier {
  #on = $state(false);
  #stop: (() => void) | undefined;
  #states = new Map<string, SessionState>();
  #begun = false;

  constructor() {
    if (kept() && supported() && Notification.permission === "granted") this.#begin();
  }

  get on(): boolean {
    return this.#on;
  }

  /** Begins or stops; gives a sentence to be said about it. */
  async turn(): Promise<string> {
    if (this.#on) {
      this.#end();
      return "Notifications are off.";
    }
    if (!supported()) return "This browser has no notifications for these pages. They need https, or an address of this machine.";
    if ((await Notification.requestPermission()) !== "granted") {
      return "The browser blocks notifications of these pages. Allow them in its settings for this address, then try again.";
    }
    this.#begin();
    return "Notifications are on: when a session waits for you, and when one ends.";
  }

  #begin(): void {
    this.#on = true;
    keep(true);
    this.#states = new Map();
    this.#begun = false;
    this.#stop = changes.subscribe((changed, newest) => this.#hear(changed, newest));
  }

  #end(): void {
    this.#on = false;
    keep(false);
    this.#stop?.();
  }

  #hear(changed: readonly Session[], newest: Newest): void {
    // What is so already when the pages begin to listen is no news.
    const news = this.#begun ? newsOf(this.#states, changed) : [];
    for (const session of newest.sessions) this.#states.set(session.sessionId, session.state);
    this.#begun = true;
    for (const one of news) if (!isSeen(one.sessionId)) show(one);
  }
}

/** Whether it is on the screen as it is. */
function isSeen(sessionId: string): boolean {
  return !document.hidden && router.route.view === "session" && router.route.id === sessionId;
}

function show(news: News): void {
  try {
    const notification = new Notification(news.title, { body: news.body, tag: news.sessionId });
    notification.onclick = () => {
      window.focus();
      router.go(sessionHref(news.sessionId));
      notification.close();
    };
  } catch {
    // Browsers of phones have them for installed applications only.
  }
}

function supported(): boolean {
  return "Notification" in window && isSecureContext;
}

function kept(): boolean {
  try {
    return localStorage.getItem(KEY) === "on";
  } catch {
    return false;
  }
}

function keep(on: boolean): void {
  try {
    if (on) localStorage.setItem(KEY, "on");
    else localStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing has them off behind a reload.
  }
}

export const notifier = new Notifier();
