//! `acpd sessions events`: what is in a session's log, and with `--follow` what comes.

use super::{print_remark, screen_of_stdout};
use crate::cli::Events;
use crate::daemon::{Event, Followed, Follower, need_daemon};
use crate::exit::Failure;
use crate::stdout::{Reader, print, window};
use crate::view::{Screen, event_line};

pub(super) async fn events(args: Events) -> Result<(), Failure> {
    // The one that serves the state directory was asked whether it is there.
    let known = args.one.which.connect.connect.is_none();
    let daemon = need_daemon(args.one.which).await?;
    let printer = Printer { json: args.one.json, screen: screen_of_stdout() };
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
    let mut follower = Follower::new(daemon, args.one.id, args.after, known);
    // Each is said once for each absence, which is over with the next event: some come back only to be lost again.
    let (mut away, mut back) = (false, false);
    loop {
        match follower.next().await? {
            Followed::Event(event) => {
                (away, back) = (false, false);
                if printer.print(&[event])? == Reader::Gone {
                    return Ok(());
                }
            }
            Followed::Lost { why, wait } if away => {
                tracing::info!(%why, ?wait, "trying again");
            }
            Followed::Lost { why, .. } => {
                away = true;
                print_remark(&format!("{why}; reconnecting"));
            }
            Followed::Back if back => {}
            Followed::Back => {
                back = true;
                print_remark("connected again");
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
        print(&lines.join("\n"))
    }
}
