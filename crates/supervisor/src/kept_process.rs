//! The process task of a kept program: our end of its keeper, which has the program's streams.
//!
//! It passes stop requests on, hears what the keeper says, and publishes one [`ExitReport`]. The keeper stays until that
//! was recorded: until the last handle is dropped, or stops what has ended. Where the connection ends although the keeper
//! lives, the program is another controller's, and nothing is done to it. Not here: what is written to it (`link.rs`) and what
//! is read (`teed.rs`).

use crate::keeper::protocol::{Command, Exited, FromKeeper, Refused, Running, Why};
use crate::keeper_process::KeeperProcess;
use crate::ladder::{Graces, Rung};
use crate::lineage::Known;
use crate::link::Link;
use crate::lost::LostKeepers;
use crate::metrics::{self, KeeperRuns};
use crate::outcome::Teller;
use crate::pipes::StdinShared;
use crate::process::{KEEPER_SLACK, keeper_bound};
use crate::queue;
use crate::report::{ExitReport, ExitStatus};
use crate::scope::sleep_until;
use crate::start::Control;
use crate::stderr::StderrRecorder;
use crate::sweep::ProcessMark;
use crate::tap::StderrTap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) struct KeptTask {
    pub(crate) _runs: KeeperRuns,
    pub(crate) _known: Option<Known>,
    pub(crate) keeper: KeeperProcess,
    pub(crate) mark: ProcessMark,
    pub(crate) running: Running,
    pub(crate) lost: LostKeepers,
    pub(crate) control: Control,
    pub(crate) graces: Graces,
    pub(crate) drain: Duration,
    pub(crate) stdin: Arc<StdinShared>,
    /// For the lines only: the excerpt is the keeper's.
    pub(crate) recorder: StderrRecorder,
    pub(crate) tap: StderrTap,
    pub(crate) requested: queue::Receiver<Command>,
    pub(crate) publish: Teller<Arc<ExitReport>>,
    pub(crate) cut: CancellationToken,
    pub(crate) stdout_done: CancellationToken,
}

enum Event {
    Request(Option<Command>),
    Told(io::Result<Option<FromKeeper>>),
    Wrote,
    Overdue,
    Drained,
}

/// How the task ends.
enum Last {
    /// The keeper is gone, and what it kept.
    Gone,
    /// The program is another controller's, or is to be.
    LetGo,
}

impl KeptTask {
    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(crate) async fn run(mut self: Box<Self>, exited: Option<Exited>) {
        let link = self.link();
        let drained_by = match self.serve(exited).await {
            (Last::LetGo, _) => return link.let_go(),
            (Last::Gone, drained_by) => drained_by,
        };
        link.gone();
        let _bound = tokio::time::timeout_at(drained_by, self.stdout_done.cancelled()).await;
        self.cut.cancel();
    }

    fn link(&self) -> Arc<Link> {
        Arc::clone(&self.control.link)
    }

    /// Until the keeper is gone; and until when stdout may be read.
    async fn serve(&mut self, exited: Option<Exited>) -> (Last, Instant) {
        let link = self.link();
        let mut overdue: Option<Instant> = None;
        let mut drained_by: Option<Instant> = None;
        let mut owned = true;
        if let Some(exited) = exited {
            drained_by = Some(self.ended(exited));
        }
        loop {
            let cuts = drained_by.filter(|_| !self.cut.is_cancelled());
            let event = tokio::select! {
                request = self.requested.recv(), if owned => Event::Request(request),
                told = self.control.report() => Event::Told(told),
                () = link.write_on() => Event::Wrote,
                () = sleep_until(overdue), if overdue.is_some() => Event::Overdue,
                () = sleep_until(cuts), if cuts.is_some() => Event::Drained,
            };
            match event {
                Event::Request(request) => {
                    owned = request.is_some();
                    if drained_by.is_some() {
                        // The end was recorded, or nothing wants to.
                        link.send(&Command::Done);
                        owned = false;
                    } else {
                        link.send(&request.unwrap_or(Command::Stop));
                        self.stdin.close();
                    }
                    self.keeper.wake();
                    overdue.get_or_insert(Instant::now() + keeper_bound(self.graces));
                }
                Event::Told(Ok(Some(FromKeeper::Exited(exited)))) => {
                    overdue = None;
                    metrics::leaked(exited.leaked);
                    drained_by = Some(self.ended(exited));
                    if !owned {
                        link.send(&Command::Done);
                    }
                }
                Event::Told(Ok(Some(FromKeeper::Refused(Refused { why })))) => {
                    if why != Why::Superseded {
                        tracing::error!(mark = self.mark.as_str(), ?why, "the keeper wants no more of this");
                    }
                    return (Last::LetGo, Instant::now());
                }
                Event::Told(Ok(Some(told))) => self.heed(told),
                Event::Told(Ok(None) | Err(_)) => return Box::pin(self.connection_ended(drained_by)).await,
                Event::Wrote => {}
                Event::Overdue => {
                    tracing::error!(mark = self.mark.as_str(), "the keeper does not answer, killing it");
                    self.keeper.start_kill();
                    overdue = None;
                }
                Event::Drained => self.cut.cancel(),
            }
        }
    }

    fn heed(&mut self, told: FromKeeper) {
        let link = &self.control.link;
        match told {
            FromKeeper::Consumed(consumed) => link.consumed(consumed.position),
            FromKeeper::Drained(drained) => link.drained(drained.bytes),
            FromKeeper::StdinClosed => link.reader_gone.cancel(),
            FromKeeper::Stderr(bytes) => self.recorder.push_to(&bytes, |line| self.tap.give(line)),
            FromKeeper::StderrLost(lost) => self.tap.lose(lost.lines),
            FromKeeper::NotKept(not_kept) => {
                let mark = self.mark.as_str();
                tracing::warn!(
                    mark,
                    why = not_kept.why,
                    "a program cannot be kept, it ends with this process"
                );
            }
            // Of starts and attaches, which are over, and what has its own place.
            FromKeeper::Started(_)
            | FromKeeper::NotStarted(_)
            | FromKeeper::Attached(..)
            | FromKeeper::Refused(_)
            | FromKeeper::Exited(_) => {}
        }
    }

    /// The program is gone, with everything that it left. Gives until when its stdout may be read.
    fn ended(&mut self, exited: Exited) -> Instant {
        self.stdin.close();
        if let Some(line) = self.recorder.open_line() {
            self.tap.give(&line);
        }
        if exited.leaked > 0 {
            tracing::info!(
                pid = self.running.pid,
                killed = exited.leaked,
                "killed what a program had left behind"
            );
        }
        self.publish.tell(Arc::new(report_of(self.running, exited)));
        self.tap.finish_now();
        Instant::now() + self.drain
    }

    /// Nothing more comes from the keeper: it is gone, or it has another controller.
    async fn connection_ended(&mut self, drained_by: Option<Instant>) -> (Last, Instant) {
        if self.control.link.let_go.is_cancelled() {
            return (Last::LetGo, Instant::now());
        }
        let ended = tokio::time::timeout(KEEPER_SLACK, self.keeper.wait()).await;
        if ended.is_err() {
            tracing::warn!(mark = self.mark.as_str(), "the keeper has closed its connection and lives");
            return (Last::LetGo, Instant::now());
        }
        if let Some(drained_by) = drained_by {
            return (Last::Gone, drained_by);
        }
        // It was killed. The program died with it; the rest is found by its mark.
        tracing::error!(mark = self.mark.as_str(), "the keeper was lost, sweeping what it kept");
        let leaked = self.lost.sweep(self.mark.clone()).await;
        let rungs = vec![Rung::Killed];
        // What is known of stderr here.
        let stderr = Some(self.recorder.excerpt());
        (Last::Gone, self.ended(Exited { status: ExitStatus::Unknown, leaked, rungs, oom_kills: 0, stderr }))
    }
}

/// What is told of an end.
pub(crate) fn report_of(running: Running, exited: Exited) -> ExitReport {
    let Exited { status, leaked, rungs, oom_kills, stderr } = exited;
    ExitReport {
        pid: running.pid,
        status,
        leaked,
        rungs,
        oom_kills,
        stderr: stderr.unwrap_or_default(),
        containment: running.containment,
    }
}
