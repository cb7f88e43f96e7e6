//! Taking over a kept program that another host has started: from its keeper, or, when it has ended, from what its
//! keeper left.
//!
//! The newest host that knows the key has the program; one that had it before learns that it is
//! [superseded](crate::ProcessHandle::superseded). Not here: whether the other host is dead, which is the caller's to know.

use crate::keeper::frames::{Frame, LONGEST};
use crate::keeper::listening::{END, SOCKET, file_of, within};
use crate::keeper::protocol::{self, Command, FromKeeper, Hello, Refused, VERSIONS, Why};
use crate::keeper_process::KeeperProcess;
use crate::keeper_socket::KeeperSocket;
use crate::kept_process::{KeptTask, report_of};
use crate::ladder::Graces;
use crate::link::Link;
use crate::metrics::KeeperRuns;
use crate::pipes::{Stdin, StdinShared, Stdout};
use crate::process::{self, Handling, Process};
use crate::queue;
use crate::regular_file::read_regular;
use crate::spec::ProgramSpec;
use crate::standing::{is_keeper_of, keeper_of};
use crate::start::{Control, Supervisor};
use crate::stderr::StderrRecorder;
use crate::sweep::ProcessMark;
use crate::tap::{StderrLine, StderrTap};
use crate::teed::Teed;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// How long a keeper may take to answer. It may have to send all that it retains.
const ANSWER_BOUND: Duration = Duration::from_secs(30);
/// How often a keeper that lives is asked again that has dropped the question: others of this user may flood it with theirs.
const QUESTIONS: usize = 100;
/// Bytes of the file of an end beside the output that was held back: what the keeper knows, and what was in the pipe.
const AROUND_END: u64 = 16 << 20;
/// And after how long.
const AGAIN: Duration = Duration::from_millis(20);

/// What a new host says of a program that it takes over.
#[derive(Clone, Debug, Default)]
pub struct Adopting {
    /// As in [`ProgramSpec`].
    pub label: Option<Arc<str>>,
    /// As in [`ProgramSpec`]; lines from now on.
    pub stderr_lines: Option<mpsc::Sender<StderrLine>>,
    /// Bytes of output that are taken from the file of its end, at most. None: as many as there can be.
    pub end_bytes: Option<u64>,
}

/// A program that was taken over.
#[derive(Debug)]
pub struct Attached {
    /// Its stdout begins at `committed`.
    pub process: Process,
    /// Process id that it has, or had.
    pub pid: u32,
    /// How many hosts had it before.
    pub lease: u64,
    /// What those had stored by name.
    pub marks: BTreeMap<String, String>,
    /// Up to here everything of its stdout was committed.
    pub committed: u64,
    /// For how long it had no host.
    pub detached: Duration,
    /// Bytes of its stdout that its keeper has held back.
    pub retained: u64,
    /// It has ended, and its keeper had ended it: no host came in time.
    pub was_given_up: bool,
}

/// The versions of the protocol by which keepers of other hosts are asked, from the oldest to the newest.
pub fn keeper_versions() -> std::ops::RangeInclusive<u32> {
    VERSIONS[0]..=VERSIONS[1]
}

/// Why a program cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Neither its keeper nor what that would have left is there.
    #[error("its keeper is gone")]
    Gone,
    /// Its keeper lives, and has hung up each time that it was asked.
    #[error("its keeper does not listen to this host")]
    Dropped,
    /// Its keeper does not know the key.
    #[error("its keeper does not know this host")]
    Refused,
    /// Its keeper speaks none of the versions that are spoken here; [`Supervisor::end_unattached`] ends it.
    #[error("its keeper is of a version that is not known here")]
    Version,
    /// The operating system failed, or the keeper did not answer in time.
    #[error("its keeper cannot be asked")]
    Io(#[from] io::Error),
}

/// What a keeper has answered.
struct Found {
    keeper: KeeperProcess,
    keeper_pid: u32,
    control: Control,
    head: protocol::Attached,
    retained: Bytes,
    stdout: OwnedFd,
}

/// Our ends of a program that was taken over, and what its task needs.
struct Ends {
    process: Process,
    stdin: Arc<StdinShared>,
    requested: queue::Receiver<Command>,
    publish: crate::outcome::Teller<Arc<crate::ExitReport>>,
    cut: CancellationToken,
    stdout_done: CancellationToken,
}

impl Supervisor {
    /// Takes over the program with this mark, whose keeper listens in `directory` and knows `key`: from its keeper or,
    /// when it has ended meanwhile, from the file that its keeper has left, which is removed once the end is recorded.
    ///
    /// # Errors
    /// See [`AttachError`]; nothing has changed then, but that a keeper which was killed has no name any more.
    pub async fn attach(
        &self,
        directory: &Path,
        mark: &ProcessMark,
        key: &str,
        adopting: Adopting,
    ) -> Result<Attached, AttachError> {
        let opened = rustix::fs::open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let directory = match opened {
            Err(rustix::io::Errno::NOENT) => return Err(AttachError::Gone),
            opened => opened.map_err(io::Error::from)?,
        };
        let asked = tokio::time::timeout(ANSWER_BOUND, ask_again(&directory, mark, key)).await;
        match asked.map_err(|_| AttachError::Io(io::ErrorKind::TimedOut.into()))? {
            // It has ended; what it left was there before.
            Err(AttachError::Gone) => {
                let taken = self.take_end(&directory, mark, adopting).await;
                if matches!(taken, Err(AttachError::Gone)) {
                    forget(directory, mark).await;
                }
                taken
            }
            Err(error) => Err(error),
            Ok(found) => self.take_over(found, mark, adopting),
        }
    }

    fn take_over(
        &self,
        found: Found,
        mark: &ProcessMark,
        adopting: Adopting,
    ) -> Result<Attached, AttachError> {
        let Found { keeper, keeper_pid, control, head, retained, stdout } = found;
        let link = Arc::clone(&control.link);
        link.begin_with(head.undrained);
        if head.stdin_closed {
            link.reader_gone.cancel();
        }
        let ends = Ends::new(&head, mark, link, retained, stdout)?;
        let [stdin, term] = head.graces_ms.map(Duration::from_millis);
        let task = KeptTask {
            _runs: KeeperRuns::new(),
            _known: Some(self.known(mark.clone(), Some(keeper_pid), adopting.label)),
            keeper,
            mark: mark.clone(),
            running: head.running,
            lost: self.lost(),
            control,
            graces: Graces { stdin, term },
            drain: ProgramSpec::DEFAULT_DRAIN,
            stdin: ends.stdin,
            recorder: StderrRecorder::default(),
            tap: StderrTap::new(adopting.stderr_lines),
            requested: ends.requested,
            publish: ends.publish,
            cut: ends.cut,
            stdout_done: ends.stdout_done,
        };
        let task = Box::new(task).run(head.exited.clone());
        self.scope().within(Span::current()).spawn_lasting("process", task);
        Ok(attached(ends.process, head))
    }

    /// The end that a keeper has left.
    async fn take_end(
        &self,
        directory: &OwnedFd,
        mark: &ProcessMark,
        adopting: Adopting,
    ) -> Result<Attached, AttachError> {
        let file = within(directory, &file_of(mark.as_str(), END));
        let most = adopting.end_bytes.unwrap_or(LONGEST as u64).saturating_add(AROUND_END);
        let read = tokio::task::spawn_blocking(move || read_regular(&file, most));
        let bytes = match read.await.map_err(io::Error::from)? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AttachError::Gone),
            // No keeper has left it, so none has left anything.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge) =>
            {
                tracing::warn!(mark = mark.as_str(), %error, "the file of a program's end cannot be used");
                return Err(AttachError::Gone);
            }
            read => read?,
        };
        // It is there whole or not at all, so what cannot be read is of another version.
        let frame = Frame::take(&mut BytesMut::from(Bytes::from(bytes)), LONGEST).ok().flatten();
        let told = frame.and_then(|frame| FromKeeper::read(frame).ok().flatten());
        let (head, retained) = judge(Ok(Some(told.ok_or(AttachError::Version)?)))?;
        let exited = head.exited.clone().ok_or(AttachError::Version)?;
        // There is no keeper, and no pipe.
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair()?;
        let link = Arc::new(Link::new(KeeperSocket::new(ours)?));
        link.gone();
        let nothing = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?.0;
        rustix::io::ioctl_fionbio(&nothing, true).map_err(io::Error::from)?;
        let ends = Ends::new(&head, mark, Arc::clone(&link), retained, nothing)?;
        ends.stdin.close();
        ends.publish.tell(Arc::new(report_of(head.running, exited)));
        let directory = directory.try_clone()?;
        let known = self.known(mark.clone(), None, adopting.label);
        let (mark, mut requested) = (mark.clone(), ends.requested);
        self.scope().within(Span::current()).spawn("ended process", async move {
            let recorded = async {
                requested.recv().await;
            };
            tokio::select! {
                biased;
                () = link.let_go.cancelled() => {}
                () = recorded => {
                    for what in [END, SOCKET] {
                        let _gone = rustix::fs::unlinkat(&directory, file_of(mark.as_str(), what), AtFlags::empty());
                    }
                }
            }
            drop(known);
        });
        Ok(attached(ends.process, *head))
    }
}

fn attached(process: Process, head: protocol::Attached) -> Attached {
    Attached {
        process,
        pid: head.running.pid,
        lease: head.lease,
        marks: head.marks,
        committed: head.committed,
        detached: Duration::from_millis(head.detached_ms),
        retained: head.consumed - head.committed,
        was_given_up: head.exited.is_some_and(|exited| !exited.rungs.is_empty()),
    }
}

impl Ends {
    fn new(
        head: &protocol::Attached,
        mark: &ProcessMark,
        link: Arc<Link>,
        retained: Bytes,
        stdout: OwnedFd,
    ) -> io::Result<Self> {
        if head.committed.checked_add(retained.len() as u64) != Some(head.consumed) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the keeper retains something else"));
        }
        let (stdin, shared) = Stdin::kept(Arc::clone(&link));
        let (cut, stdout_done) = (CancellationToken::new(), CancellationToken::new());
        let teed = Teed::new(stdout, Arc::clone(&link), retained, head.consumed)?;
        let stdout = Stdout::kept(teed, head.is_pty, cut.clone(), stdout_done.clone().drop_guard());
        let (handle, requested, publish): Handling =
            process::handle(head.running.pid, mark.clone(), Some(link));
        let process = Process { stdin, stdout, handle };
        Ok(Self { process, stdin: shared, requested, publish, cut, stdout_done })
    }
}

/// Removes the name of a keeper that was killed: nobody would find out that it is of no use.
async fn forget(directory: OwnedFd, mark: &ProcessMark) {
    let mark = mark.clone();
    let forgotten = tokio::task::spawn_blocking(move || {
        // One that lives, and does not listen yet or just ends, has its name for itself.
        if keeper_of(&mark).is_none() {
            let _gone = rustix::fs::unlinkat(directory, file_of(mark.as_str(), SOCKET), AtFlags::empty());
        }
    });
    let _panic = forgotten.await;
}

/// Asks a keeper for its program until it answers, or is gone.
async fn ask_again(directory: &OwnedFd, mark: &ProcessMark, key: &str) -> Result<Found, AttachError> {
    for _ in 1..QUESTIONS {
        match ask(directory, mark, key).await {
            Err(AttachError::Dropped) => tokio::time::sleep(AGAIN).await,
            asked => return asked,
        }
    }
    ask(directory, mark, key).await
}

/// Asks a keeper for its program.
async fn ask(directory: &OwnedFd, mark: &ProcessMark, key: &str) -> Result<Found, AttachError> {
    let socket = match UnixStream::connect(within(directory, &file_of(mark.as_str(), SOCKET))).await {
        // A socket has its name for a moment before it listens, and only so many wait until it accepts them.
        Err(error) if is_early(&error) && lives(mark).await => return Err(AttachError::Dropped),
        connected => connected.map_err(gone)?,
    };
    let keeper_pid = rustix::net::sockopt::socket_peercred(&socket).map_err(io::Error::from)?.pid;
    // It lived after that if it answers, so it is the one with this number.
    let keeper = KeeperProcess::found(keeper_pid).map_err(gone)?;
    keeper.wake();
    let link = Arc::new(Link::new(KeeperSocket::new(socket.into_std()?)?));
    let mut control = Control { link, read: BytesMut::new() };
    control
        .link
        .send_whole(&Command::Hello(Hello { versions: VERSIONS, key: key.to_owned() }).to_bytes())
        .await;
    let answer = async {
        let stdout = receive(&mut control).await.map_err(gone)?;
        Ok((stdout, judge(control.report().await)?))
    };
    let (stdout, (head, retained)) = match answer.await {
        // It has hung up, and lives.
        Err(AttachError::Gone) if is_keeper(keeper_pid, mark).await => return Err(AttachError::Dropped),
        answer => answer?,
    };
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "the keeper has sent no stdout");
    let stdout = stdout.ok_or_else(missing)?;
    let keeper_pid = keeper_pid.as_raw_nonzero().get().unsigned_abs();
    Ok(Found { keeper, keeper_pid, control, head: *head, retained, stdout })
}

/// Whether a socket may take the same connection later.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
}

/// Whether the keeper of a program is there.
async fn lives(mark: &ProcessMark) -> bool {
    let mark = mark.clone();
    tokio::task::spawn_blocking(move || keeper_of(&mark).is_some()).await.unwrap_or(false)
}

async fn is_keeper(pid: Pid, mark: &ProcessMark) -> bool {
    let mark = mark.clone();
    tokio::task::spawn_blocking(move || is_keeper_of(pid, &mark)).await.unwrap_or(false)
}

/// What a keeper says to the first word, or has left as the last one.
fn judge(told: io::Result<Option<FromKeeper>>) -> Result<(Box<protocol::Attached>, Bytes), AttachError> {
    match told {
        Ok(Some(FromKeeper::Attached(head, retained))) if keeper_versions().contains(&head.version) => {
            Ok((head, retained))
        }
        Ok(Some(FromKeeper::Refused(Refused { why: Why::Key | Why::Superseded | Why::Other }))) => {
            Err(AttachError::Refused)
        }
        // It says so, or it does not understand what it is asked, or what it says makes no sense here.
        Ok(Some(_)) => Err(AttachError::Version),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(AttachError::Version),
        Ok(None) => Err(AttachError::Gone),
        Err(error) => Err(gone(error)),
    }
}

/// Receives the begin of an answer, with the descriptor that comes with it.
async fn receive(control: &mut Control) -> io::Result<Option<OwnedFd>> {
    let socket = control.link.socket()?;
    let mut bytes = [0; 4096];
    loop {
        socket.readable().await?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        match socket.try_receive(&mut bytes, &mut ancillary) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            received => {
                control.read.extend_from_slice(&bytes[..received?]);
                return Ok(ancillary.drain().find_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                    _ => None,
                }));
            }
        }
    }
}

/// What an error means where a keeper may just have ended.
fn gone(error: io::Error) -> AttachError {
    use rustix::io::Errno;
    let ended = [Errno::NOENT, Errno::CONNREFUSED, Errno::CONNRESET, Errno::PIPE, Errno::SRCH];
    let is_ended = ended.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    if is_ended || error.kind() == io::ErrorKind::UnexpectedEof {
        AttachError::Gone
    } else {
        AttachError::Io(error)
    }
}

#[cfg(test)]
mod tests;
