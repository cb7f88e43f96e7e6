//! Whether what one client saw of a session is what the log has: in order, no gap, no duplicate.
//!
//! The client joins by `session/new`, `session/load` or `session/resume`, as often as it likes, and leaves by a
//! detach. Between two answers that join, it sees what it was watching up to the event at which it joined anew, then
//! (for a load) the replay up to that event. At which event it joined is not told, so all that fit are followed.

use crate::history::{ENDED, Shown, Stored};
use acpd_e2e::Message;
use std::collections::BTreeSet;

/// How a client joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    New,
    Load,
    /// A load of what cannot be watched: only the history.
    Read,
    Resume,
}

/// What a client saw of one session, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    Message(&'a Message),
    Joined(Join),
    Left,
}

/// Checks what one client saw of one session until it was gone; `said` knows its own prompts.
///
/// # Panics
/// When it is not what the log has.
pub(crate) fn judge(stored: &Stored, seen: &[Seen<'_>], said: impl Fn(&str) -> bool) {
    follow(stored, seen, said, |verdict, rest| {
        verdict.watched(rest, rest.len()).iter().any(|at| verdict.is_over(*at))
    });
}

/// As [`judge`], for a client that was cut off: it may have missed what came last.
pub(crate) fn judge_cut(stored: &Stored, seen: &[Seen<'_>], said: impl Fn(&str) -> bool) {
    follow(stored, seen, said, |verdict, rest| {
        // Watching until then, or in the middle of a replay whose answer it did not live to see.
        let is_cut_here = |count: usize| {
            let cut = count == rest.len() || verdict.begins_replay(&rest[count..]);
            cut && (count == 0 || !verdict.watched(rest, count).is_empty())
        };
        (0..=rest.len()).any(is_cut_here)
    });
}

fn follow(
    stored: &Stored,
    seen: &[Seen<'_>],
    said: impl Fn(&str) -> bool,
    is_good_end: impl Fn(&Verdict<'_>, &[&Message]) -> bool,
) {
    let mut verdict = Verdict {
        stored,
        outline: outline(seen),
        own: stored.prompts().filter(|prompt| said(&prompt.text)).map(|prompt| prompt.seq).collect(),
        live: stored.live_view(said),
        replay: stored.replay_view(),
        at: BTreeSet::from([0]),
        watching: false,
    };
    let mut part = Vec::new();
    for (place, seen) in seen.iter().enumerate() {
        let (at, watching) = match seen {
            Seen::Message(message) => {
                part.push(*message);
                continue;
            }
            Seen::Joined(join) => (verdict.joined(*join, &part), *join != Join::Read),
            Seen::Left => (verdict.watched(&part, part.len()), false),
        };
        if at.is_empty() {
            verdict.explain(&format!("{seen:?} as number {place}"), &part);
        }
        (verdict.at, verdict.watching) = (at, watching);
        part.clear();
    }
    if !is_good_end(&verdict, &part) {
        verdict.explain("the end", &part);
    }
}

/// What was seen, in short.
fn outline(seen: &[Seen<'_>]) -> String {
    let mut outline = String::new();
    let mut updates = 0;
    for seen in seen {
        match seen {
            Seen::Message(message) if message.method() == Some("session/update") => updates += 1,
            other => {
                let what = match other {
                    Seen::Message(message) => message.method().unwrap_or_default().to_owned(),
                    other => format!("{other:?}"),
                };
                outline.push_str(&format!("{updates} updates, {what}, "));
                updates = 0;
            }
        }
    }
    format!("{outline}{updates} updates")
}

struct Verdict<'a> {
    stored: &'a Stored,
    outline: String,
    live: Vec<(u64, Shown)>,
    replay: Vec<(u64, Shown)>,
    /// The client's own prompts: it was attached when it gave them.
    own: BTreeSet<u64>,
    /// Up to which event the client may have seen the session.
    at: BTreeSet<u64>,
    watching: bool,
}

impl Verdict<'_> {
    fn kind(&self, seq: u64) -> Option<u16> {
        let place = usize::try_from(seq.checked_sub(1)?).expect("it is in memory");
        self.stored.events.get(place).map(|event| event.kind)
    }

    fn last(&self) -> u64 {
        self.stored.events.len() as u64
    }

    /// Nobody watches beyond the end of a run.
    fn is_stopped(&self, at: u64) -> bool {
        !self.watching || self.kind(at) == Some(ENDED)
    }

    /// The client may see no more without joining again.
    fn is_over(&self, at: u64) -> bool {
        self.is_stopped(at) || self.live.last().is_none_or(|(seq, _)| *seq <= at)
    }

    /// How far a client that is at an event may be without having seen more.
    fn unseen_after(&self, at: u64) -> u64 {
        if self.is_stopped(at) {
            return at;
        }
        let next = self.live.partition_point(|(seq, _)| *seq <= at);
        self.live.get(next).map_or(self.last(), |(seq, _)| seq - 1)
    }

    /// Where the client can be when the first `count` messages are what it was watching.
    fn watched(&self, messages: &[&Message], count: usize) -> BTreeSet<u64> {
        if count == 0 {
            return self.at.iter().flat_map(|at| *at..=self.unseen_after(*at)).collect();
        }
        let mut reached = BTreeSet::new();
        let starts = self.at.iter().filter(|at| !self.is_stopped(**at));
        let starts: BTreeSet<usize> =
            starts.map(|at| self.live.partition_point(|(seq, _)| seq <= at)).collect();
        for start in starts {
            let Some(shown) = self.live.get(start..start + count) else { continue };
            let (earlier, last) = (&shown[..count - 1], &shown[count - 1]);
            let passes_an_end = earlier.iter().any(|(_, shown)| matches!(shown, Shown::Ended(_)));
            if passes_an_end || !shown.iter().zip(messages).all(|((_, shown), message)| shown.is(message)) {
                continue;
            }
            reached.extend(last.0..=self.unseen_after(last.0));
        }
        reached
    }

    /// Up to which event a replay goes that shows these messages and no others.
    fn replayed(&self, messages: &[&Message]) -> BTreeSet<u64> {
        let count = messages.len();
        let Some(shown) = self.replay.get(..count) else { return BTreeSet::new() };
        if !shown.iter().zip(messages).all(|((_, shown), message)| shown.is(message)) {
            return BTreeSet::new();
        }
        let from = shown.last().map_or(0, |(seq, _)| *seq);
        let upto = self.replay.get(count).map_or(self.last(), |(seq, _)| seq - 1);
        (from..=upto).collect()
    }

    /// Whether a replay begins with these messages.
    fn begins_replay(&self, messages: &[&Message]) -> bool {
        let shown = self.replay.get(..messages.len());
        shown.is_some_and(|shown| shown.iter().zip(messages).all(|((_, shown), message)| shown.is(message)))
    }

    /// Where the client can be when it has joined after these messages.
    fn joined(&self, join: Join, messages: &[&Message]) -> BTreeSet<u64> {
        let mut at = BTreeSet::new();
        match join {
            Join::New if messages.is_empty() => drop(at.insert(0)),
            Join::New => {}
            Join::Load | Join::Read => {
                for count in 0..=messages.len() {
                    // A replay begins with what it begins with; all other places need no longer look.
                    let begins = |(first, next): (&(u64, Shown), &&Message)| first.1.is(next);
                    if !self.replay.first().zip(messages.get(count)).is_none_or(begins) {
                        continue;
                    }
                    let watched = self.watched(messages, count);
                    if watched.is_empty() {
                        break;
                    }
                    let stopped = watched.iter().find(|at| self.is_stopped(**at)).copied();
                    let replayed = self.replayed(&messages[count..]);
                    let joined = replayed.iter().filter(|until| {
                        watched.contains(*until) || stopped.is_some_and(|stopped| stopped <= **until)
                    });
                    at.extend(joined);
                }
            }
            Join::Resume => {
                for from in self.watched(messages, messages.len()) {
                    at.insert(from);
                    if self.is_stopped(from) {
                        // Others may have gone on with it meanwhile; the client itself had to join first, unless
                        // it had asked before it left.
                        let own = self.own.range(from + 1..).next().filter(|_| self.watching);
                        let upto = own.map_or(self.last(), |own| own - 1);
                        at.extend(from..=upto);
                    }
                }
            }
        }
        at
    }

    fn explain(&self, what: &str, messages: &[&Message]) -> ! {
        let short = |text: &str| text.chars().take(230).collect::<String>();
        let came: Vec<String> = messages.iter().map(|message| short(&message.raw)).collect();
        let count = came.len();
        let came = match count {
            0..=24 => came,
            _ => [&came[..12], &came[count - 12..]].concat(),
        };
        let log: Vec<String> = self
            .stored
            .events
            .iter()
            .filter(|event| event.kind != crate::history::UPDATE || event.seq % 100 == 0)
            .map(|event| format!("{} kind {}: {}", event.seq, event.kind, short(&event.text)))
            .collect();
        let (first, last) = (self.at.first(), self.at.last());
        panic!(
            "session {}: what came before {what} is not what the log has\n\
             in all: {}\nit was at {first:?} to {last:?}, watching: {}; {count} messages came: {came:#?}\nlog: {log:#?}",
            self.stored.id, self.outline, self.watching,
        );
    }
}
