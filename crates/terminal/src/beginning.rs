//! How a terminal begins: its command is started, or taken over from the host before.

use crate::event::TerminalEvent;
use crate::feed::{Feed, FeedPace};
use crate::handle::{QUESTIONS, Question, TerminalHandle};
use crate::kept::{Keeping, Kept, KeptTerminal, Needed, Note, Place, Told};
use crate::report::TerminalReport;
use crate::settings::OutputLimits;
use crate::spec::{ShellLine, TerminalId};
use crate::tail::Tail;
use crate::task::{Begin, OpenFeed, Running, now};
use acpd_supervisor::{Attached, Process, ProgramSpec, StartError, Supervisor};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Where it is said whether the command was started.
pub(crate) type Started = oneshot::Receiver<Result<(), StartError>>;

/// Everything a terminal is made of.
pub(crate) struct Plan {
    pub(crate) program: ProgramSpec,
    pub(crate) timeout: Option<Duration>,
    /// What the command is where there is no such program, with its own timeout.
    pub(crate) line: Option<(ShellLine, Option<Duration>)>,
    pub(crate) limits: OutputLimits,
    pub(crate) pace: FeedPace,
    pub(crate) feed: Option<mpsc::Sender<TerminalEvent>>,
    /// None: it ends with this host.
    pub(crate) keeping: Option<Keeping>,
}

/// A terminal of the host before, whose command was taken over.
pub(crate) struct Taken {
    pub(crate) attached: Attached,
    pub(crate) terminal: KeptTerminal,
    pub(crate) told: Told,
    pub(crate) pace: FeedPace,
    pub(crate) feed: mpsc::Sender<TerminalEvent>,
    pub(crate) note: Note,
}

/// What a handle has the other ends of.
pub(crate) struct Ends {
    pub(crate) id: TerminalId,
    pub(crate) questions: mpsc::Receiver<Question>,
    pub(crate) kill: CancellationToken,
    pub(crate) release: CancellationToken,
    pub(crate) shutdown: CancellationToken,
    pub(crate) publish: watch::Sender<Option<TerminalReport>>,
}

/// Makes the two ends of a terminal, which is released by `shutdown` at the latest. The answer says whether the
/// command was started; when it is not waited for any more, the terminal is released.
pub(crate) fn terminal(
    supervisor: Supervisor,
    plan: Plan,
    shutdown: &CancellationToken,
) -> (TerminalHandle, TerminalTask, Started) {
    let (handle, ends) = ends(TerminalId::fresh(), shutdown);
    let (started, answer) = oneshot::channel();
    let task = TerminalTask { ends, supervisor, plan, started };
    (handle, task, answer)
}

fn ends(id: TerminalId, shutdown: &CancellationToken) -> (TerminalHandle, Ends) {
    let (ask, questions) = mpsc::channel(QUESTIONS);
    let (publish, report) = watch::channel(None);
    let (kill, release, shutdown) = (CancellationToken::new(), CancellationToken::new(), shutdown.clone());
    let handle = TerminalHandle {
        id: id.clone(),
        questions: ask,
        kill: kill.clone(),
        release: release.clone(),
        report,
    };
    (handle, Ends { id, questions, kill, release, shutdown, publish })
}

/// Makes the two ends of a terminal that is taken over.
pub(crate) fn taken(taken: Taken, shutdown: &CancellationToken) -> (TerminalHandle, Running) {
    let Taken { attached, terminal, told, pace, feed, note } = taken;
    let (handle, ends) = ends(terminal.id(), shutdown);
    let place = Place::of_marks(&attached.marks, attached.committed);
    let limits = terminal.limits();
    let begin = Begin {
        time: terminal.time_left(),
        limits,
        known: place.bytes - attached.committed,
        tail: Tail::after(place.text, limits.kept),
        feed: (!told.end).then(|| OpenFeed::new(Feed::after(told.text, place.text, pace, now()), feed)),
        kept: Some(Kept { needed: Needed::new(limits.kept.max(pace.held), place), note }),
    };
    (handle, Running::new(ends, attached.process, begin))
}

/// A terminal whose command is not started yet.
pub(crate) struct TerminalTask {
    ends: Ends,
    supervisor: Supervisor,
    plan: Plan,
    started: oneshot::Sender<Result<(), StartError>>,
}

impl TerminalTask {
    pub(crate) async fn run(self) {
        let Plan { program, timeout, line, limits, pace, feed, keeping } = self.plan;
        let (process, timeout) = match start(&self.supervisor, program, timeout, line).await {
            Ok(started) => started,
            Err(error) => {
                let _nobody_waits = self.started.send(Err(error));
                return;
            }
        };
        let kept = keeping.map(|keeping| {
            let terminal = KeptTerminal::new(&self.ends.id, &process, limits, timeout);
            Kept::begin(&terminal, keeping, &process, pace.held)
        });
        if self.started.send(Ok(())).is_err() {
            self.ends.release.cancel();
        }
        let begin = Begin {
            time: timeout,
            limits,
            known: 0,
            tail: Tail::new(limits.kept),
            feed: feed.map(|sender| OpenFeed::new(Feed::new(pace, now()), sender)),
            kept,
        };
        Running::new(self.ends, process, begin).serve().await;
    }
}

/// Starts a program, or by a shell what is the name of none; with the timeout that counts.
async fn start(
    supervisor: &Supervisor,
    mut program: ProgramSpec,
    timeout: Option<Duration>,
    line: Option<(ShellLine, Option<Duration>)>,
) -> Result<(Process, Option<Duration>), StartError> {
    let missing = match supervisor.start(program.clone()).await {
        Err(missing @ StartError::NotFound { .. }) => missing,
        started => return started.map(|process| (process, timeout)),
    };
    let Some((line, timeout)) = line else { return Err(missing) };
    line.run_by_shell(&mut program);
    match supervisor.start(program).await {
        // There is no shell either.
        Err(StartError::NotFound { .. }) => Err(missing),
        started => started.map(|process| (process, timeout)),
    }
}
