//! Waiting for a lock that another process holds on a database.
//!
//! No session needs one: what the writer's thread cannot write, it writes later. Others wait for about ten seconds.

use std::cell::Cell;
use std::time::Duration;

/// Attempts after which a wait is given up: about ten seconds.
const BOUND: i32 = 20 + 5_000;
/// Attempts after which what no session needs is written later: about 100 ms.
const SHORT: i32 = 20 + 50;

thread_local! {
    /// SQLite's handler is given nothing but a number.
    static BOUND_HERE: Cell<i32> = const { Cell::new(BOUND) };
}

/// Has this thread wait for a moment only.
pub(crate) fn wait_shortly() {
    BOUND_HERE.set(SHORT);
}

/// SQLite's own waits grow to 100 ms, in which a busy neighbour takes the lock many times: ours stay short. False: it gives up.
pub(crate) fn wait_for_lock(attempt: i32) -> bool {
    if attempt >= BOUND_HERE.get() {
        return false;
    }
    #[expect(clippy::disallowed_methods, reason = "a lock of another process has no event to wait for")]
    std::thread::sleep(if attempt < 20 { Duration::from_micros(100) } else { Duration::from_millis(2) });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: nobody waits without end for a lock that another process holds, and the writer hardly at all
    #[test]
    fn waits_have_a_bound() {
        let waits = |bound: i32| (wait_for_lock(0), wait_for_lock(bound - 1), wait_for_lock(bound));
        assert_eq!(waits(BOUND), (true, true, false));
        wait_shortly();
        assert_eq!(waits(SHORT), (true, true, false));
    }
}
