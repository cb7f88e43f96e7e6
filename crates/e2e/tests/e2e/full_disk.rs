//! A full disk, played by a limit on the size of files.

use acpd_e2e::{Scratch, acpd, noise};
use serde_json::json;

// issue, deliver 4: a full disk ends the writing session with a clear reason, and not acpd
#[test]
fn a_full_disk_ends_the_session_that_writes() {
    // An agent that writes no files of its own: the limit is for acpd.
    let scratch = Scratch::new().example("stateless", &["--no-state"]);
    let mut limited = scratch.command("sh");
    // In units of 512 bytes, or of 1 KiB: less than one message of noise.
    let script = "ulimit -f 1024; exec \"$0\" stdio --agent stateless --state-dir \"$1\" --config \"$2\"";
    limited.args(["-c", script]).arg(acpd()).arg(scratch.state()).arg(scratch.config_file());
    let mut client = scratch.client(limited);
    client.tolerant();
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    // Each prompt is recorded, and the agent says it again.
    let answers = (1..40).map(|seed| {
        let asked = client.prompt(&session, &noise(seed));
        client.answer(&asked).json["error"].clone()
    });
    let error = answers.into_iter().find(|error| !error.is_null()).expect("it does not fit");
    let info = error["data"]["terminationInfo"].clone();
    assert_eq!((&info["reason"], &info["terminatedBy"]), (&json!("error"), &json!("daemon")), "{info}");
    assert!(info["message"].as_str().unwrap().contains("no room left for the event log"), "{info}");
    // Behind the answer (contract 7.3).
    assert!(client.ends().is_empty());
    client.until("the end", |message| message.method() == Some("_sandboxagent/session/ended"));
    client.is_alone();
    let again = client.prompt(&session, "hello");
    assert_eq!(client.error(&again)["code"], -32002);
    client.finish();

    // With room again, the record is there.
    let mut later = scratch.stdio("stateless");
    later.initialize();
    let asked = later.prompt(&session, "hello");
    let error = later.error(&asked);
    assert_eq!(error["data"]["terminationInfo"]["terminatedBy"], "daemon", "{error}");
    let session = later.new_session();
    assert_eq!(later.turn(&session, "hello"), "end_turn");
    later.finish();
}
