//! `acpd sessions events`: what is in a session's log, and with `--follow` what comes.

use super::screen_of_stdout;
use crate::cli::Events;
use crate::commands::shown;
use crate::daemon::{Event, Followed, Follower, Looked, look_for};
use crate::exit::Failure;
use crate::stored::{Stored, events_of};
use crate::streams::{Reader, print, print_json, remark, window};
use crate::view::{Screen, event_line};

pub(super) async fn events(args: Events) -> Result<(), Failure> {
    // The one that serves the state directory was asked whether it is there.
    let known = args.one.which.connect.connect.is_none();
    let printer = Printer { json: args.one.json, screen: screen_of_stdout() };
    let daemon = match look_for(args.one.which).await? {
        Looked::Found(daemon) => daemon,
        Looked::Unserved(config) => {
            let stored = Stored::open(&config).await?;
            let printed = printer.print_stored(&stored, &args.one.id, args.after, args.follow).await;
            stored.close().await;
            return printed;
        }
    };
    if !args.follow {
        let session = daemon.session(&args.one.id).await?;
        let mut pages = daemon.events(&session.session_id, args.after);
        while let Some(page) = pages.next_page().await? {
            if printer.print(&page)? == Reader::Gone {
                break;
            }
        }
        return Ok(());
    }
    let (id, mut last) = (args.one.id.clone(), args.after);
    let mut follower = Follower::new(daemon, args.one.id, args.after, known);
    // Each is said once for each absence, which is over with the next event: some come back only to be lost again.
    let (mut away, mut back) = (false, false);
    loop {
        let followed = follower.next().await.inspect_err(|_| {
            if away {
                let id = shown(&id);
                remark(&format!(
                    "`acpd sessions events {id} --follow --after {last}` goes on behind the last event"
                ));
            }
        });
        match followed? {
            Followed::Event(event) => {
                (away, back, last) = (false, false, event.seq);
                if printer.print(&[event])? == Reader::Gone {
                    return Ok(());
                }
            }
            Followed::Lost { why, wait } if away => {
                tracing::info!(%why, ?wait, "trying again");
            }
            Followed::Lost { why, .. } => {
                away = true;
                remark(&format!("{why}; reconnecting"));
            }
            Followed::Back if back => {}
            Followed::Back => {
                back = true;
                remark("connected again");
            }
            Followed::Unreachable { why } => {
                let goes_on = format!("`acpd sessions events {} --follow --after {last}`", shown(&id));
                return Err(Failure::Failed(format!("{why}; {goes_on} goes on once it can be reached")));
            }
            Followed::Over => return Ok(()),
        }
    }
}

struct Printer {
    json: bool,
    screen: Screen,
}

impl Printer {
    /// Prints what is in a log that no daemon serves. To follow what another process hosts there would need one.
    async fn print_stored(&self, stored: &Stored, id: &str, after: u64, follow: bool) -> Result<(), Failure> {
        let session = stored.session(id).await?;
        if follow && !session.ended {
            return Err(Failure::missing("--follow: the session is hosted by a process that is no daemon"));
        }
        let mut cursor = stored.events(&session.session_id, after).await?;
        while cursor.position() < session.event_count {
            let Some(block) = cursor.next().await? else { break };
            let events: Vec<Event> = events_of(&block).collect();
            if self.print(&events)? == Reader::Gone {
                break;
            }
        }
        Ok(())
    }

    /// Prints events, one per line, together.
    fn print(&self, events: &[Event]) -> Result<Reader, Failure> {
        if events.is_empty() {
            return Ok(Reader::There);
        }
        // The window may have another size by now.
        let width = window().map(|(columns, _)| columns);
        let lines: Vec<String> = events
            .iter()
            .map(|event| match self.json {
                true => event.json.clone(),
                false => event_line(&event.json, width, self.screen),
            })
            .collect();
        let lines = lines.join("\n");
        if self.json { print_json(&lines) } else { print(&lines) }
    }
}
