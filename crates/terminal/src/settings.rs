//! What the host says of all terminals: times and bounds.

use crate::feed::FeedPace;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// Times and bounds of a host's terminals.
#[derive(Clone, Debug)]
pub struct TerminalSettings {
    /// Between SIGTERM and SIGKILL. Default: 5 s.
    pub graceful_shutdown_timeout: Duration,
    /// How long a command may run. Default: None, for ever.
    pub default_execution_timeout: Option<Duration>,
    /// How long commands of these names may run, whatever the default says. The name is the last part of the
    /// command's path; None: for ever.
    pub command_timeouts: HashMap<OsString, Option<Duration>>,
    /// Bytes of output that are shown by default. So many are kept at least. Default: 1 MiB.
    pub output_byte_limit: usize,
    /// Bytes of output that can be asked for at most. Default: 10 MiB.
    pub output_byte_ceiling: usize,
    /// Terminals that an owner may have, running or not, before it has to release some. Default: 64.
    pub terminals_per_owner: usize,
    /// How output is told to feeds.
    pub feed: FeedPace,
}

impl Default for TerminalSettings {
    fn default() -> Self {
        Self {
            graceful_shutdown_timeout: Duration::from_secs(5),
            default_execution_timeout: None,
            command_timeouts: HashMap::new(),
            output_byte_limit: 1024 * 1024,
            output_byte_ceiling: 10 * 1024 * 1024,
            terminals_per_owner: 64,
            feed: FeedPace::default(),
        }
    }
}

/// How much output one terminal shows and keeps, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    /// Shown where a question does not say.
    pub(crate) shown: usize,
    /// Kept for questions that ask for more.
    pub(crate) kept: usize,
}

impl OutputLimits {
    /// Of a question that asks for `asked`. More than is kept cannot be shown.
    pub(crate) fn of_question(self, asked: Option<u64>) -> usize {
        asked.map_or(self.shown, |asked| usize::try_from(asked).unwrap_or(usize::MAX).min(self.kept))
    }
}

impl TerminalSettings {
    /// How long `command` may run.
    pub(crate) fn timeout_of(&self, command: &OsStr) -> Option<Duration> {
        let name = Path::new(command).file_name().unwrap_or(command);
        self.command_timeouts.get(name).copied().unwrap_or(self.default_execution_timeout)
    }

    /// Of a terminal that asks for `asked`.
    pub(crate) fn output_limits(&self, asked: Option<u64>) -> OutputLimits {
        let asked =
            asked.map_or(self.output_byte_limit, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
        let shown = asked.min(self.output_byte_ceiling);
        OutputLimits { shown, kept: shown.max(self.output_byte_limit).min(self.output_byte_ceiling) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.3: by command name
    #[test]
    fn a_commands_time_goes_by_its_base_name() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        let settings = TerminalSettings {
            default_execution_timeout: Some(minute),
            command_timeouts: HashMap::from([("npm".into(), Some(hour)), ("tail".into(), None)]),
            ..TerminalSettings::default()
        };
        for (command, expected) in [
            ("npm", Some(hour)),
            ("/usr/bin/npm", Some(hour)),
            ("./npm", Some(hour)),
            ("tail", None),
            ("npm2", Some(minute)),
            ("/opt/npm/run", Some(minute)),
            ("..", Some(minute)),
            ("", Some(minute)),
        ] {
            assert_eq!(settings.timeout_of(OsStr::new(command)), expected, "{command}");
        }
        assert_eq!(TerminalSettings::default().timeout_of(OsStr::new("npm")), None);
    }

    // contract 2.3, TE-4: a ceiling bounds what any limit can ask for
    #[test]
    fn a_ceiling_bounds_every_limit() {
        let settings = TerminalSettings {
            output_byte_limit: 100,
            output_byte_ceiling: 1000,
            ..TerminalSettings::default()
        };
        let limits = |asked| {
            let limits = settings.output_limits(asked);
            (limits.shown, limits.kept)
        };
        assert_eq!(limits(None), (100, 100));
        assert_eq!(limits(Some(7)), (7, 100));
        assert_eq!(limits(Some(500)), (500, 500));
        assert_eq!(limits(Some(u64::MAX)), (1000, 1000));
        let small = settings.output_limits(Some(7));
        assert_eq!(
            [None, Some(3), Some(50), Some(u64::MAX)].map(|asked| small.of_question(asked)),
            [7, 3, 50, 100]
        );
    }
}
