//! `[client]` and `ACPD_CONNECT`: which daemon commands talk to without a flag (contract 7.2).

use acpd_e2e::{Daemon, Exit, Scratch, acpd};
use std::path::Path;

/// What opens the door of [`elsewhere`], and no secret.
const TOKEN: &str = "token-of-the-other";

/// A daemon in another world, which only this token opens.
fn elsewhere() -> (Scratch, Daemon) {
    elsewhere_as("admin\"")
}

/// The same with a token of this scope, and what else is in its entry.
fn elsewhere_as(scope: &str) -> (Scratch, Daemon) {
    // The SHA-256 of the token.
    let made = Scratch::new();
    let config = made.path("config.toml");
    std::fs::write(&config, "").expect("the scratch directory is writable");
    let hash = {
        use sha2::{Digest, Sha256};
        Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let scratch = made.config(&format!("[tokens.all]\nhash = \"sha256:{hash}\"\nscope = \"{scope}"));
    let daemon = scratch.serve();
    (scratch, daemon)
}

/// Runs with a configuration file alone, and with variables.
fn run(
    scratch: &Scratch,
    config: &Path,
    variables: &[(&str, &str)],
    words: &[&str],
) -> (Exit, String, String) {
    let mut command = scratch.command(acpd());
    command.args(words).env("ACPD_CONFIG", config).envs(variables.iter().copied());
    scratch.start_command(command).end()
}

// contract 7.2: connect and token_file in [client] are what --connect and --token-file are, for every command; flags and
// variables go over them, a state directory and --embedded stay here
#[test]
fn commands_use_the_daemon_that_the_file_names() {
    let (there, mut daemon) = elsewhere();
    let scratch = Scratch::new();
    let (config, token) = (scratch.path("client.toml"), scratch.path("token"));
    std::fs::write(&token, TOKEN).expect("the scratch directory is writable");
    let url = daemon.url();
    std::fs::write(&config, format!("[client]\nconnect = {url:?}\ntoken_file = \"token\"\n"))
        .expect("writable");
    for words in
        [&["run", "hello"][..], &["sessions", "list"], &["agents", "list"], &["status"], &["top", "--once"]]
    {
        let (exit, out, err) = run(&scratch, &config, &[], words);
        assert_eq!(exit, Exit::Code(0), "{words:?}: {err}");
        assert!(!out.is_empty() && !out.contains(TOKEN) && !err.contains(TOKEN), "{words:?}: {out}{err}");
    }
    let listed = crate::cli::ids(&there, &[]);
    assert_eq!(listed.len(), 1, "the session is in the daemon that the file names");
    // Here, in a process of its own, whatever names a daemon.
    let connect = ("ACPD_CONNECT", &*url);
    let (exit, out, err) = run(&scratch, &config, &[connect], &["run", "--embedded", "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello\n"), "{err}");
    let state = scratch.state();
    let state = state.to_str().expect("text");
    let (exit, _, err) = run(&scratch, &config, &[connect], &["sessions", "show", "x", "--state-dir", state]);
    assert!(exit == Exit::Code(4) && err.contains("no session has the id"), "{err}");
    assert_eq!(crate::cli::ids(&there, &[]), listed);
    // The variable goes over the file, and the token of the file stays at home.
    let (exit, _, err) = run(&scratch, &config, &[connect], &["sessions", "list"]);
    assert!(exit == Exit::Code(5) && err.contains("ACPD_TOKEN"), "{err}");
    let variables = [connect, ("ACPD_TOKEN", TOKEN)];
    let (exit, out, err) =
        run(&scratch, Path::new("/no/such/file"), &variables, &["sessions", "list", "--json"]);
    assert!(exit == Exit::Code(0) && out.contains(&listed[0]), "{err}");
    daemon.stop();
}

// contract 7.1, contract 7.2: 5 where a token's limits refuse, as where its scope does
#[test]
fn what_a_token_may_not_is_refused() {
    let scratch = Scratch::new();
    for entry in ["observe\"", "control\"\nagents = [\"other\"]"] {
        let (_there, mut daemon) = elsewhere_as(entry);
        let url = daemon.url();
        let variables = [("ACPD_CONNECT", &*url), ("ACPD_TOKEN", TOKEN)];
        for words in [&["run", "hello"][..], &["run", "--json", "hello"]] {
            let (exit, _, err) = run(&scratch, Path::new("/no/such/file"), &variables, words);
            assert_eq!(exit, Exit::Code(5), "{entry} {words:?}: {err}");
        }
        daemon.stop();
    }
}

// contract 7.2: what is wrong is told with the setting it came from
#[test]
fn errors_name_the_setting() {
    let scratch = Scratch::new();
    let config = scratch.path("client.toml");
    let named = format!("connect in [client] of {}", config.display());
    for (text, variable, code, says) in [
        ("[client]\nconnect = \"unix:/no/such/socket\"\n", None, 4, named.as_str()),
        ("[client]\nconnect = \"h:1\"\n", None, 2, "client.toml:2:11: \"connect\" in [client]"),
        ("", Some("unix:/no/such/socket"), 4, "(ACPD_CONNECT)"),
        ("", Some("h:1"), 2, "ACPD_CONNECT: this is no URL"),
        (
            "[client]\nconnect = \"http://127.0.0.1:1\"\ntoken_file = \"no-such-token\"\n",
            None,
            2,
            "no-such-token (token_file in [client])",
        ),
    ] {
        std::fs::write(&config, text).expect("the scratch directory is writable");
        let variables: Vec<(&str, &str)> = variable.map(|url| ("ACPD_CONNECT", url)).into_iter().collect();
        for words in [&["sessions", "list"][..], &["run", "hello"]] {
            let (exit, out, err) = run(&scratch, &config, &variables, words);
            assert!(
                exit == Exit::Code(code) && out.is_empty() && err.contains(says),
                "{words:?} {text}: {err}"
            );
        }
    }
}
