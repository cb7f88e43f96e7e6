//! Writes what packages have beside the program into a directory: `cargo run --example papers -- DIR`. `man/` gets a page for
//! each command, `completions/` the file of each shell.
//!
//! An example, because the product itself needs none of it.

use acpd::cli::{Cli, Shell};
use clap::CommandFactory;
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    let place = std::env::args_os().nth(1).map(PathBuf::from);
    let place = place.ok_or_else(|| io::Error::other("name the directory to write into"))?;
    let (man, completions) = (place.join("man"), place.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Cli::command(), &man)?;
    for page in std::fs::read_dir(&man)? {
        let page = page?.path();
        std::fs::write(&page, legible(&std::fs::read_to_string(&page)?))?;
    }
    for shell in Shell::ALL {
        std::fs::write(completions.join(shell.file_name()), shell.script()?)?;
    }
    Ok(())
}

/// Commands to be typed are neither stretched nor hyphenated, and what heads a list begins a line.
fn legible(page: &str) -> String {
    const MORE: &str = ".SH EXTRA\n";
    let Some((options, more)) = page.split_once(MORE) else { return page.to_owned() };
    let line = |line: &str| format!("{}{line}\n", if line.ends_with(':') { ".br\n" } else { "" });
    format!("{options}.SH MORE\n.ad l\n.nh\n{}", more.lines().map(line).collect::<String>())
}
