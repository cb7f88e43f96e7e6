//! A command with a timeout, as one call (contract 2.3).

use crate::life::TerminalState;
use crate::report::TerminalOutput;
use crate::spec::TerminalSpec;
use crate::terminals::Terminals;
use acpd_supervisor::{ExitStatus, StartError};
use std::time::Duration;

/// How a command with a timeout ended, with what the operating system said of it and its final output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It ended by itself.
    Finished(ExitStatus, TerminalOutput),
    /// Its time was over, and it was killed.
    TimedOut(ExitStatus, TerminalOutput),
}

impl Terminals {
    /// Runs a command to its end, or kills it after `timeout`. No settings about timeouts count.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    ///
    /// # Cancel safety
    /// When the future is dropped, the command is killed.
    pub async fn run_with_timeout(
        &self,
        spec: TerminalSpec,
        timeout: Duration,
    ) -> Result<RunOutcome, StartError> {
        let terminal = self.start(spec, Some(timeout)).await?;
        let report = terminal.wait_for_exit().await;
        // There is no other owner that could release it.
        let output = terminal.output(None).await.map(|snapshot| snapshot.output).unwrap_or_default();
        Ok(match report.state {
            TerminalState::TimedOut => RunOutcome::TimedOut(report.status, output),
            _ => RunOutcome::Finished(report.status, output),
        })
    }
}
