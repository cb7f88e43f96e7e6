//! What can be typed, and what it means.

use super::*;
use crate::config::PermissionMode;
use clap::CommandFactory;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::parse_args(std::iter::once("acpd").chain(line.split_whitespace()))
}

fn run(line: &str) -> Run {
    match parse(line).expect(line).command {
        Command::Run(run) => *run,
        other => panic!("{other:?}"),
    }
}

// contract 6: the table of commands is consistent
#[test]
fn the_definition_holds() {
    Cli::command().debug_assert();
}

// contract 6: acpd run and its flags, before and after the prompt
#[test]
fn run_takes_its_flags_anywhere() {
    let run = run("run --agent opencode fix it --cwd /src --permission-mode acceptEdits --json --embedded");
    assert_eq!(run.choice.agent.as_deref(), Some("opencode"));
    assert_eq!(run.choice.cwd, Some("/src".into()));
    assert_eq!(run.choice.permission_mode, Some(PermissionMode::AcceptEdits));
    assert!(run.json && run.location.embedded);
    assert_eq!(run.prompt(true).unwrap(), Prompt::Words("fix it".into()));
}

// contract 6: PROMPT, from words or stdin; 2 for usage
#[test]
fn a_prompt_comes_from_words_or_stdin() {
    assert_eq!(run("run -").prompt(true).unwrap(), Prompt::Stdin);
    assert_eq!(run("run").prompt(false).unwrap(), Prompt::Stdin);
    assert_eq!(run("run -- --help me").prompt(true).unwrap(), Prompt::Words("--help me".into()));
    let missing = run("run").prompt(true).unwrap_err();
    assert_eq!(missing.exit_code(), 2);
    let text = missing.to_string();
    assert!(text.contains("there is no prompt") && text.contains("Usage: acpd run"), "{text}");
    let mut empty = run("run x");
    empty.prompt = vec![" ".into()];
    assert_eq!(empty.prompt(false).unwrap_err().exit_code(), 2);
}

// contract 7.1: standard input that is not a terminal is appended to the words; - alone reads all of it
#[test]
fn words_do_not_hide_stdin() {
    assert_eq!(run("run fix it").prompt(false).unwrap(), Prompt::WordsAndStdin("fix it".into()));
    assert_eq!(run("run - it").prompt(false).unwrap(), Prompt::WordsAndStdin("- it".into()));
    assert_eq!(run("run -").prompt(false).unwrap(), Prompt::Stdin);
}

// contract 6: acpd stdio --agent NAME, acpd agents list|check NAME
#[test]
fn the_other_commands_parse() {
    let Command::Stdio(stdio) = parse("stdio --agent example --state-dir /s --config /c").unwrap().command
    else {
        panic!("stdio")
    };
    assert_eq!((stdio.agent.as_str(), stdio.location.state_dir), ("example", Some("/s".into())));
    assert_eq!(
        parse("agents list --json").unwrap().command,
        Command::Agents(Agents::List { json: true, which: Which::default() })
    );
    assert_eq!(
        parse("agents check x --config f --state-dir s").unwrap().command,
        Command::Agents(Agents::Check {
            name: "x".into(),
            json: false,
            config: Some("f".into()),
            state_dir: Some("s".into())
        })
    );
}

// contract 6: acpd sessions list|show ID|events ID|close ID|terminate ID|delete ID, --connect and --json everywhere
#[test]
fn the_commands_for_a_daemon_parse() {
    let which = |line: &str| match parse(line).expect(line).command {
        Command::Sessions(Sessions::List(list)) => (list.which, list.json),
        Command::Sessions(Sessions::Events(events)) => (events.one.which, events.one.json),
        Command::Sessions(Sessions::Show(one)) => (one.which, one.json),
        Command::Sessions(Sessions::Prompt(prompt)) => (prompt.one.which, prompt.one.json),
        Command::Sessions(Sessions::Answer(answer)) => (answer.one.which, answer.one.json),
        Command::Sessions(Sessions::Fork(fork)) => (fork.one.which, fork.one.json),
        Command::Sessions(Sessions::Import(import)) => (import.which, import.json),
        Command::Sessions(
            Sessions::Cancel(several)
            | Sessions::Close(several)
            | Sessions::Terminate(several)
            | Sessions::Delete(several),
        ) => (several.which, several.json),
        Command::Top(top) => (top.which, top.json),
        Command::Agents(Agents::List { json, which }) => (which, json),
        other => panic!("{other:?}"),
    };
    for command in [
        "sessions list",
        "sessions show x",
        "sessions events x",
        "sessions prompt x hello",
        "sessions answer x",
        "sessions fork x --cwd d",
        "sessions import f",
        "sessions cancel x y",
        "sessions close x y",
        "sessions terminate x",
        "sessions delete x",
        "top",
        "agents list",
    ] {
        let line = format!("{command} --connect http://h:1 --token-file t --ca c --state-dir s --json");
        let (which, json) = which(&line);
        assert!(json && which.state_dir == Some("s".into()), "{line}");
        let connect = Connect {
            connect: Some("http://h:1".into()),
            token_file: Some("t".into()),
            ca: Some("c".into()),
        };
        assert_eq!(which.connect, connect, "{line}");
    }
    assert_eq!(run("run --connect unix:/s hi").location.connect.connect.as_deref(), Some("unix:/s"));
}

// contract 4: the example agent's own arguments reach it as they are
#[test]
fn the_example_agents_arguments_are_raw() {
    let Command::ExampleAgent { args } =
        parse("example-agent --without load,resume --help -x -- y").unwrap().command
    else {
        panic!("example-agent")
    };
    assert_eq!(args, ["--without", "load,resume", "--help", "-x", "--", "y"]);
    let Command::ExampleAgent { args } = parse("example-agent --help").unwrap().command else {
        panic!("example-agent")
    };
    assert_eq!(args, ["--help"]);
}

// contract 6: exit code 2 for usage, 0 for help and version; no command that does not exist
#[test]
fn usage_errors_exit_with_2() {
    for line in [
        "",
        "serve --listen nowhere",
        "token new x",
        "sessions",
        "sessions show",
        "sessions events x --after -1",
        "sessions list --ended --live",
        "sessions list --limit 0",
        "run --embedded --connect http://h hi",
        "run --agent ../x hi",
        "stdio",
        "agents",
        "run --permission-mode no x",
    ] {
        assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
    }
    for line in ["--help", "--version", "run --help"] {
        assert_eq!(parse(line).expect_err(line).exit_code(), 0, "{line}");
    }
}

// contract 6: logs go to stderr, more with -v, wherever it stands
#[test]
fn verbosity_and_colour_are_global() {
    assert_eq!(parse("agents list").unwrap().log_level(), LevelFilter::WARN);
    let cli = parse("agents list -vv --color never").unwrap();
    assert_eq!((cli.log_level(), cli.color), (LevelFilter::DEBUG, ColorChoice::Never));
    let levels = ["serve", "serve -v", "serve -vv", "run -v x"].map(|line| parse(line).unwrap().log_level());
    assert_eq!(levels, [LevelFilter::INFO, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::INFO]);
}
