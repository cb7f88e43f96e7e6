//! `acpd completions`: what each shell makes of it, and what it offers then.

use crate::cli::{ids, run};
use acpd_e2e::{Exit, Scratch, acpd, until};
use std::path::Path;
use std::process::{Command, Stdio};

/// A home in which one agent is configured, and shells find acpd.
fn home() -> Scratch {
    let scratch = Scratch::new().agent("nearby", "/no/such/program", &[]);
    let state = format!("[storage]\npath = {:?}", scratch.state());
    let scratch = scratch.config(&state);
    let config = scratch.path(".config/acpd");
    std::fs::create_dir_all(&config).expect("writable");
    std::fs::rename(scratch.config_file(), config.join("config.toml")).expect("writable");
    scratch
}

/// The script, in the file that the shell would look for in a directory of its own.
fn script(scratch: &Scratch, shell: &str, name: &str) -> std::path::PathBuf {
    let (exit, text, stderr) = scratch.run(&["completions", shell]);
    assert_eq!((exit, stderr.as_str()), (Exit::Code(0), ""), "{shell}");
    let place = scratch.path(shell);
    std::fs::create_dir_all(&place).expect("writable");
    std::fs::write(place.join(name), text).expect("writable");
    place.join(name)
}

/// What a shell prints, which has nothing to complain about.
fn said(scratch: &Scratch, shell: &[&str], words: &[&str]) -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = acpd().parent().map(Path::to_owned);
    let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&path))).expect("a PATH");
    let mut command: Command = scratch.command(shell[0]);
    command.args(&shell[1..]).args(words).env("PATH", path).env("TERM", "dumb").stdin(Stdio::null());
    let output = command.output().expect("the shell starts; cargo xtask test --install gets it");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{shell:?} {words:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

/// What has to be offered for a line, whose last word is the one that is completed, and what must not be.
const LINES: [(&[&str], &[&str], &[&str]); 8] = [
    (&["acpd", "ses"], &["sessions"], &["serve"]),
    (&["acpd", "sessions", ""], &["list", "show", "export"], &["run"]),
    (&["acpd", "run", "--permission-mode", ""], &["acceptEdits", "deny"], &[]),
    (&["acpd", "run", "--format", "j"], &["json"], &["text"]),
    (&["acpd", "run", "--agent", ""], &["example", "nearby"], &[]),
    (&["acpd", "agents", "check", "ne"], &["nearby"], &["example"]),
    (&["acpd", "agents", "add", ""], &["gemini"], &["nearby", "example"]),
    // The keeper is no command of a person's.
    (&["acpd", ""], &["run", "completions"], &["keeper"]),
];

fn judge(shell: &str, complete: impl Fn(&[&str]) -> Vec<String>) {
    for (line, offered, not_offered) in LINES {
        let words = complete(line);
        let has = |word: &&str| words.iter().any(|it| it.split(['\t', ':']).next() == Some(word));
        assert!(offered.iter().all(has), "{shell}, {line:?}: {words:?}");
        assert!(!not_offered.iter().any(has), "{shell}, {line:?}: {words:?}");
    }
}

// known agents: bash takes the script, and what it registered completes commands, values and names of agents
#[test]
fn bash_completes() {
    const COMPLETE: &str = r#"
        . "$1"; shift
        registered=($(complete -p acpd)); function=${registered[-2]}
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_KEY=9
        "$function" acpd "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let scratch = home();
    let file = script(&scratch, "bash", "acpd");
    let file = file.to_str().expect("UTF-8");
    assert!(said(&scratch, &["bash", "-n"], &[file]).is_empty());
    let bash = ["bash", "--norc", "--noprofile", "-c", COMPLETE, "bash", file];
    judge("bash", |line| said(&scratch, &bash, line));
    // Sessions are those of a daemon that runs.
    let sessions = || {
        let mut words = said(&scratch, &bash, &["acpd", "sessions", "show", ""]);
        words.retain(|word| !word.starts_with('-'));
        words
    };
    assert!(sessions().is_empty());
    let mut daemon = scratch.serve();
    let (exit, _, err) = run(&scratch, &["run", "hello"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    let id = ids(&scratch, &[]).remove(0);
    // Who types waits for a daemon for a moment only: a busy one may be asked again.
    let words = until("they are offered", || Some(sessions()).filter(|words| !words.is_empty()));
    assert!(matches!(&words[..], [end] if end.len() >= 6 && id.ends_with(end.trim_end())), "{id}: {words:?}");
    daemon.stop();
    // Bash makes three words of `--format=j`, and puts what is offered into the place of the last.
    for last in [&["=", "j"][..], &["="]] {
        let words = said(&scratch, &bash, &[&["acpd", "run", "--format"], last].concat());
        assert!(words.iter().any(|word| word == "json"), "{last:?}: {words:?}");
    }
}

// known agents: zsh loads the script as a function of its own completion, and the first word is completed already
#[test]
fn zsh_completes() {
    const COMPLETE: &str = r#"
        fpath=("$1" $fpath); shift
        autoload -Uz compinit && compinit -u -D
        # Takes the place of what shows the words, which only a terminal has.
        _describe() { local -a shown; shown=("${(@P)3}"); print -rl -- $shown }
        words=("$@") CURRENT=$#
        $_comps[acpd]"#;
    let scratch = home();
    let file = script(&scratch, "zsh", "_acpd");
    assert!(said(&scratch, &["zsh", "-f", "-n"], &[file.to_str().expect("UTF-8")]).is_empty());
    let place = file.parent().and_then(Path::to_str).expect("UTF-8");
    judge("zsh", |line| said(&scratch, &["zsh", "-f", "-c", COMPLETE, "zsh", place], line));
}

// known agents: fish takes the script, and completes with it by itself
#[test]
fn fish_completes() {
    let scratch = home();
    let file = script(&scratch, "fish", "acpd.fish");
    let file = file.to_str().expect("UTF-8");
    assert!(said(&scratch, &["fish", "--no-execute"], &[file]).is_empty());
    let line = "source $argv[1]; complete --do-complete (string join ' ' -- $argv[2..])";
    judge("fish", |words| said(&scratch, &["fish", "--no-config", "-c", line, file], words));
}

// contract 7.1: acpd completions SHELL; one that is not known is a usage error that names those that are
#[test]
fn other_shells_are_refused() {
    let scratch = home();
    let (exit, stdout, stderr) = scratch.run(&["completions", "tcsh"]);
    assert_eq!((exit, stdout.as_str()), (Exit::Code(2), ""));
    assert!(stderr.contains("bash, zsh, fish"), "{stderr}");
}
