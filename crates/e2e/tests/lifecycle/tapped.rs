//! The example agent behind a wire tap: what it was sent can be read, and some of it be kept from it.

use acpd_e2e::{Scratch, acpd};
use serde_json::Value;
use std::path::PathBuf;

/// Adds the example agent, with `args`, behind a tap; what acpd sends goes through `sed` before the agent sees it.
pub(crate) fn tapped(scratch: Scratch, name: &str, sed: &str, args: &str) -> Scratch {
    let (tap, acpd) = (tap(&scratch, name), acpd());
    // `tee` writes to its stdout first: what the agent has is in the tap.
    let script = format!(
        "tee /dev/fd/3 3>&1 >>'{}' | sed -u '{sed}' | '{}' example-agent {args}",
        tap.display(),
        acpd.display()
    );
    scratch.shell(name, &["-c".to_owned(), script])
}

/// A tap that makes `method` unknown to the agent, which still says that it has it.
pub(crate) fn lacking(scratch: Scratch, name: &str, method: &str, args: &str) -> Scratch {
    let method = method.replace('/', "\\/");
    tapped(scratch, name, &format!("s/\"method\":\"{method}\"/\"method\":\"session\\/none\"/"), args)
}

fn tap(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.path(&format!("{name}.heard"))
}

/// Everything that acpd sent to a tapped agent, in order.
pub(crate) fn heard_in_full(scratch: &Scratch, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(tap(scratch, name)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The methods of everything that acpd sent to a tapped agent, in order; an answer has none.
pub(crate) fn heard(scratch: &Scratch, name: &str) -> Vec<String> {
    let lines = heard_in_full(scratch, name).into_iter();
    lines.filter_map(|line| line["method"].as_str().map(str::to_owned)).collect()
}

/// How often an agent was sent a method.
pub(crate) fn times_heard(scratch: &Scratch, name: &str, method: &str) -> usize {
    heard(scratch, name).iter().filter(|heard| *heard == method).count()
}
