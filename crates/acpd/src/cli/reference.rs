//! `docs/reference/cli.md`, made of the definitions of the command line: tests only.
//!
//! Not here: what commands do, which their help says.

use super::Cli;
use crate::schema_file::compare;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

const BEGIN: &str = "\
<!-- This page is written by `cargo xtask openapi`; its words are the help in crates/acpd/src/cli. -->

# Commands

The same is said by `acpd help COMMAND` and `acpd COMMAND --help`. Options may be written `--option VALUE` or
`--option=VALUE`.
";

/// A command with all that it has below it, each under a heading that its name is the anchor of.
fn command(page: &mut String, of: &Command, path: &str, level: usize) {
    let name = format!("{path} {}", of.get_name()).trim().to_owned();
    let about = of.get_long_about().or(of.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n{} {name}\n\n{}.\n", "#".repeat(level), about.trim_end_matches('.'));
    let usage = of.clone().bin_name(&name).render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim());
    let is_own = |arg: &&Arg| !arg.is_hide_set() && (level == 2 && path.is_empty() || !is_common(arg));
    let mut args: Vec<&Arg> = of.get_arguments().filter(is_own).collect();
    args.sort_by_key(|arg| !arg.is_positional());
    if !args.is_empty() {
        page.push_str("\n| argument or option | what it is |\n|---|---|\n");
        args.iter().for_each(|arg| row(page, arg));
    }
    let after = of.get_after_long_help().or(of.get_after_help()).map(ToString::to_string).unwrap_or_default();
    told(page, after.trim());
    for below in of.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        command(page, below, &name, (level + 1).min(if path.is_empty() { 2 } else { 3 }));
    }
}

/// What help has behind the options: lists and examples stay as they are, what is in between is text.
fn told(page: &mut String, after: &str) {
    let (mut is_block, mut was_empty) = (false, true);
    for line in after.lines() {
        let belongs = line.starts_with(' ') || line.ends_with(':') || line.is_empty();
        if is_block && !belongs {
            page.push_str("```\n");
            is_block = false;
        }
        if !is_block && !line.is_empty() && belongs {
            page.push_str("\n```text\n");
            is_block = true;
        } else if !belongs {
            page.push('\n');
        }
        if is_block && was_empty && !line.is_empty() && !page.ends_with("```text\n") {
            page.push('\n');
        }
        was_empty = line.is_empty();
        if !was_empty {
            let _ = writeln!(page, "{}", if is_block { line.to_owned() } else { escaped(line) });
        }
    }
    if is_block {
        page.push_str("```\n");
    }
}

/// As Markdown, in a table too.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*")
}

/// Of every command, and said once.
fn is_common(arg: &Arg) -> bool {
    arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str())
}

fn row(page: &mut String, arg: &Arg) {
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    let names =
        [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let shown = match (names.is_empty(), values.is_empty()) {
        (true, _) => format!("`{values}`"),
        (false, true) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        (false, false) => {
            let (last, rest) = names.split_last().expect("there is one");
            let rest: String = rest.iter().map(|name| format!("`{name}`, ")).collect();
            format!("{rest}`{last} {values}`")
        }
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut about = escaped(&help).replace('\n', " ").trim_end_matches('.').to_owned() + ".";
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set() && arg.get_action().takes_values());
    let values: Vec<String> = values
        .map(|value| {
            let help =
                value.get_help().map(|help| format!(" ({})", lower(&help.to_string()))).unwrap_or_default();
            format!("`{}`{help}", value.get_name())
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(about, " One of {}.", values.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|it| format!("`{}`", it.display())).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(about, " Default {}.", defaults.join(", "));
    }
    let _ = writeln!(page, "| {shown} | {about} |");
}

fn lower(text: &str) -> String {
    let mut rest = text.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    first + rest.as_str()
}

#[test]
fn the_files_are_what_the_code_says() {
    let mut cli = Cli::command();
    cli.build();
    let mut page = BEGIN.to_owned();
    command(&mut page, &cli, "", 2);
    compare("reference/cli.md", &page);
}
