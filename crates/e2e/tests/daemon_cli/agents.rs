//! `acpd agents list` with and without a daemon.

use crate::cli::{done, json, run};
use acpd_e2e::Scratch;
use serde_json::Value;

// contract 6: how the agents of a daemon are doing: status, uptime, restarts, last error
#[test]
fn a_daemons_agents_are_listed_with_their_health() {
    let scratch = Scratch::new().agent("absent", "/no/such/program", &[]);
    scratch.config_file();
    let here = json(&scratch, &["agents", "list"]);
    assert!(here["agents"][0]["command"].is_string(), "{here}");
    let mut daemon = scratch.serve();
    let url = daemon.url();
    run(&scratch, &["run", "--agent", "absent", "hello"]);
    let (client, _) = crate::cli::front_end(&scratch);
    for connect in [&[][..], &["--connect", &url]] {
        let list = json(&scratch, &[&["agents", "list"], connect].concat());
        let own = |agent: &&Value| agent["origin"] != "found";
        assert_eq!(list["agents"].as_array().map(|all| all.iter().filter(own).count()), Some(2), "{list}");
        let table = done(&scratch, &[&["agents", "list"], connect].concat());
        let line =
            |name: &str| table.lines().find(|line| line.starts_with(name)).expect("it is listed").to_owned();
        assert!(line("example").contains("(default)") && line("example").contains("running"), "{table}");
        assert!(line("absent").contains("error") && line("absent").contains("/no/such/program"), "{table}");
    }
    crate::cli::leave(client);
    daemon.stop();
}
