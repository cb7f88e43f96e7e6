//! What `acpd run` is given before its turn (contract 6, 7.1): words, standard input, a directory, and a Ctrl-C.

use acpd_e2e::{Exit, Gate, Scratch, acpd, taking_shell_agent};
use rustix::process::Signal;
use std::process::Command;

/// `acpd run`, hosting by itself.
fn run(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = scratch.command(acpd());
    command.arg("run").arg("--state-dir").arg(scratch.state()).arg("--config").arg(scratch.config_file());
    command.args(args);
    command
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
            assert_eq!((exit, out.as_str()), (Exit::Code(1), ""), "{agent}: {err}");
            assert!(err.ends_with("error: interrupted\n"), "{agent}: {err}");
            assert_eq!(scratch.mark().processes().len(), 0, "{agent}");
        }
    }
}
