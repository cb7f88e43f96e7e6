//! Signals that the tests inherited as ignored, as from `nohup` and a shell's `&`.

use std::sync::{Arc, Once};

/// Gives programs that are started from now on the default action of every signal: one that has a handler here has its
/// default action there.
pub(crate) fn restore() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the kernel says so");
        let mask = u64::from_str_radix(mask.trim(), 16).expect("in hexadecimal");
        let ignored = (1..32).filter(|signal| mask & (1 << (signal - 1)) != 0);
        for signal in ignored.filter(|signal| *signal != signal_hook::consts::SIGPIPE) {
            signal_hook::flag::register(signal, Arc::default()).expect("it can be handled");
        }
    });
}
