//! Decides what `--install` runs: a table from what is missing and what the machine is to commands.
//!
//! Not here: running them, or looking whether they helped.

use super::{Get, NODE, Need, NeedError, Version, version};
use crate::child::{self, CommandLine};
use crate::test::node;
use std::collections::BTreeSet;
use std::path::Path;

/// What installing depends on.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    root_user: bool,
    has_apt: bool,
    has_rustup: bool,
    /// The Node.js that apt would install.
    node_of_apt: Option<Version>,
}

impl Machine {
    /// Looks at this machine.
    pub(super) fn look(root: &Path) -> Self {
        Self {
            root_user: rustix::process::geteuid().is_root(),
            has_apt: child::answer("apt-get", &["--version"], root).is_some(),
            has_rustup: child::answer("rustup", &["--version"], root).is_some(),
            node_of_apt: child::answer("apt-cache", &["policy", "nodejs"], root)
                .and_then(|policy| candidate(&policy)),
        }
    }
}

/// The version that `apt-cache policy` says would be installed.
fn candidate(policy: &str) -> Option<Version> {
    version(policy.lines().find_map(|line| line.trim_start().strip_prefix("Candidate:"))?)
}

/// What has to run before it can be said what apt has; nothing where that is not asked, or cannot be.
pub(super) fn preparation(missing: &[&Need], machine: &Machine, root: &Path) -> Option<CommandLine> {
    let asks_apt = missing.iter().any(|need| matches!(need.get, Get::Apt(_) | Get::Node | Get::Npm));
    (asks_apt && machine.has_apt && machine.root_user).then(|| CommandLine::new("apt-get", "update", root))
}

/// The commands that get `missing`, in order; behind [`preparation`].
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
    let fetches_node = missing.iter().any(|need| need.get == Get::Node)
        && machine.node_of_apt.is_none_or(|version| version < NODE);
    for need in missing {
        match need.get {
            // venv is all that fetching takes, and it is not in Debian's python3.
            Get::Node if machine.has_apt && fetches_node => packages.extend(["python3", "python3-venv"]),
            Get::Node if machine.has_apt => packages.push("nodejs"),
            Get::Npm if machine.has_apt && fetches_node => {}
            Get::Npm if machine.has_apt => packages.push("npm"),
            Get::Apt(names) if machine.has_apt => packages.extend(names),
            Get::Component(name) if machine.has_rustup => {
                lines.push(line("rustup", &format!("component add {name}")));
            }
            Get::Toolchain if machine.has_rustup => {
                let (major, minor, patch) = channel;
                lines.push(line("rustup", &format!("toolchain install {major}.{minor}.{patch}")));
            }
            Get::Apt(_) | Get::Node | Get::Npm | Get::Component(_) | Get::Toolchain => by_hand += 1,
        }
    }
    if by_hand > 0 {
        return Err(NeedError::ByHand { count: by_hand });
    }
    // Python and its venv may be asked for twice.
    let mut seen = BTreeSet::new();
    packages.retain(|name| seen.insert(*name));
    if !packages.is_empty() {
        let install = format!("install -y --no-install-recommends {}", packages.join(" "));
        if !machine.root_user {
            return Err(NeedError::NotRoot { command: format!("sudo apt-get {install}") });
        }
        lines.push(line("apt-get", &install).with_env("DEBIAN_FRONTEND", "noninteractive"));
    }
    if fetches_node {
        lines.extend(node::fetching(root));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::needs;
    use super::*;
    use crate::test::step::Step;

    const DEBIAN_ROOT: Machine =
        Machine { root_user: true, has_apt: true, has_rustup: true, node_of_apt: Some((20, 19, 2)) };
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
                "DEBIAN_FRONTEND=\"noninteractive\" apt-get install -y --no-install-recommends gcc libc6-dev",
            ]
        );
    }

    #[test]
    fn what_apt_has_is_looked_up_anew_before_it_is_asked_for() {
        let needs = needs(&[Step::Tidy, Step::Fmt], CHANNEL, true);
        let (apt, rustup): (Vec<&Need>, Vec<&Need>) =
            needs.iter().partition(|need| matches!(need.get, Get::Apt(_)));
        let shown = |missing: &[&Need], machine| {
            preparation(missing, &machine, Path::new("/")).map(|line| line.to_string())
        };
        assert_eq!(shown(&apt, DEBIAN_ROOT).as_deref(), Some("apt-get update"));
        assert_eq!(shown(&apt, Machine { root_user: false, ..DEBIAN_ROOT }), None);
        assert_eq!(shown(&rustup, DEBIAN_ROOT), None);
    }

    // on a Debian whose Node.js is too old, one that is new enough is fetched below target/
    #[test]
    fn node_is_a_package_where_that_is_new_enough() {
        let of = |policy: &str| {
            let machine = Machine { node_of_apt: candidate(policy), ..DEBIAN_ROOT };
            let lines = plan(Step::Interop, machine).expect("everything can be had");
            let packages = lines.iter().find(|line| line.contains("apt-get install")).expect("some").clone();
            (packages.split_once("libc6-dev ").expect("the compiler's").1.to_owned(), lines.len())
        };
        let trixie = "nodejs:\n  Installed: (none)\n  Candidate: 20.19.2+dfsg-1\n  Version table:\n";
        let (packages, lines) = of(trixie);
        assert_eq!(packages, "dash nodejs npm");
        let bookworm = "nodejs:\n  Installed: (none)\n  Candidate: 18.20.4+dfsg-1~deb12u1\n";
        let (old, more_lines) = of(bookworm);
        assert_eq!(old, "dash python3 python3-venv");
        assert_eq!(more_lines, lines + 3);
        assert_eq!(of("").0, old);
        assert_eq!(of("nodejs:\n  Installed: (none)\n  Candidate: (none)\n").0, old);
    }

    #[test]
    fn npm_alone_is_a_package() {
        let needs = needs(&[Step::Interop], CHANNEL, true);
        let npm: Vec<&Need> = needs.iter().filter(|need| need.get == Get::Npm).collect();
        let machine = Machine { node_of_apt: None, ..DEBIAN_ROOT };
        let lines = installation(&npm, &machine, CHANNEL, Path::new("/")).expect("it can be had");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].to_string().ends_with(" npm"), "{}", lines[0]);
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
