//! What `acpd run` is given before its turn (contract 6, contract 7.1): words, standard input, a directory, and a Ctrl-C.

use acpd_e2e::{Exit, Gate, Scratch, Started, acpd, taking_shell_agent};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// `acpd run`, hosting by itself.
fn run(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = scratch.command(acpd());
    command.arg("run").arg("--state-dir").arg(scratch.state()).arg("--config").arg(scratch.config_file());
    command.args(args);
    command
}

/// `acpd run` with what a line of shell writes on its standard input; both its outputs are one.
fn piped(scratch: &Scratch, input: &str, args: &[&str]) -> Started {
    let run = run(scratch, args);
    let mut shell = scratch.command("sh");
    shell.arg("-c").arg(format!("{{ {input}; }} | \"$0\" \"$@\" 2>&1")).arg(run.get_program());
    shell.args(run.get_args());
    scratch.start_command(shell)
}

/// The words of `acpd run` once it waits for its standard input for long, as it may on a machine that is busy.
const NOTICE: &str = "reading standard input; </dev/null to skip";

/// Its first line but for that.
fn first_line(running: &mut Started) -> Option<String> {
    running.next_line().filter(|line| line != NOTICE).or_else(|| running.next_line())
}

// contract 6, SU-1: Ctrl-C while an agent starts, or creates the session, ends `acpd run` at once, whatever the agent
// does and however long it may take, and leaves no process
#[test]
fn an_interrupt_while_an_agent_starts_is_heard() {
    let scratch = Scratch::with_default_graces()
        .timeout("initialize", "never")
        .timeout("stdin_grace", "1h")
        .timeout("term_grace", "1h");
    let gate = Gate::new(scratch.path("gate"));
    let deaf = format!("trap '' TERM INT; take; {}", gate.line());
    let introduced = format!("take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'; {deaf}");
    let scratch = scratch
        .shell("starts", &taking_shell_agent(&deaf))
        .shell("creates", &taking_shell_agent(&introduced));
    for agent in ["starts", "creates"] {
        for signal in [Signal::INT, Signal::TERM] {
            let running = scratch.start_command(run(&scratch, &["--agent", agent, "hello"]));
            let _stays = gate.arrival();
            running.signal(signal);
            let (exit, out, err) = running.end();
            assert_eq!((exit, out.as_str()), (Exit::Code(130), ""), "{agent}: {err}");
            assert!(err.ends_with("error: interrupted\n"), "{agent}: {err}");
            assert_eq!(scratch.mark().processes().len(), 0, "{agent}");
        }
    }
}

// contract 6: 2 for usage: ACP cannot name a directory whose name is not UTF-8, and that is said
#[test]
fn a_directory_that_acp_cannot_name_is_refused() {
    let scratch = Scratch::new();
    let odd = scratch.work().join(OsStr::from_bytes(b"d\xff"));
    std::fs::create_dir(&odd).expect("a directory");
    let mut named = run(&scratch, &["cwd"]);
    named.arg("--cwd").arg(&odd);
    let mut inside = run(&scratch, &["cwd"]);
    inside.current_dir(&odd);
    for command in [named, inside] {
        let (exit, out, err) = scratch.start_command(command).end();
        assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{err}");
        assert!(err.starts_with("error: no session can work in ") && err.contains("not UTF-8"), "{err}");
    }
}

// contract 7.1: standard input that is not a terminal is appended to the words; - alone reads all of it
#[test]
fn standard_input_is_part_of_the_prompt() {
    let scratch = Scratch::new();
    for (input, words, answer) in
        [("echo more", "prefix", "prefix\nmore\n"), (":", "prefix", "prefix\n"), ("echo more", "-", "more\n")]
    {
        let mut running = piped(&scratch, &format!("{input} 2>&1"), &[words]);
        let mut shown = String::new();
        while let Some(line) = running.next_line() {
            shown.push_str(&line);
            shown.push('\n');
        }
        assert!(shown.contains(&format!("\n{answer}")) && shown.contains("end_turn"), "{words}: {shown}");
    }
    let mut silent = piped(&scratch, ":", &["-"]);
    assert_eq!(first_line(&mut silent).as_deref(), Some("error: the prompt on stdin is empty"));
}

// contract 7.1: at most 16 MiB are appended to the words
#[test]
fn what_is_appended_is_bounded() {
    let scratch = Scratch::new();
    let input = format!("head -c {} /dev/zero | tr '\\0' 'x'", (16 << 20) + 1);
    let mut running = piped(&scratch, &input, &["review"]);
    let line = first_line(&mut running).expect("an error");
    assert!(line.starts_with("error: standard input has more than 16 MiB"), "{line}");
    let mut running = piped(&scratch, "printf 'a\\377b'", &["review"]);
    assert_eq!(
        first_line(&mut running).as_deref(),
        Some("error: cannot read the prompt from stdin: it is not UTF-8")
    );
}

// contract 7.1: standard input that does not end is told, with the remedy
#[test]
fn waiting_for_standard_input_is_told() {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let mut running = piped(&scratch, &format!("{}; echo more", gate.line()), &["prefix"]);
    assert_eq!(running.next_line().as_deref(), Some(NOTICE));
    gate.let_one_through();
    let (_, rest, _) = running.end();
    assert!(rest.contains("prefix\nmore\n"), "{rest}");
}

// contract 7.1: files and images are embedded into the prompt, other directories named; where the agent takes no such thing,
// or there is none, it is wrong usage that names the flag, and no session is made
#[test]
fn files_images_and_directories_are_given() {
    let bare = "take; answer '{\"protocolVersion\":1,\"agentCapabilities\":{}}'; take";
    let scratch = Scratch::new().shell("bare", &taking_shell_agent(bare));
    let other = scratch.path("other");
    std::fs::create_dir(&other).expect("a directory");
    std::fs::write(scratch.work().join("notes.txt"), "hello\n").expect("it is writable");
    std::fs::write(scratch.work().join("shot.png"), b"\x89PNG\r\n\x1a\n...").expect("it is writable");
    let binary = scratch.path("b.bin");
    std::fs::write(&binary, b"\xff\0").expect("it is writable");
    let binary = binary.to_str().expect("text");
    let other = other.to_str().expect("text");
    let all = ["--file", "notes.txt", "--image", "shot.png", "--add-dir", other];
    let (exit, out, err) = scratch.start_command(run(&scratch, &[&all[..], &["params"]].concat())).end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(out.contains(&format!("\"additionalDirectories\":[\"{other}\"]")), "{out}");
    assert!(
        out.contains("[resource file:///") && out.contains("/notes.txt]") && out.contains("[image file:///"),
        "{out}"
    );
    for (flag, value, words) in [
        (
            "--file",
            binary,
            "the agent takes no files in a prompt, and this one is neither text nor in a directory",
        ),
        ("--image", "shot.png", "--image shot.png: the agent takes no images"),
        ("--add-dir", other, "the agent takes no other directories"),
        ("--image", "notes.txt", "--image notes.txt: not a PNG"),
        ("--file", "none.txt", "--file none.txt: No such file"),
        ("--add-dir", "/no/such/directory", "--add-dir /no/such/directory: No such file"),
    ] {
        let command = run(&scratch, &["--agent", "bare", flag, value, "hello"]);
        let (exit, out, err) = scratch.start_command(command).end();
        assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{err}");
        assert!(err.contains(words), "{flag} {value}: {err}");
    }
}
