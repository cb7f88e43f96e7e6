//! Which ends are for lack of memory (contract 1.2, cause `out_of_memory`).
//!
//! Pure. Two kinds are told: the kernel killed the agent, and says that it killed for lack of memory in the agent's
//! control group meanwhile; or the agent's own runtime gave up, with words that stand for nothing else. An end that
//! was requested is never one of them, and neither are such words of an agent that lives on.

use acpd_supervisor::{ExitReport, ExitStatus};

/// Bytes of a line that are repeated in a message.
const SHOWN: usize = 200;
/// What a shell or a launcher reports of a program that SIGKILL or SIGABRT ended.
const KILLED: i32 = 128 + 9;
const ABORTED: i32 = 128 + 6;

/// Why an end was for lack of memory, if it was.
pub(super) fn ran_out(report: &ExitReport) -> Option<String> {
    if !report.rungs.is_empty() {
        return None;
    }
    let killed = is_signal(&report.status, "SIGKILL") || report.status == ExitStatus::Code(KILLED);
    if killed && report.oom_kills > 0 {
        return Some("the kernel killed for lack of memory in its control group".to_owned());
    }
    let stderr = report.stderr.tail.as_ref().unwrap_or(&report.stderr.head);
    let lines = || stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let said = match &report.status {
        // Python ends like any other failure; its last line is the exception.
        ExitStatus::Code(1) => lines().next().filter(|line| is_python(line)),
        ExitStatus::Code(2) => lines().find(|line| is_go(line)),
        ExitStatus::Code(ABORTED) => lines().find(|line| is_node(line) || is_rust(line)),
        // Newer engines trap where older ones abort.
        ExitStatus::Signal(name) if ["SIGABRT", "SIGTRAP", "SIGILL"].contains(&name.as_str()) => {
            lines().find(|line| is_node(line) || is_rust(line))
        }
        _ => None,
    };
    said.map(|line| line[..line.floor_char_boundary(SHOWN)].to_owned())
}

fn is_signal(status: &ExitStatus, name: &str) -> bool {
    matches!(status, ExitStatus::Signal(signal) if signal == name)
}

/// `FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory`
fn is_node(line: &str) -> bool {
    line.starts_with("FATAL ERROR: ") && line.ends_with("out of memory")
}

/// `memory allocation of 1073741824 bytes failed`
fn is_rust(line: &str) -> bool {
    let number =
        line.strip_prefix("memory allocation of ").and_then(|rest| rest.strip_suffix(" bytes failed"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `fatal error: runtime: out of memory`
fn is_go(line: &str) -> bool {
    line.starts_with("fatal error: ") && line.ends_with("out of memory")
}

/// `MemoryError`, perhaps with words behind it.
fn is_python(line: &str) -> bool {
    line == "MemoryError" || line.starts_with("MemoryError: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_supervisor::{Containment, Rung, StderrExcerpt};

    fn report(status: ExitStatus, stderr: &str) -> ExitReport {
        let stderr = StderrExcerpt { head: stderr.to_owned(), tail: None, truncated: false, total_lines: 1 };
        let containment = Containment::Subreaper;
        ExitReport { pid: 1, status, leaked: 0, rungs: Vec::new(), oom_kills: 0, stderr, containment }
    }

    fn signal(name: &str) -> ExitStatus {
        ExitStatus::Signal(name.to_owned())
    }

    // contract 1.2: out_of_memory, by the kernel; a launcher reports the signal as a code
    #[test]
    fn the_kernels_killing_is_told_from_anybody_elses() {
        for (status, kills, expected) in [
            (signal("SIGKILL"), 1, true),
            (ExitStatus::Code(137), 2, true),
            (signal("SIGKILL"), 0, false),
            (signal("SIGTERM"), 1, false),
            (signal("SIGABRT"), 1, false),
            (ExitStatus::Code(1), 1, false),
            (ExitStatus::Code(0), 1, false),
            (ExitStatus::Unknown, 1, false),
        ] {
            let mut report = report(status, "");
            report.oom_kills = kills;
            assert_eq!(ran_out(&report).is_some(), expected, "{report:?}");
            // A requested end has the request as its cause.
            report.rungs = vec![Rung::Killed];
            assert_eq!(ran_out(&report), None);
        }
    }

    // contract 1.2: out_of_memory, by the last words of a runtime, with the exit that belongs to them
    #[test]
    fn last_words_count_with_their_exit_only() {
        let node = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory";
        let rust = "memory allocation of 1073741824 bytes failed";
        let go = "fatal error: runtime: out of memory";
        let (abort, trap) = (signal("SIGABRT"), signal("SIGTRAP"));
        for (line, status, expected) in [
            (node, abort.clone(), true),
            (node, trap, true),
            (node, ExitStatus::Code(134), true),
            (node, ExitStatus::Code(0), false),
            (node, ExitStatus::Code(1), false),
            (node, signal("SIGKILL"), false),
            (node, signal("SIGSEGV"), false),
            (rust, abort.clone(), true),
            (rust, ExitStatus::Code(2), false),
            ("memory allocation of some bytes failed", abort.clone(), false),
            ("the memory allocation of 5 bytes failed", abort, false),
            (go, ExitStatus::Code(2), true),
            (go, ExitStatus::Code(1), false),
            ("MemoryError", ExitStatus::Code(1), true),
            ("MemoryError: Unable to allocate 8 GiB", ExitStatus::Code(1), true),
            ("MemoryErrors happen", ExitStatus::Code(1), false),
        ] {
            let told = ran_out(&report(status.clone(), &format!("before\n  {line}\n\n")));
            assert_eq!(told, expected.then(|| line.to_owned()), "{line} {status:?}");
        }
        // An exception that is not the last line was caught.
        assert_eq!(ran_out(&report(ExitStatus::Code(1), "MemoryError\nusage: agent")), None);
        // A stack may follow; of much stderr the end counts.
        let mut long = report(signal("SIGABRT"), "nothing");
        long.stderr.tail = Some(format!("{node}\n 1: 0xb78db3 node::OOMErrorHandler"));
        assert_eq!(ran_out(&long).as_deref(), Some(node));
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let line = format!("MemoryError: {}", "é".repeat(300));
        let told = ran_out(&report(ExitStatus::Code(1), &line)).expect("it is one");
        assert!(told.len() <= SHOWN && line.starts_with(&told), "{told}");
    }
}
