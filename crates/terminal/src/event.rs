//! The events in a terminal's feed.
//!
//! The feed is a bounded channel that the caller of `create` brings; several terminals may share one. What comes
//! first may be the output of a terminal whose id the caller is only just being told.

use crate::report::{TerminalOutput, TerminalReport};
use crate::spec::TerminalId;

/// A fact for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// The command wrote something.
    Output {
        /// Which terminal.
        terminal: TerminalId,
        /// Bytes of output that were left out right before `text`, because the reader or the pace was too slow.
        dropped: u64,
        /// The next piece, whole characters.
        text: String,
    },
    /// The command has ended. The last event of a terminal.
    Ended {
        /// Which terminal.
        terminal: TerminalId,
        /// How.
        report: TerminalReport,
        /// The final output, within the terminal's own limit.
        output: TerminalOutput,
    },
}
