//! `acpd top`: the sessions of a daemon, once a second, in place.
//!
//! Owned by the command. Invariants: the screen and the mode of the terminal are as they were on every way out,
//! also by a signal; nothing unfiltered of an agent gets there; a daemon that is away is waited for.

mod rates;
mod window;

use crate::clean;
use crate::cli::Top;
use crate::commands::sessions::screen_of_stdout;
use crate::daemon::{Daemon, DaemonError, Listing, Session, SessionFilter, need_daemon};
use crate::exit::Failure;
use crate::keyboard::{Key, Keyboard, Typed};
use crate::runtime::if_any;
use crate::signals::StopSignals;
use crate::streams::{print, print_json, window};
use crate::view::{Paint, Screen, TopRow, cut_end, span, top_table};
use acpd_host::chain;
use jiff::Timestamp;
use rates::Rates;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior};
use window::Window;

/// How often the daemon is asked.
const PACE: Duration = Duration::from_secs(1);
/// Sessions that are looked at: live ones, and behind them as many of those that ended last.
const LIVE: usize = 2_000;
const ENDED: usize = 50;

/// What a daemon says of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Health {
    version: String,
    uptime_ms: u64,
}

/// One look at a daemon.
struct Look {
    health: Health,
    /// The live ones first.
    sessions: Vec<Session>,
    /// There are more live ones than were looked at.
    more: bool,
    /// What it has of other nodes of a fleet may be old.
    stale: bool,
    at: Instant,
}

async fn look(daemon: &Daemon) -> Result<Look, DaemonError> {
    let health = daemon.get("/v1/health").await?;
    let filter = |ended| SessionFilter { ended: Some(ended), ..SessionFilter::default() };
    let Listing { mut sessions, more, stale, .. } = daemon.listing(&filter(false), LIVE).await?;
    sessions.sort_by_key(urgency);
    let (ended, _) = daemon.sessions(&filter(true), ENDED).await?;
    // One may have ended between the two questions.
    let known: std::collections::HashSet<String> = sessions.iter().map(|s| s.session_id.clone()).collect();
    sessions.extend(ended.into_iter().filter(|session| !known.contains(&session.session_id)));
    Ok(Look { health, sessions, more, stale, at: Instant::now() })
}

/// Sessions that wait for a person come first; in each state, the latest change.
fn urgency(session: &Session) -> u8 {
    match session.state.as_str() {
        "waiting" => 0,
        "running" => 1,
        "starting" => 2,
        _ => 3,
    }
}

pub(crate) async fn top(args: Top) -> Result<(), Failure> {
    let daemon = need_daemon(args.which).await?;
    let first = look(&daemon).await?;
    if args.json {
        let raw: Vec<_> = first.sessions.iter().map(|session| &session.raw).collect();
        let health = json!({"version": first.health.version, "uptimeMs": first.health.uptime_ms});
        return print_json(&format!("{{\"daemon\":{health},\"sessions\":{}}}", json!(raw))).map(drop);
    }
    // One that cannot move its cursor, or does not say what it is, gets no more than a pipe.
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if args.once || is_dumb || window().is_none() {
        let width = window().map(|(columns, _)| columns);
        let lines = lines(&first, &Rates::default(), width, screen_of_stdout());
        return print(&lines.join("\n")).map(drop);
    }
    watch(&daemon, first).await
}

async fn watch(daemon: &Daemon, first: Look) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let mut resized = signal(SignalKind::window_change())?;
    // Without a keyboard, as with stdin from elsewhere, Ctrl-C is a signal.
    let mut keyboard = Keyboard::open().ok();
    let mut window = Window::open()?;
    let screen = screen_of_stdout();
    let mut shown = first;
    let mut rates = Rates::default();
    rates.see(&shown.sessions, shown.at);
    let mut trouble: Option<String> = None;
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace.reset();
    // A look takes its time; keys are answered meanwhile.
    let mut looking = None;
    loop {
        window.draw(|columns| drawn(&shown, &rates, trouble.as_deref(), columns, screen))?;
        tokio::select! {
            _ = pace.tick(), if looking.is_none() => {
                let daemon = daemon.clone();
                looking = Some(Box::pin(async move { look(&daemon).await }));
            }
            looked = if_any(looking.as_mut()) => {
                looking = None;
                match looked {
                    Ok(look) => {
                        rates.see(&look.sessions, look.at);
                        (shown, trouble) = (look, None);
                    }
                    Err(error) if error.may_pass() => trouble = Some(clean::line(&chain(&error), 200)),
                    Err(error) => return Err(error.into()),
                }
            }
            typed = if_any(keyboard.as_mut().map(Keyboard::next)) => match typed {
                Typed::Key(Key::Letter('q') | Key::Interrupt | Key::Escape) | Typed::Gone => return Ok(()),
                Typed::Key(key @ (Key::Suspend | Key::Quit)) => {
                    window.leave()?;
                    let stop = if key == Key::Quit { Signal::QUIT } else { Signal::TSTP };
                    if let Some(keyboard) = &mut keyboard {
                        keyboard.stop(stop)?;
                    }
                    window.enter()?;
                }
                Typed::Continued => {
                    if let Some(keyboard) = &mut keyboard {
                        keyboard.enter_again()?;
                    }
                    window.enter()?;
                }
                Typed::Key(_) => {}
            },
            _ = resized.recv() => {}
            () = signals.next() => return Ok(()),
        }
    }
}

/// What is on the screen.
fn drawn(look: &Look, rates: &Rates, trouble: Option<&str>, columns: usize, screen: Screen) -> Vec<String> {
    let mut all = lines(look, rates, Some(columns), screen);
    if let Some(trouble) = trouble {
        let said = cut_end(&format!("{trouble}; trying again"), columns);
        all.insert(1, Paint::new(screen.colour).bad(said));
    }
    all
}

/// The head line and the table.
fn lines(look: &Look, rates: &Rates, width: Option<usize>, screen: Screen) -> Vec<String> {
    let head = head(look);
    let head = width.map_or_else(|| head.clone(), |width| cut_end(&head, width));
    let rows: Vec<TopRow<'_>> =
        look.sessions.iter().map(|session| TopRow { session, rate: rates.of(&session.session_id) }).collect();
    let mut lines = vec![Paint::new(screen.colour).bold(head), String::new()];
    lines.extend(top_table(&rows, Timestamp::now(), width, screen));
    lines
}

fn head(look: &Look) -> String {
    let version = clean::line(&look.health.version, 40);
    let uptime = span(i64::try_from(look.health.uptime_ms / 1_000).unwrap_or(i64::MAX));
    let stale = if look.stale {
        "  the engine of the fleet does not answer, or a node is not heard: others may be old"
    } else {
        ""
    };
    format!("acpd {version}  up {uptime}  sessions: {}{stale}", count_by_state(&look.sessions, look.more))
}

/// How many are live, in all and in each state; `more`: there are more.
pub(crate) fn count_by_state(sessions: &[Session], more: bool) -> String {
    let live: Vec<&Session> = sessions.iter().filter(|session| !session.ended).collect();
    let count = |state: &str| live.iter().filter(|session| session.state == state).count();
    let more = if more { "+" } else { "" };
    let mut parts = vec![format!("{}{more} live", live.len())];
    for state in ["running", "waiting", "idle", "starting"] {
        let count = count(state);
        if count > 0 {
            parts.push(format!("{count} {state}"));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, state: &str) -> Session {
        Session {
            session_id: id.to_owned(),
            state: state.to_owned(),
            ended: state == "ended",
            ..Session::default()
        }
    }

    // contract 6: the head line of acpd top
    #[test]
    fn the_head_counts_by_state() {
        let states = ["running", "waiting", "running", "idle", "ended"];
        let look = Look {
            health: Health { version: "0.1.0\u{1b}[2J".to_owned(), uptime_ms: 61_000 },
            sessions: states.map(|state| session(state, state)).to_vec(),
            more: true,
            stale: true,
            at: Instant::now(),
        };
        assert_eq!(
            head(&look),
            "acpd 0.1.0␛[2J  up 1m  sessions: 4+ live, 2 running, 1 waiting, 1 idle  the engine of the fleet does not answer, or a node is not heard: others may be old"
        );
        let look = Look { stale: false, ..look };
        assert!(!head(&look).contains("fleet"));
        let screen = Screen::default();
        let lines = drawn(&look, &Rates::default(), Some("the daemon is away"), 20, screen);
        assert_eq!(lines[1], "the daemon is away;…".chars().take(20).collect::<String>());
    }

    // contract 6: a session that waits for a person is on top
    #[test]
    fn waiting_sessions_come_first() {
        let mut sessions = ["idle", "running", "new", "waiting"].map(|state| session(state, state)).to_vec();
        sessions.sort_by_key(urgency);
        let order: Vec<&str> = sessions.iter().map(|session| session.session_id.as_str()).collect();
        assert_eq!(order, ["waiting", "running", "idle", "new"]);
    }
}
