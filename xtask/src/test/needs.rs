//! What `cargo xtask test` needs of the machine, how each missing thing is had, and its installation.
//!
//! Invariant: nothing is installed without `--install`, and never through sudo: without root it says what to
//! run. A need is looked at only if a selected step uses it. Not here: libraries, which cargo, npm and pip fetch.

mod plan;

use super::node;
use super::step::{Step, peers};
use crate::child::{self, CommandLine, Counts, RunError};
use plan::Machine;
use std::path::Path;

/// Something that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    name: &'static str,
    steps: &'static [Step],
    look: Look,
    get: Get,
    /// How to get it by hand.
    by_hand: &'static str,
}

/// How to see whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Look {
    /// The command succeeds.
    Answers(&'static str, &'static str),
    /// The command prints a version, and it is at least this one.
    AtLeast(&'static str, &'static str, Version),
    /// The C compiler that the build scripts will take.
    Compiler,
}

/// How `--install` gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Get {
    Apt(&'static [&'static str]),
    /// Debian's package where it is new enough, else one below `target/`.
    Node,
    /// Debian's package, unless it comes with such a Node.js.
    Npm,
    Component(&'static str),
    Toolchain,
}

/// Major, minor and patch.
type Version = (u64, u64, u64);

const NODE: Version = (20, 0, 0);
const PYTHON: Version = (3, 10, 0);
const CARGO_STEPS: &[Step] = &[Step::Clippy, Step::Build, Step::Test, Step::Doc, Step::Interop, Step::Rest];

/// Why the steps cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum NeedError {
    /// The file that names the toolchain is gone or says something else.
    #[error("rust-toolchain.toml has no line `channel = \"MAJOR.MINOR.PATCH\"`")]
    NoChannel,
    /// Listed on stderr, each with the way to get it.
    #[error("{count} missing; install as said above, or as root on Debian: cargo xtask test --install")]
    Missing { count: usize },
    /// `--install` may not install this by itself.
    #[error("not installed, because this is not root; run: {command}")]
    NotRoot { command: String },
    /// `--install` cannot install this.
    #[error("{count} missing that cannot be installed from here; install as said above")]
    ByHand { count: usize },
    /// An installer failed.
    #[error("could not install")]
    Install(#[source] RunError),
}

/// Looks for everything that `steps` need; with `install`, gets what is missing and looks again.
pub(super) fn check(steps: &[Step], root: &Path, install: bool) -> Result<(), NeedError> {
    let toolchain = std::fs::read_to_string(root.join("rust-toolchain.toml")).unwrap_or_default();
    let channel = channel(&toolchain).ok_or(NeedError::NoChannel)?;
    let has_node = peers(root).iter().any(|dir| dir.join("package.json").exists())
        || root.join("interop/package.json").exists();
    let needs = needs(steps, channel, has_node);
    let missing = || -> Vec<&Need> {
        let gone: Vec<&Need> = needs.iter().filter(|need| !is_there(&need.look, root)).collect();
        for need in &gone {
            anstream::eprintln!("missing: {}; get it with: {}", need.name, need.by_hand);
        }
        gone
    };
    let all_there = || match needs.len() {
        0 => {}
        1 => anstream::println!("the tool that is needed is there"),
        count => anstream::println!("all {count} tools that are needed are there"),
    };
    let first = missing();
    if first.is_empty() {
        all_there();
        return Ok(());
    }
    if !install {
        return Err(NeedError::Missing { count: first.len() });
    }
    let install = |line: &CommandLine| {
        anstream::println!("\n[install] {line}");
        child::run(line, &mut Counts::default(), &mut std::io::stdout()).map_err(NeedError::Install)
    };
    // Which versions apt has is known after this only.
    if let Some(line) = plan::preparation(&first, &Machine::look(root), root) {
        install(&line)?;
    }
    for line in plan::installation(&first, &Machine::look(root), channel, root)? {
        install(&line)?;
    }
    match missing().len() {
        0 => {
            all_there();
            Ok(())
        }
        count => Err(NeedError::ByHand { count }),
    }
}

/// The version in a line like `channel = "1.95.0"`.
fn channel(toolchain: &str) -> Option<Version> {
    let line = toolchain.lines().find(|line| line.trim_start().starts_with("channel"))?;
    version(line.split_once('=')?.1)
}

fn needs(steps: &[Step], channel: Version, has_node: bool) -> Vec<Need> {
    let component = |name: &'static str, steps, command| Need {
        name,
        steps,
        look: Look::Answers("cargo", command),
        get: Get::Component(name),
        by_hand: if name == "clippy" {
            "rustup component add clippy"
        } else {
            "rustup component add rustfmt"
        },
    };
    let apt =
        |name, steps, look, packages, by_hand| Need { name, steps, look, get: Get::Apt(packages), by_hand };
    let mut needs = vec![
        Need {
            name: "rustc as new as rust-toolchain.toml says",
            steps: CARGO_STEPS,
            look: Look::AtLeast("rustc", "--version", channel),
            get: Get::Toolchain,
            by_hand: "rustup toolchain install (rustup itself: see rustup.rs)",
        },
        component("rustfmt", &[Step::Fmt, Step::Interop], "fmt --version"),
        component("clippy", &[Step::Clippy, Step::Interop], "clippy --version"),
        apt(
            "a C compiler (SQLite is built from source)",
            CARGO_STEPS,
            Look::Compiler,
            &["gcc", "libc6-dev"],
            "apt-get install gcc libc6-dev",
        ),
        apt("git", &[Step::Tidy], Look::Answers("git", "--version"), &["git"], "apt-get install git"),
        apt(
            "sh",
            &[Step::Test, Step::Interop],
            Look::Answers("sh", "-c :"),
            &["dash"],
            "apt-get install dash",
        ),
        apt(
            "openssl (the guide's line that makes a certificate is tested)",
            &[Step::Test],
            Look::Answers("openssl", "version"),
            &["openssl"],
            "apt-get install openssl",
        ),
    ];
    needs.push(apt(
        "Python 3.10 or newer",
        &[Step::Rest],
        Look::AtLeast("python3", "--version", PYTHON),
        &["python3"],
        "apt-get install python3",
    ));
    needs.push(apt(
        "Python's venv",
        &[Step::Rest],
        Look::Answers("python3", "-m ensurepip --version"),
        &["python3-venv"],
        "apt-get install python3-venv",
    ));
    if has_node {
        needs.push(Need {
            name: "node 20 or newer",
            steps: &[Step::Interop],
            look: Look::AtLeast("node", "--version", NODE),
            get: Get::Node,
            by_hand: "apt-get install nodejs (Debian 13), or a newer Node.js from nodejs.org",
        });
        // Behind node: a Node.js that is fetched brings it.
        needs.push(Need {
            name: "npm",
            steps: &[Step::Interop],
            look: Look::Answers("npm", "--version"),
            get: Get::Npm,
            by_hand: "apt-get install npm",
        });
    }
    needs.retain(|need| need.steps.iter().any(|step| steps.contains(step)));
    needs
}

fn is_there(look: &Look, root: &Path) -> bool {
    let tools = node::tools(root);
    let answer = |program: &str, args: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        child::answer_of(program, &args, root, tools.as_deref())
    };
    match look {
        Look::Answers(program, args) => answer(program, args).is_some(),
        Look::AtLeast(program, args, least) => {
            answer(program, args).and_then(|text| version(&text)).is_some_and(|found| found >= *least)
        }
        Look::Compiler => {
            let named = std::env::var("CC").unwrap_or_else(|_unset| "cc".to_owned());
            answer(&named, "--version").is_some()
        }
    }
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

    #[test]
    fn versions_are_read_from_what_tools_print() {
        assert_eq!(version("rustc 1.95.0 (59807616e 2026-04-14)"), Some((1, 95, 0)));
        assert_eq!(version("v20.20.2"), Some((20, 20, 2)));
        assert_eq!(version("rustc 1.96.0-nightly"), Some((1, 96, 0)));
        assert_eq!(version("none"), None);
    }

    #[test]
    fn the_channel_is_a_version() {
        assert_eq!(channel("[toolchain]\nchannel = \"1.95.0\"\n"), Some((1, 95, 0)));
        assert_eq!(channel("[toolchain]\nchannel = \"stable\"\n"), None);
    }

    #[test]
    fn only_what_the_steps_use_is_needed() {
        let names = |steps: &[Step], node| -> Vec<&str> {
            needs(steps, (1, 95, 0), node).iter().map(|need| need.name).collect()
        };
        assert_eq!(names(&[Step::Fmt], true), ["rustfmt"]);
        assert_eq!(names(&[Step::Tidy], true), ["git"]);
        assert!(!names(&[Step::Interop], false).contains(&"npm"));
        assert!(names(&[Step::Interop], true).contains(&"npm"));
    }

    #[test]
    fn an_older_version_counts_as_missing() {
        let root = Path::new("/");
        assert!(is_there(&Look::AtLeast("rustc", "--version", (1, 0, 0)), root));
        assert!(!is_there(&Look::AtLeast("rustc", "--version", (999, 0, 0)), root));
        assert!(!is_there(&Look::Answers("no-such-program-here", "--version"), root));
    }
}
