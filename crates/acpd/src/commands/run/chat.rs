//! `acpd chat` and `acpd attach`: many prompts in a session, on a terminal.
//!
//! The conversation begins and ends as that of `acpd run`; what is between is the chat. Not here: the loop (`chat/room.rs`).

mod asked;
mod attaching;
mod completing;
mod core;
mod form;
mod over;
mod past;
mod prompt;
mod room;
mod screen;
mod telling;
mod words;

pub(crate) use attaching::attach;
pub(super) use past::Much;

use super::conversation::Conversation;
use super::feed::Feed;
use super::home::Home;
use super::{Words, hold};
use crate::cli::Chat;
use crate::editor::History;
use crate::exit::Failure;
use crate::local_host::load_config;
use crate::signals::StopSignals;
use crate::state_dir;
use crate::verdict::Stop;
use crate::view::short_id;
use over::Over;
use past::Past;
use room::Room;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Lines of the history that are shown when a session is gone on with.
const LINES: usize = 20;

/// What is to be known of a chat beside what a prompt needs.
pub(super) struct Chatting {
    /// The command, as it is typed to go on.
    command: &'static str,
    much: Much,
    /// Where the history of lines is.
    state_dir: Option<PathBuf>,
    /// The session's directory, if it is on this machine.
    cwd: Option<PathBuf>,
    /// The first event of what happens from now on.
    begins: u64,
}

impl Chatting {
    /// A state directory that cannot be used has no history; what matters of it is told elsewhere.
    fn new(command: &'static str, much: Much, config: Option<PathBuf>, given: Option<PathBuf>) -> Self {
        let config = load_config(config, given).ok();
        let state_dir = config.map(|config| config.storage.path);
        let state_dir = state_dir.filter(|dir| state_dir::claim(dir).is_ok());
        Self { command, much, state_dir, cwd: None, begins: 0 }
    }

    fn history(&self) -> History {
        self.state_dir.as_deref().map_or_else(History::default, History::open)
    }

    fn files(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }
}

pub(crate) async fn chat(args: Chat) -> Result<(), Failure> {
    need_terminal("acpd chat", "acpd run \"...\" sends one prompt, and reads it from stdin with -")?;
    let location = &args.location;
    let chatting =
        Chatting::new("chat", Much::Lines(LINES), location.config.clone(), location.state_dir.clone());
    let words = Words { name: "acpd chat", chat: Some(chatting), ..Words::of(&args.choice)? };
    hold(args.choice, args.location, words).await?
}

/// Fails where a person can neither read nor write.
fn need_terminal(command: &str, instead: &str) -> Result<(), Failure> {
    let missing = match (std::io::stdin().is_terminal(), std::io::stdout().is_terminal()) {
        (false, _) => "stdin",
        (_, false) => "stdout",
        (true, true) => return Ok(()),
    };
    Err(Failure::Usage(format!("{command} is for a terminal, and {missing} is none; {instead}")))
}

impl Conversation {
    /// Many prompts in place of one, until the person leaves.
    pub(super) async fn chat(
        &mut self,
        mut chatting: Chatting,
        signals: &mut StopSignals,
    ) -> Result<(), Failure> {
        let Some(session) = self.session.clone() else { return Ok(()) };
        let known = self.home.look(&session).await.unwrap_or_default();
        let is_here = match &self.home {
            Home::Here(_) => true,
            Home::Daemon { daemon, .. } => daemon.address().is_here(),
        };
        chatting.cwd = Some(PathBuf::from(&known.cwd)).filter(|_| is_here && !known.cwd.is_empty());
        // A new session has nothing that was before.
        let until = if self.resumed { known.event_count } else { 0 };
        let after = chatting.much.after(until);
        chatting.begins = until;
        let feed = Feed::open(&self.home, &session, after).await;
        self.late.shown(after);
        let past = (until > after && feed.is_some()).then(|| {
            let colour = self.show.view().is_some_and(|view| view.is_coloured());
            Past::new(until, after, chatting.much, colour, Path::new(&known.cwd))
        });
        let (command, shown) = (chatting.command, short_id(&session));
        let how = "Tab completes, Ctrl-C cancels, Ctrl-D leaves";
        self.announce(&format!("session {shown}: {how}"))?;
        let mut room = Room::open(self, chatting, feed, past)?;
        let over = room.stay(signals).await;
        // The terminal is as it was.
        drop(room);
        self.end_chat(over?, command, &shown).await
    }

    async fn end_chat(&mut self, over: Over, command: &str, shown: &str) -> Result<(), Failure> {
        let reach = self.words.reach.clone();
        match over {
            Over::Lost => {
                let trouble = self.client_trouble().await;
                let trouble = trouble.unwrap_or_else(|| "the connection to the host is over".to_owned());
                // It may live or not.
                (self.joined, self.ended) = (false, false);
                if let Some(view) = self.show.view() {
                    view.interrupted()?;
                }
                let text = format!(
                    "{trouble}; `acpd chat --session {shown}{reach}` goes on, once the daemon is back"
                );
                self.outcome = Some(Err(Failure::missing(text)));
            }
            // There is nothing to write to, or nothing to wait for.
            Over::HungUp => self.stop = Some(Stop::Person),
            Over::Left { .. } | Over::Detached => {
                if let Some(view) = self.show.view() {
                    view.interrupted()?;
                }
                self.joined |= matches!(over, Over::Detached);
                let command = match (command, self.ended) {
                    (_, false) if matches!(over, Over::Detached) => format!("attach {shown}"),
                    ("attach", false) => format!("attach {shown}"),
                    _ => format!("chat --session {shown}"),
                };
                self.announce(&format!("to go on: acpd {command}{reach}"))?;
                if self.outcome.is_none() {
                    self.outcome = Some(over.outcome());
                }
            }
        }
        Ok(())
    }
}
