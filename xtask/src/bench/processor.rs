//! One processor for this process and whatever it starts, where the system can do that.
//!
//! Invariant: what was allowed before is allowed again when the guard is dropped, also after an error.

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// While it lives, this thread and the processes that it starts have one processor.
pub(super) struct OnOne {
    #[cfg(target_os = "linux")]
    before: CpuSet,
}

impl OnOne {
    /// None where the system cannot do that, or forbids it.
    #[cfg(target_os = "linux")]
    pub(super) fn enter() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        // The last one: interrupts prefer the first.
        let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| before.is_set(*cpu))?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).ok()?;
        Some(Self { before })
    }

    /// None where the system cannot do that, or forbids it.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn enter() -> Option<Self> {
        None
    }
}

#[cfg(target_os = "linux")]
impl Drop for OnOne {
    fn drop(&mut self) {
        // What was allowed once stays allowed, unless the processor itself has gone.
        let _gone = sched_setaffinity(None, &self.before);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    // issue 2, 8: what acpd adds is told from what waking a processor costs
    #[test]
    fn it_is_one_and_then_as_before() {
        let before = sched_getaffinity(None).expect("it is known");
        let on_one = OnOne::enter().expect("a thread may always give processors up");
        assert_eq!(sched_getaffinity(None).expect("it is known").count(), 1);
        drop(on_one);
        assert_eq!(sched_getaffinity(None).expect("it is known"), before);
    }
}
