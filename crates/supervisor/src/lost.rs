//! Keepers that were lost: one sweep for all that are lost together.
//!
//! A sweep looks at every process there is, so it is not made for each of many keepers that die in the same moment. While
//! one runs, those who come wait for the next, which is for all of them. Owner of that sweep is a task that lives as long
//! as one of them waits.

use crate::scope::TaskScope;
use crate::sweep::{ProcessMark, Sweep, sweep_each};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What the keepers of one supervisor have lost.
#[derive(Clone, Debug)]
pub(crate) struct LostKeepers {
    scope: TaskScope,
    /// None: no sweep runs. Not more wait than there are programs.
    waiting: Arc<Mutex<Option<Vec<Waiting>>>>,
    #[cfg(test)]
    sweeps: Arc<std::sync::atomic::AtomicU32>,
}

#[derive(Debug)]
struct Waiting {
    mark: ProcessMark,
    swept: oneshot::Sender<u32>,
}

impl LostKeepers {
    pub(crate) fn new(scope: TaskScope) -> Self {
        Self {
            scope,
            waiting: Arc::default(),
            #[cfg(test)]
            sweeps: Arc::default(),
        }
    }

    /// Kills what carries the mark of a program whose keeper is gone; returns how many processes were killed.
    pub(crate) async fn sweep(&self, mark: ProcessMark) -> u32 {
        let (swept, answer) = oneshot::channel();
        let is_first = {
            let mut waiting = self.waiting.lock();
            let is_first = waiting.is_none();
            waiting.get_or_insert_default().push(Waiting { mark, swept });
            is_first
        };
        if is_first {
            let sweeping = Sweeping { lost: self.clone(), done: false };
            self.scope.spawn("sweep", sweeping.run());
        }
        answer.await.unwrap_or(0)
    }
}

/// The task that sweeps. However it ends, the next keeper that is lost is swept for.
struct Sweeping {
    lost: LostKeepers,
    /// It has ended with no keeper left to sweep for.
    done: bool,
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        if !self.done {
            *self.lost.waiting.lock() = None;
        }
    }
}

impl Sweeping {
    async fn run(mut self) {
        loop {
            // Those that are lost in the same moment are about to say so.
            tokio::task::yield_now().await;
            let waiting = {
                let mut waiting = self.lost.waiting.lock();
                match waiting.as_mut().map(std::mem::take) {
                    Some(some) if !some.is_empty() => some,
                    _ => {
                        *waiting = None;
                        self.done = true;
                        return;
                    }
                }
            };
            let marks = waiting.iter().map(|one| one.mark.clone()).collect();
            #[cfg(test)]
            self.lost.sweeps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let swept = tokio::task::spawn_blocking(move || sweep_each(&Sweep::Programs(marks))).await;
            let swept: HashMap<ProcessMark, u32> = swept.unwrap_or_default();
            tracing::debug!(keepers = waiting.len(), "swept what lost keepers kept");
            for Waiting { mark, swept: answer } in waiting {
                let _gave_up = answer.send(swept.get(&mark).copied().unwrap_or(0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::MARK;
    use futures_util::future::join_all;
    use std::sync::atomic::Ordering;

    // SU-3: a sweep that came to nothing holds up no later one
    #[tokio::test]
    async fn a_sweep_that_is_lost_is_no_end() {
        let scope = TaskScope::default();
        let lost = LostKeepers::new(scope.clone());
        let host = uuid::Uuid::new_v4().to_string();
        *lost.waiting.lock() = Some(Vec::new());
        drop(Sweeping { lost: lost.clone(), done: false }.run());
        assert_eq!(lost.sweep(ProcessMark::new(&host, 1)).await, 0);
        assert_eq!(lost.sweeps.load(Ordering::Relaxed), 1);
        scope.finished().await;
    }

    // SU-3: keepers that are lost together are swept together, and each is told of its own
    #[tokio::test]
    async fn one_sweep_for_all_that_are_lost_together() {
        let scope = TaskScope::default();
        let lost = LostKeepers::new(scope.clone());
        let host = uuid::Uuid::new_v4().to_string();
        let marks: Vec<_> = (0..30).map(|n| ProcessMark::new(&host, n)).collect();
        let sleepers: Vec<_> = marks
            .iter()
            .filter(|mark| !mark.as_str().ends_with('9'))
            .map(|mark| {
                #[expect(clippy::disallowed_methods, reason = "it stands for what has lost its keeper")]
                let mut command = std::process::Command::new("sleep");
                command.arg("1000").env(MARK, mark.as_str()).spawn().expect("sleep starts")
            })
            .collect();
        let swept = join_all(marks.iter().map(|mark| lost.sweep(mark.clone()))).await;
        for (mark, swept) in marks.iter().zip(swept) {
            assert_eq!(swept, u32::from(!mark.as_str().ends_with('9')), "{mark:?}");
        }
        assert_eq!(lost.sweeps.load(Ordering::Relaxed), 1);
        for mut sleeper in sleepers {
            sleeper.wait().expect("it is ours, and has ended");
        }
        // The next one is not kept waiting by those before.
        assert_eq!(lost.sweep(ProcessMark::new(&host, 99)).await, 0);
        assert_eq!(lost.sweeps.load(Ordering::Relaxed), 2);
        scope.finished().await;
    }
}
