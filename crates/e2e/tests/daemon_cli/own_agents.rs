//! What an agent starts, and the socket of the daemon that started the agent.

use crate::cli::{args, done, front_end, leave, run};
use acpd_e2e::{Exit, Scratch, acpd};
use std::fs::read_to_string;

/// The command that lists the sessions of a daemon, for a shell.
fn list(scratch: &Scratch, state: &str) -> String {
    let path =
        |path: std::path::PathBuf| path.into_os_string().into_string().expect("scratch paths are text");
    let (state, config) = (path(scratch.path(state)), path(scratch.path("config.toml")));
    format!("{} sessions list --state-dir {state} --config {config}", path(acpd()))
}

/// Adds an agent that runs a script in the scratch directory before it is the example agent.
fn probe(scratch: Scratch, name: &str, script: &str, keys: &str) -> Scratch {
    let script = format!(
        "( cd '{}'\n{script}\n) >&2\nexec {} example-agent",
        scratch.path("").display(),
        acpd().display()
    );
    scratch.agent(name, "sh", &["-c".to_owned(), script]).config(keys)
}

// contract 7.2: nothing that an agent starts may use the daemon's socket, in a session of its own and with another
// environment either, unless the agent's entry lets it; the refusal names the key
#[test]
fn an_agent_may_not_control_its_daemon() {
    let scratch = Scratch::new();
    let list = list(&scratch, "state");
    let ways = format!(
        "{list} > $NAME.plain 2>&1; echo exit $? >> $NAME.plain
        env -i {list} > $NAME.cleared 2>&1; echo exit $? >> $NAME.cleared
        (setsid sh -c '{list} > $0.tmp 2>&1; echo exit $? >> $0.tmp; mv $0.tmp $0.forked' $NAME &)
        while [ ! -e $NAME.forked ]; do sleep 0.02; done"
    );
    let scratch = probe(scratch, "shut", &format!("NAME=shut\n{ways}"), "");
    let scratch = probe(scratch, "open", &format!("NAME=open\n{ways}"), "control_daemon = true");
    let mut daemon = scratch.serve();
    for name in ["shut", "open"] {
        done(&scratch, &["run", "--agent", name, "hello"]);
        for way in ["plain", "cleared", "forked"] {
            let said = read_to_string(scratch.path(&format!("{name}.{way}"))).expect("it was written");
            let refused = said.contains("control_daemon = true in [agents.shut]");
            let is_right = match name {
                "shut" => refused && said.ends_with("exit 5\n"),
                _ => said.contains("STATE") && said.ends_with("exit 0\n"),
            };
            assert!(is_right, "{name} {way}: {said}");
        }
    }
    // The commands that it runs in terminals are its own, too.
    for (name, code) in [("shut", 5), ("open", 0)] {
        let said = done(&scratch, &["run", "--agent", name, &format!("run {list}")]);
        assert!(said.contains(&format!("exit code {code}")), "{name}: {said}");
        assert_eq!(said.contains("[agents.shut]"), name == "shut", "{said}");
    }
    assert!(daemon.stop().contains("a client was refused at the Unix socket"));
}

// contract 7.2: what has lost its keeper is known by the mark in its environment, as long as the daemon lives
#[test]
fn a_mark_tells_as_much_as_a_keeper() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (client, session) = front_end(&scratch);
    let agent = scratch.mark().running("example-agent");
    let environment = std::fs::read(format!("/proc/{}/environ", agent[0].pid)).expect("it lives");
    let environment = String::from_utf8(environment).expect("text");
    let mark =
        environment.split('\0').find_map(|entry| entry.strip_prefix("ACPD_PROCESS=")).expect("it has a mark");
    let with = |mark: &str| {
        let mut command = scratch.command(acpd());
        command.args(args(&scratch, &["sessions", "list"]).iter().map(AsRef::<str>::as_ref));
        command.env("ACPD_PROCESS", mark);
        let (exit, _, err) = scratch.start_command(command).end();
        (exit, err)
    };
    for mark in [mark, &format!("another.1,{mark},third.2")] {
        let (exit, err) = with(mark);
        assert!(exit == Exit::Code(5) && err.contains("control_daemon = true in [agents.example]"), "{err}");
    }
    // Of another daemon's, below or above.
    assert_eq!(with("another.1"), (Exit::Code(0), String::new()));
    leave(client);
    done(&scratch, &["sessions", "close", &session]);
    scratch.mark().only_left(&[daemon.pid()]).expect("the agent is gone");
    let (exit, err) = with(mark);
    assert!(exit == Exit::Code(5) && err.contains("runs no more"), "{err}");
    daemon.stop();
}

// contract 7.2, SU-3: only the keepers of the daemon itself count: one that an agent starts serves what is beside it,
// refuses its own agents, and what they start is marked for both
#[test]
fn a_daemon_below_an_agent_works_on() {
    let scratch = Scratch::new();
    let (acpd, inner) = (acpd(), list(&scratch, "inner"));
    let at = format!("--state-dir '{}' --config config.toml", scratch.path("inner").display());
    let acpd = acpd.display();
    let script = format!(
        "{acpd} serve --listen 127.0.0.1:0 {at} > serve 2>&1 & inner=$!
        while ! grep -q listening serve; do sleep 0.02; done
        {inner} > listed 2>&1; echo exit $? >> listed
        {acpd} run {at} 'env ACPD_PROCESS' < /dev/null > marks 2>&1; echo exit $? >> marks
        {acpd} run {at} 'run {inner}' < /dev/null > refused 2>&1
        {} > outer 2>&1; echo exit $? >> outer
        kill $inner; wait $inner; echo exit $? > ended",
        list(&scratch, "state")
    );
    let scratch = probe(scratch, "nests", &script, "");
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "--agent", "nests", "hello"]);
    let said = |name: &str| read_to_string(scratch.path(name)).expect("it was written");
    assert!(said("listed").ends_with("exit 0\n"), "{}", said("listed"));
    assert!(said("marks").ends_with("exit 0\n"), "{}", said("marks"));
    let marks = said("marks");
    let marks: Vec<&str> =
        marks.split_whitespace().find(|word| word.contains(',')).expect("two").split(',').collect();
    let host = |mark: &str| mark.split_once('.').map(|(host, _)| host.to_owned());
    assert!(marks.len() == 2 && host(marks[0]) != host(marks[1]), "{marks:?}");
    assert!(said("refused").contains("control_daemon = true in [agents.example]"), "{}", said("refused"));
    assert!(said("outer").contains("control_daemon = true in [agents.nests]"), "{}", said("outer"));
    assert_eq!(said("ended"), "exit 0\n");
    daemon.stop();
}

// SU-7: acpd's settings and secrets, and the mark of the keeper, do not reach agents and commands; the user's own does,
// and the mark of an outer daemon stays with the own one
#[test]
fn settings_of_acpd_do_not_reach_agents() {
    let scratch = Scratch::new();
    let mut command = scratch.command(acpd());
    for name in ["TOKEN", "CONFIG", "CONNECT", "KEEPER", "LOG", "STORAGE_PATH", "SERVER_LISTEN"] {
        let value = match name {
            "LOG" => "warn".to_owned(),
            "SERVER_LISTEN" => "127.0.0.1:1".to_owned(),
            _ => scratch.path("nothing").display().to_string(),
        };
        command.env(format!("ACPD_{name}"), value);
    }
    command.env("ACPD_PROCESS", "outer.7").env("ACPD", "http://127.0.0.1:2273");
    let mut daemon = scratch.serve_by(command, "127.0.0.1:0");
    for prompt in ["run env", "run sh -c 'tr \"\\0\" \"\\n\" < /proc/$PPID/environ'"] {
        // The second is that of the keeper of a command.
        let (exit, said, err) = run(&scratch, &["run", prompt]);
        assert_eq!(exit, Exit::Code(0), "{err}");
        let own: Vec<&str> = said.lines().map(str::trim).filter(|line| line.starts_with("ACPD_")).collect();
        assert_eq!(own.len(), 1, "{prompt}: {said}");
        if prompt == "run env" {
            assert!(own[0].starts_with("ACPD_PROCESS=") && own[0].ends_with(",outer.7"), "{own:?}");
            assert!(said.contains("ACPD=http://127.0.0.1:2273"), "it is the user's: {said}");
        } else {
            assert!(own[0].starts_with("ACPD_KEEPER="), "{own:?}");
        }
    }
    let (client, _) = front_end(&scratch);
    let agent = scratch.mark().running("example-agent");
    let environment = std::fs::read(format!("/proc/{}/environ", agent[0].pid)).expect("it lives");
    let environment = String::from_utf8(environment).expect("text");
    let own: Vec<&str> = environment.split('\0').filter(|entry| entry.starts_with("ACPD_")).collect();
    assert!(own.len() == 1 && own[0].ends_with(",outer.7"), "{own:?}");
    leave(client);
    daemon.stop();
}
