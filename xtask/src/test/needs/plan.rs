//! Decides what `--install` runs: a table from what is missing and what the machine is to commands.
//!
//! Not here: running them, or looking whether they helped.

use super::{Get, Need, NeedError, Version};
use crate::child::{self, CommandLine};
use std::path::Path;

/// What installing depends on.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    root_user: bool,
    has_apt: bool,
    has_rustup: bool,
}

impl Machine {
    /// Looks at this machine.
    pub(super) fn look(root: &Path) -> Self {
        Self {
            root_user: rustix::process::geteuid().is_root(),
            has_apt: child::answer("apt-get", &["--version"], root).is_some(),
            has_rustup: child::answer("rustup", &["--version"], root).is_some(),
        }
    }
}

/// The commands that get `missing`, in order.
pub(super) fn installation(
    missing: &[&Need],
    machine: &Machine,
    channel: Version,
    root: &Path,
) -> Result<Vec<CommandLine>, NeedError> {
    let line = |program: &str, args: &str| CommandLine::new(program, args, root);
    let mut lines = Vec::new();
    let mut packages: Vec<&str> = Vec::new();
    let mut by_hand = 0;
    for need in missing {
        match need.get {
            Get::Apt(names) if machine.has_apt => packages.extend(names),
            Get::Component(name) if machine.has_rustup => {
                lines.push(line("rustup", &format!("component add {name}")));
            }
            Get::Toolchain if machine.has_rustup => {
                let (major, minor, patch) = channel;
                lines.push(line("rustup", &format!("toolchain install {major}.{minor}.{patch}")));
            }
            Get::Apt(_) | Get::Component(_) | Get::Toolchain => by_hand += 1,
        }
    }
    if by_hand > 0 {
        return Err(NeedError::ByHand { count: by_hand });
    }
    if !packages.is_empty() {
        let install = format!("install -y --no-install-recommends {}", packages.join(" "));
        if !machine.root_user {
            return Err(NeedError::NotRoot { command: format!("sudo apt-get {install}") });
        }
        lines.push(line("apt-get", "update"));
        lines.push(line("apt-get", &install).with_env("DEBIAN_FRONTEND", "noninteractive"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::needs;
    use super::*;
    use crate::test::step::Step;

    const DEBIAN_ROOT: Machine = Machine { root_user: true, has_apt: true, has_rustup: true };
    const CHANNEL: Version = (1, 95, 0);

    /// What is run when everything that `step` needs is missing.
    fn plan(step: Step, machine: Machine) -> Result<Vec<String>, NeedError> {
        let needs = needs(&[step], CHANNEL, true);
        let missing: Vec<&Need> = needs.iter().collect();
        let lines = installation(&missing, &machine, CHANNEL, Path::new("/"))?;
        Ok(lines.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn root_on_debian_installs_packages_in_one_go() {
        let lines = plan(Step::Build, DEBIAN_ROOT).expect("everything can be had");
        assert_eq!(
            lines,
            [
                "rustup toolchain install 1.95.0",
                "apt-get update",
                "DEBIAN_FRONTEND=\"noninteractive\" apt-get install -y --no-install-recommends gcc libc6-dev",
            ]
        );
    }

    #[test]
    fn without_root_it_says_what_to_run_and_runs_nothing() {
        let error = plan(Step::Tidy, Machine { root_user: false, ..DEBIAN_ROOT }).expect_err("not root");
        assert!(matches!(error, NeedError::NotRoot { command } if command.ends_with(" git")));
    }

    #[test]
    fn rustup_components_need_no_root() {
        let lines = plan(Step::Fmt, Machine { root_user: false, ..DEBIAN_ROOT }).expect("rustup is there");
        assert_eq!(lines, ["rustup component add rustfmt"]);
    }

    #[test]
    fn what_no_installer_here_can_get_is_left_to_the_person() {
        let error = plan(Step::Tidy, Machine { has_apt: false, ..DEBIAN_ROOT }).expect_err("no apt-get");
        assert!(matches!(error, NeedError::ByHand { count: 1 }));
        let error = plan(Step::Fmt, Machine { has_rustup: false, ..DEBIAN_ROOT }).expect_err("no rustup");
        assert!(matches!(error, NeedError::ByHand { count: 1 }));
    }
}
