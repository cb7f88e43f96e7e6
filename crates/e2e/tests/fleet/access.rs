//! Who sees and does what through another node: no right is gained by a door.

use crate::nodes::{Fleet, ROOT, token};
use acpd_e2e::{Exit, Http};
use serde_json::{Value, json};

// design fleet, access: a token that may not see a session on its node cannot through any other
#[test]
fn no_right_is_gained_by_another_door() {
    let of_a = [token("ci", "ci-of-a", "control"), token("look", "look-of-a", "observe")].concat();
    let of_b = [token("ci", "ci-of-b", "control"), token("boss", "boss-of-b", "admin")].concat();
    let of_b = of_b + &token("shared", "look-of-a", "control");
    let fleet = Fleet::lasting(&[("a", &of_a), ("b", &of_b)], "0s");
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let created = a.ask_as("ci-of-a", "POST", "/v1/sessions", &a.wanted(&json!({})));
    assert_eq!(created.status, 201, "{created:?}");
    let session = crate::nodes::id(&created);
    let path = format!("/v1/sessions/{session}");
    b.sees(&session, "it is listed", |_| true);
    // Another secret of the same name, an admin of the other node, and one that sees only its own: it does not exist.
    for secret in ["ci-of-b", "boss-of-b", "look-of-a"] {
        assert_eq!(
            b.ask_as(secret, "GET", "/v1/sessions", &Value::Null).json()["sessions"],
            json!([]),
            "{secret}"
        );
        for (method, rest) in
            [("GET", ""), ("GET", "/events"), ("POST", "/close"), ("POST", "/terminate"), ("DELETE", "")]
        {
            let answer = b.ask_as(secret, method, &format!("{path}{rest}"), &Value::Null);
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (404, "session_not_found"),
                "{secret} {method} {rest}"
            );
        }
    }
    // Nor with the right of the door and the token of another: the door passes it on and adds nothing.
    let (door, there) = (format!("Bearer {ROOT}"), "Bearer look-of-a");
    let headers = [("Authorization", &*door), ("Acpd-Authorization", there)];
    let answer = Http::on(b.daemon.connect()).request("POST", &format!("{path}/close"), &headers, "");
    assert_eq!(answer.status, 404, "{answer:?}");
    assert_eq!(a.ask_as("ci-of-a", "GET", &path, &Value::Null).status, 200);
    assert_eq!(b.ask_as("nothing", "GET", &path, &Value::Null).status, 401);
    // An observer's door lets nothing through but looks.
    let watched = a.create(&json!({}));
    b.sees(&watched, "it is listed", |_| true);
    let headers = [("Authorization", "Bearer look-of-a")];
    assert_eq!(Http::on(a.daemon.connect()).request("POST", "/v1/nodes/b/drain", &headers, "").status, 403);
    assert_eq!(b.knows("b")["draining"], false);
}

// design fleet, access: callers at the Unix socket see rows; acting elsewhere needs ACPD_TOKEN
#[test]
fn the_owner_of_a_node_sees_rows_and_needs_a_token_elsewhere() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = a.create(&json!({}));
    b.sees(&session, "it is listed", |_| true);
    let config = b.scratch.config_file().display().to_string();
    let state = b.scratch.state().display().to_string();
    let run = |words: &[&str], token: Option<&str>| {
        let mut command = b.scratch.command(acpd_e2e::acpd());
        command.args(words).args(["--config", &config, "--state-dir", &state]);
        if let Some(token) = token {
            command.env("ACPD_TOKEN", token);
        }
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, table, _) = run(&["sessions", "list"], None);
    let heads: Vec<&str> = table.lines().next().expect("a head").split_whitespace().collect();
    assert_eq!((code, &heads[..3]), (Some(0), &["ID", "STATE", "NODE"][..]), "{table}");
    let (code, _, err) = run(&["sessions", "close", &session], None);
    assert_eq!(code, Some(5), "{err}");
    assert!(err.contains("node a") && err.contains("ACPD_TOKEN"), "{err}");
    assert_eq!(run(&["sessions", "close", &session], Some("unknown there")).0, Some(5));
    assert_eq!(run(&["sessions", "close", &session], Some(ROOT)).0, Some(0));
    a.sees(&session, "it has ended", |listed| listed["ended"] == true);
    let (code, table, err) = run(&["nodes", "list"], None);
    assert_eq!(code, Some(0), "{err}");
    assert!(table.contains("b (here)") && table.lines().count() == 3, "{table}");
    let alone = acpd_e2e::Scratch::new();
    let _daemon = alone.serve();
    let (exit, _, err) = alone.run(&["nodes", "list", "--state-dir", &alone.state().display().to_string()]);
    assert_eq!(exit, Exit::Code(1));
    assert!(err.contains("[fleet]"), "{err}");
}
