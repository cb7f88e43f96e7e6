//! The project's own commands, run as `cargo xtask COMMAND`: one file per command.
//!
//! Owned by the repository, not shipped. It starts cargo, git and installers directly: it is the one program
//! here that must work when nothing of the product builds. Not here: anything the product needs at run time.

mod bench;
mod book;
mod conformance;
mod dist;
mod inspector;
mod keeper;
mod openapi;
mod outside;
mod run;
mod test;
mod tidy;
mod tree;
mod venv;

use anstyle::{AnsiColor, Style};
use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check what is needed, then run every check and every test, stopping at the first failure
    Test(test::Options),
    /// Check the house rules that no compiler or lint checks
    Tidy,
    /// Write docs/conformance.md and docs/quirks.md: the tests of each requirement and of each quirk of a peer
    Conformance,
    /// Write docs/openapi.json, docs/schema and docs/reference as the code says
    Openapi,
    /// Build the inspector's pages, and pack them into the file that acpd is built with
    Inspector(inspector::Options),
    /// Build the keeper alone and keep it for the version that it speaks: later daemons are tested with it
    Keeper(keeper::Options),
    /// Build the program that is handed out for an old glibc, and pack it into target/packages, for each registry
    Dist(dist::Options),
    /// Make the pictures of the inspector in docs/images, with Chromium
    Images,
    /// Build the book into target/book, and run every command and sample of its pages and of the README
    Book(book::Options),
    /// Measure a release build next to the bare agent, and fail when a limit is missed
    Bench(bench::Options),
}

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

fn main() -> ExitCode {
    // The top of the repository: where this crate's directory is.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is no root");
    let passed = match Cli::parse().command {
        Command::Test(options) => test::run(&options, root),
        Command::Tidy => tidy::run(root),
        Command::Conformance => conformance::run(root).map(|()| true),
        Command::Openapi => openapi::run(root).map(|()| true),
        Command::Inspector(options) => inspector::run(&options, root),
        Command::Keeper(options) => keeper::run(&options, root).map(|()| true),
        Command::Dist(options) => dist::run(&options, root).map(|()| true),
        Command::Images => inspector::pictures(root).map(|()| true),
        Command::Book(options) => book::run(&options, root),
        Command::Bench(options) => bench::run(&options, root),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("{BAD}{error:#}{BAD:#}");
            ExitCode::FAILURE
        }
    }
}
