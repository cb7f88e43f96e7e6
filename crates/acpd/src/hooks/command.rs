//! Tells a command: it gets the body on its stdin, and what it starts ends with it.

use crate::clean::line;
use acpd_supervisor::{ExitStatus, Process, ProgramSpec, StartError, Supervisor, program_environment};
use bytes::BytesMut;

/// Why a command was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error("it cannot be started")]
    Start(#[from] StartError),
    #[error("no directory to start it in")]
    Directory(#[from] std::io::Error),
    #[error("{status}{}{said}", if said.is_empty() { "" } else { ": " })]
    Failed { status: ExitStatus, said: String },
}

/// Runs it to its end, which is bounded by the caller: when this is dropped, it is stopped. Its environment is acpd's own
/// without acpd's variables.
pub(super) async fn run(
    supervisor: &Supervisor,
    command: &[String],
    body: &[u8],
) -> Result<(), CommandError> {
    let (program, args) = command.split_first().map_or(("", command), |(first, rest)| (first.as_str(), rest));
    let mut spec = ProgramSpec::new(program, std::env::current_dir()?);
    spec.args = args.iter().map(Into::into).collect();
    spec.env = program_environment(std::env::vars_os(), &[]);
    let Process { stdin, mut stdout, handle } = supervisor.start(spec).await?;
    let killed = KillOnDrop(handle);
    let write = async move {
        // One that does not read all of it may know enough.
        let _gone = stdin.write_all(body).await;
    };
    let read = async {
        let mut bytes = BytesMut::with_capacity(4096);
        // What it says is of no use; a full pipe would stop it.
        while stdout.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
            bytes.clear();
        }
    };
    let ((), (), report) = tokio::join!(write, read, killed.0.exited());
    match &report.status {
        ExitStatus::Code(0) => Ok(()),
        status => {
            let stderr = report.stderr.tail.as_ref().unwrap_or(&report.stderr.head);
            let said = line(stderr.lines().next_back().unwrap_or_default(), 200);
            Err(CommandError::Failed { status: status.clone(), said })
        }
    }
}

/// It has no time left when it is not waited for any more.
struct KillOnDrop(acpd_supervisor::ProcessHandle);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}
