import type { Session, SessionState } from "acpd-client";

/** What is wanted of a person comes first, then what is at work, then the rest. */
const RANKS: Record<SessionState, number> = { waiting: 0, running: 1, starting: 1, idle: 2, ended: 2 };

/**
 * The order of a list: waiting for you, at work, then the newest change first. What is at work changes all the time: it
 * stands in the order of its creation, so that rows do not jump under a finger.
 */
export function compare(a: Session, b: Session): number {
  const rank = RANKS[a.state];
  if (rank !== RANKS[b.state]) return rank - RANKS[b.state];
  const [left, right] = rank === 1 ? [a.createdAt, b.createdAt] : [a.updatedAt, b.updatedAt];
  if (left !== right) return left < right ? 1 : -1;
  return a.sessionId < b.sessionId ? 1 : -1;
}

/** What is known of a list, by id. */
export type Known = ReadonlyMap<string, Session>;

/** The newest part of a list under its filters: all of it, or down to its last session. */
export interface Newest {
  sessions: readonly Session[];
  whole: boolean;
}

/**
 * What is known behind a look at the newest changes. `changed` are those of all sessions, `matching` the newest of the
 * list: what has changed and is not among these is not of the list any more, and what should be among them and is not
 * has been removed.
 */
export function refreshed(known: Known, changed: readonly Session[], matching: Newest): Known {
  const fresh = new Map(matching.sessions.map((session) => [session.sessionId, session]));
  const gone = new Set(changed.map((session) => session.sessionId));
  const last = matching.sessions.at(-1);
  const floor = matching.whole || last === undefined ? "" : last.updatedAt;
  const next = new Map<string, Session>();
  for (const [id, session] of known) {
    const stands = fresh.get(id) ?? (gone.has(id) || session.updatedAt > floor ? undefined : session);
    if (stands !== undefined) next.set(id, newer(session, stands));
  }
  for (const [id, session] of fresh) if (!next.has(id)) next.set(id, session);
  return same(known, next) ? known : next;
}

function same(before: Known, now: Known): boolean {
  return before.size === now.size && [...now].every(([id, session]) => before.get(id) === session);
}

/** What is known with another page of the list. */
export function extended(known: Known, page: readonly Session[]): Known {
  const next = new Map(known);
  for (const session of page) {
    const before = next.get(session.sessionId);
    next.set(session.sessionId, before === undefined ? session : newer(before, session));
  }
  return next;
}

/** The later of two states; the same object if nothing has changed, so that nothing is drawn again. */
function newer(before: Session, now: Session): Session {
  if (before.updatedAt > now.updatedAt) return before;
  return before.updatedAt === now.updatedAt && before.state === now.state && before.eventCount === now.eventCount ? before : now;
}
