//! How long things take in a terminal: for the tests of promptness, and for the program that shows the cost.

use acpd_terminal::TerminalHandle;
use std::time::{Duration, Instant};

pub(crate) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "measuring time is the purpose")]
    Instant::now()
}

/// From a kill to the answer of somebody who waited already.
///
/// # Panics
/// When the command ended by itself.
pub(crate) async fn kill_to_answer(terminal: &TerminalHandle) -> Duration {
    let waiting = terminal.clone();
    let wait = async { (waiting.wait_for_exit().await, now()) };
    let kill = async {
        let asked = now();
        terminal.kill().await;
        asked
    };
    let ((report, answered), asked) = tokio::join!(wait, kill);
    assert!(report.signal().is_some(), "otherwise it ended by itself");
    answered - asked
}
