//! Where a turn is shown: to a person, as the answer alone, or as JSON lines to a program.

use super::lines::{Events, Line, update_of};
use crate::cli::RunFormat;
use crate::daemon::Event;
use crate::streams::{Blocking, stderr_beside, stdout};
use crate::view::{Screen, View};
use std::io::{self, Stdout, Write};
use std::path::Path;

/// The view of a person, or of a reader of the answer alone.
pub(super) type AnyView = View<Blocking<Stdout>, Box<dyn Write>>;

/// Where things are shown.
pub(super) enum Show {
    Text(Box<AnyView>),
    /// The answer alone: what else a view shows is dropped.
    Quiet(Box<AnyView>),
    Json(Lines),
}

/// Lines for a program.
#[derive(Default)]
pub(super) struct Lines {
    events: Events,
}

impl Show {
    pub(super) fn new(format: RunFormat, screen: Screen, cwd: &Path) -> Self {
        let view =
            |err: Box<dyn Write>, screen| Box::new(View::new(stdout(), err, screen, Some(cwd.to_owned())));
        match format {
            RunFormat::Text => Self::Text(view(Box::new(stderr_beside()), screen)),
            RunFormat::Quiet => {
                let plain = Screen { terminal: false, colour: false, shared: false };
                Self::Quiet(view(Box::new(io::sink()), plain))
            }
            RunFormat::Json => Self::Json(Lines::default()),
        }
    }

    /// Everything on stdout, for a person who writes there.
    pub(super) fn chat(cwd: &Path) -> Self {
        let out = Box::new(stdout());
        Self::Text(Box::new(View::new(stdout(), out, Screen::of_stdout(), Some(cwd.to_owned()))))
    }

    /// What shows the answer, unless a program reads it.
    pub(super) fn view(&mut self) -> Option<&mut AnyView> {
        match self {
            Self::Text(view) | Self::Quiet(view) => Some(view),
            Self::Json(_) => None,
        }
    }

    /// Whether a person is told everything by the view.
    pub(super) fn tells(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Shows an event of the turn: of what a person reads, what the agent says and what commands write.
    pub(super) fn event(&mut self, event: &Event) -> io::Result<()> {
        let view = match self {
            Self::Json(lines) => return lines.event(event),
            Self::Text(view) | Self::Quiet(view) => view,
        };
        match event.kind.as_str() {
            "update" => match update_of(&event.json) {
                Some(update) => view.update(update.get()),
                None => Ok(()),
            },
            "terminal" => view.terminal(&acpd_wire::value(event.json.as_bytes())),
            _ => Ok(()),
        }
    }

    /// What writes lines, if a program reads them.
    pub(super) fn lines(&mut self) -> Option<&mut Lines> {
        match self {
            Self::Text(_) | Self::Quiet(_) => None,
            Self::Json(lines) => Some(lines),
        }
    }
}

impl Lines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match self.events.line(event) {
            Some(line) => put(&line),
            None => Ok(()),
        }
    }

    pub(super) fn write(line: &Line<'_>) -> io::Result<()> {
        put(&line.text())
    }
}

/// At once: its reader may wait for it.
fn put(line: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{line}").and_then(|()| out.flush())
}
