//! `acpd attach`: the end of a session's history, then what happens in it; a client with control prompts and answers, and leaving
//! leaves it alone.

use super::{Chatting, LINES, Much, hold, need_terminal};
use crate::clean::line;
use crate::cli::{Attach, HostLocation, SessionChoice, Which};
use crate::commands::run::Words;
use crate::commands::run::chat::past::Past;
use crate::commands::run::chat::telling::{Fact, Teller};
use crate::daemon::{Daemon, Followed, Follower, Session, need_daemon};
use crate::exit::Failure;
use crate::hosting::reach;
use crate::signals::StopSignals;
use crate::streams::{Blocking, stdout};
use crate::view::{Screen, TICK, View, short_id};
use serde::Deserialize;
use std::io::Stdout;
use std::path::PathBuf;
use tokio::time::Instant;

/// The caller, as the daemon knows it.
#[derive(Deserialize)]
struct Caller {
    scope: String,
}

pub(crate) async fn attach(args: Attach) -> Result<(), Failure> {
    need_terminal("acpd attach", "`acpd sessions events ID --follow` prints what happens")?;
    let much = match (args.all, args.lines) {
        (true, _) => Much::All,
        (false, lines) => Much::Lines(lines.unwrap_or(LINES)),
    };
    let location = location(&args.which);
    let daemon = need_daemon(args.which).await?;
    let session = daemon.session(&args.id).await?;
    let caller: Caller = daemon.get("/v1/whoami").await?;
    let may_only_watch = caller.scope == "observe";
    if session.ended || may_only_watch {
        return Watching::new(daemon, session, much, reach(&location)).watch(may_only_watch).await;
    }
    let chatting = Chatting::new("attach", much, location.config.clone(), location.state_dir.clone());
    let choice = SessionChoice { session: Some(session.session_id), ..SessionChoice::default() };
    let words = Words { name: "acpd attach", chat: Some(chatting), ..Words::of(&choice)? };
    hold(choice, location, words).await?
}

fn location(which: &Which) -> HostLocation {
    let Which { connect, config, state_dir } = which.clone();
    HostLocation { config, state_dir, embedded: false, connect }
}

/// A session that is only looked at: by a token that may do no more, or after its end.
struct Watching {
    session: Session,
    much: Much,
    reach: String,
    view: View<Blocking<Stdout>, Blocking<Stdout>>,
    screen: Screen,
    follower: Follower,
    after: u64,
}

impl Watching {
    fn new(daemon: Daemon, session: Session, much: Much, reach: String) -> Self {
        let screen = Screen::of_stdout();
        let (out, cwd) = (stdout, Some(PathBuf::from(&session.cwd)));
        let view = View::new(out(), out(), screen, cwd);
        let after = much.after(session.event_count);
        let follower = Follower::new(daemon, session.session_id.clone(), after, true);
        Self { session, much, reach, view, screen, follower, after }
    }

    async fn watch(mut self, may_only_watch: bool) -> Result<(), Failure> {
        let (shown, ended) = (short_id(&self.session.session_id), self.session.ended);
        if may_only_watch && !ended {
            let how = "this token may only watch; Ctrl-C leaves";
            self.view.announce(&format!("session {shown}: {how}"))?;
        }
        let (until, cwd) = (self.session.event_count, PathBuf::from(&self.session.cwd));
        let mut past = Some(Past::new(until, self.after, self.much, self.screen.colour, &cwd));
        let mut signals = StopSignals::listen()?;
        let mut teller = Teller::default();
        let mut running: Option<Instant> = None;
        if self.after >= until {
            self.show_past(past.take(), &shown)?;
        }
        let mut ticks = tokio::time::interval(TICK);
        loop {
            if ended && past.is_none() {
                break;
            }
            let followed = tokio::select! {
                followed = self.follower.next() => followed?,
                () = signals.next() => break,
                _ = ticks.tick() => {
                    if let Some(begun) = running {
                        self.view.tick(Instant::elapsed(&begun))?;
                    }
                    continue;
                }
            };
            let event = match followed {
                Followed::Event(event) => event,
                Followed::Lost { why, .. } => {
                    self.view.announce(&format!("{}; reconnecting, Ctrl-C leaves", line(&why, 300)))?;
                    continue;
                }
                Followed::Back => {
                    self.view.announce("connected again")?;
                    continue;
                }
                Followed::Unreachable { why } => {
                    self.show_past(past.take(), &shown)?;
                    self.view.interrupted()?;
                    let again = format!("acpd attach {shown}{}", self.reach);
                    return Err(Failure::Failed(format!(
                        "{why}; to go on watching when it is back: {again}"
                    )));
                }
                Followed::Over => break,
            };
            let fact = match &mut past {
                Some(past) => past.tell(&mut teller, &event)?,
                None => teller.tell(&mut self.view, &event)?,
            };
            match fact {
                Fact::Began(_) => running = Some(Instant::now()),
                Fact::TurnEnded { .. } | Fact::Ended => running = None,
                Fact::Nothing | Fact::Resolved(_) => {}
            }
            if event.seq >= until {
                self.show_past(past.take(), &shown)?;
            }
        }
        self.view.interrupted()?;
        self.tell_end(&shown, ended)
    }

    fn show_past(&mut self, past: Option<Past>, shown: &str) -> Result<(), Failure> {
        let Some(past) = past else { return Ok(()) };
        let (lines, cut) = past.finish();
        if cut {
            self.view.announce(&format!("… what was before: acpd sessions events {shown}{}", self.reach))?;
        }
        self.view.past(&lines).map_err(Failure::from)
    }

    fn tell_end(&mut self, shown: &str, ended: bool) -> Result<(), Failure> {
        let reach = &self.reach;
        let text = match ended {
            true => {
                let reason = self.session.end_reason();
                let reason = reason.as_deref().unwrap_or("unknown");
                format!(
                    "session {shown} has ended ({}); `acpd chat --session {shown}{reach}` goes on with it",
                    line(reason, 60)
                )
            }
            false => format!("to go on watching: acpd attach {shown}{reach}"),
        };
        self.view.announce(&text).map_err(Failure::from)
    }
}
