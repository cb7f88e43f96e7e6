//! What a program says on stdout, that the daemon asks something.

use acpd_supervisor::{ExitReport, Process, ProcessHandle, ProgramSpec, StartError, Supervisor};
use bytes::BytesMut;
use std::sync::Arc;

/// Bytes of an answer that are read.
const MOST: usize = 1 << 20;

/// Runs a program to its end. When this is not waited for any more, the program is killed.
pub(super) async fn answer_of(
    supervisor: &Supervisor,
    spec: ProgramSpec,
) -> Result<(BytesMut, Arc<ExitReport>), StartError> {
    let Process { stdin, mut stdout, handle } = supervisor.start(spec).await?;
    drop(stdin);
    let running = KillOnDrop(handle);
    let mut answer = BytesMut::new();
    while answer.len() < MOST && stdout.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {}
    let report = running.0.exited().await;
    Ok((answer, report))
}

/// It has no time left when it is not waited for any more.
struct KillOnDrop(ProcessHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}
