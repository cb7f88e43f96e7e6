//! The systemd unit of this daemon: whether it leaves agents alone that are to outlive the daemon.
//!
//! systemd kills what is left in the unit's control group, unless `KillMode=process` says otherwise. Not here: how the
//! daemon stands, which is told in `notify.rs`.

use super::answer::answer_of;
use crate::local_host::LocalHost;
use acpd_supervisor::{ProgramSpec, Supervisor};
use std::time::Duration;

/// How long systemd may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A unit and its manager.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    name: String,
    /// Of a user's manager.
    is_user: bool,
}

/// Has it said in the log when the unit of this process would end agents with the daemon, though they are to wait for `keep`.
/// The daemon begins meanwhile.
pub(super) fn judge(local: &LocalHost, keep: Duration) {
    let is_main = is_main(std::env::var("SYSTEMD_EXEC_PID").ok().as_deref(), std::process::id());
    if keep.is_zero() || !is_main {
        return;
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if let Some(unit) = unit_of(&groups) {
        let supervisor = local.supervisor().clone();
        drop(local.host.scope().spawn("unit", async move { ask(&supervisor, unit).await }));
    }
}

async fn ask(supervisor: &Supervisor, unit: Unit) {
    let Ok(directory) = std::env::current_dir() else { return };
    let mut spec = ProgramSpec::new("systemctl", directory);
    spec.args = unit.question().into_iter().map(Into::into).collect();
    spec.env = std::env::vars_os().collect();
    // What cannot be asked is not judged.
    let asked = tokio::time::timeout(ANSWER, answer_of(supervisor, spec)).await;
    let Ok(Ok((answer, _))) = asked else { return };
    let mode = String::from_utf8_lossy(&answer);
    if ends_agents(&mode) {
        tracing::warn!(
            unit = unit.name,
            kill_mode = mode.trim(),
            "systemd ends agents with acpd here, so they do not wait for the next one: give the unit KillMode=process \
             (acpd-continuity.conf is a drop-in for that), or set keep = \"0s\" in [continuity]"
        );
    }
}

/// Whether systemd has started this process, and not one that this one descends from.
fn is_main(exec_pid: Option<&str>, pid: u32) -> bool {
    exec_pid.and_then(|text| text.parse().ok()) == Some(pid)
}

/// The unit by `/proc/self/cgroup`.
fn unit_of(groups: &str) -> Option<Unit> {
    let path = groups.lines().find_map(|line| {
        line.strip_prefix("0::").or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
    })?;
    let name = path.rsplit('/').find(|part| part.ends_with(".service"))?;
    // The manager of a user is a service itself.
    let is_user = path.split('/').any(|part| part.starts_with("user@") && part != name);
    Some(Unit { name: name.to_owned(), is_user })
}

impl Unit {
    fn question(&self) -> Vec<&str> {
        let manager = self.is_user.then_some("--user");
        manager.into_iter().chain(["show", "--property=KillMode", "--value", &self.name]).collect()
    }
}

/// Whether a unit with this KillMode ends what is left in its control group.
fn ends_agents(mode: &str) -> bool {
    matches!(mode.trim(), "control-group" | "mixed")
}

#[cfg(test)]
mod tests {
    use super::*;

    // ADR 22: a unit that would end agents is known by its control group, and asked of the manager that it has
    #[test]
    fn the_unit_is_found() {
        let system = Unit { name: "acpd.service".to_owned(), is_user: false };
        let user = Unit { is_user: true, ..system.clone() };
        for (groups, unit) in [
            ("0::/system.slice/acpd.service\n", Some(&system)),
            ("0::/user.slice/user-7.slice/user@7.service/app.slice/acpd.service\n", Some(&user)),
            ("4:memory:/x\n1:name=systemd:/system.slice/acpd.service\n", Some(&system)),
            ("0::/user.slice/user-7.slice/session-2.scope\n", None),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(unit_of(groups).as_ref(), unit, "{groups}");
        }
        assert_eq!(system.question(), ["show", "--property=KillMode", "--value", "acpd.service"]);
        assert_eq!(user.question()[0], "--user");
    }

    // ADR 22: only what systemd has started is judged, and only what ends agents is told
    #[test]
    fn what_ends_agents_is_told() {
        assert!(is_main(Some("17"), 17));
        for other in [None, Some("18"), Some("x")] {
            assert!(!is_main(other, 17), "{other:?}");
        }
        for (mode, ends) in [
            ("control-group\n", true),
            ("mixed\n", true),
            ("process\n", false),
            ("none\n", false),
            ("", false),
        ] {
            assert_eq!(ends_agents(mode), ends, "{mode}");
        }
    }
}
