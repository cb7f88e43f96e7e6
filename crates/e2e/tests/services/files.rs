//! Files that an agent reads and writes through acpd.

use crate::together::events;
use acpd_e2e::{Client, Scratch};
use serde_json::json;

fn said(client: &mut Client, session: &str, text: &str) -> String {
    let asked = client.prompt(session, text);
    client.result(&asked);
    client.text_since(&asked, session)
}

// contract 2.2, FS-1, FS-2, FS-3, FS-4
#[test]
fn an_agent_reads_and_writes_in_its_directories() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let file = scratch.work().join("deep/down/notes.txt");
    let path = file.display();
    assert_eq!(said(&mut client, &session, &format!("write {path} some words")), "wrote 10 bytes");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "some words");
    std::fs::write(&file, "one\r\ntwo\nthree").unwrap();
    assert_eq!(said(&mut client, &session, &format!("read {path}")), "one\r\ntwo\nthree");
    assert_eq!(said(&mut client, &session, &format!("read {path} 2 1")), "two\n");
    let missing = said(&mut client, &session, &format!("read {path}.not"));
    assert!(missing.contains("-32002"), "{missing}");
    for outside in ["/etc/passwd", &format!("{}/../config.toml", scratch.work().display()), "notes.txt"] {
        let refused = said(&mut client, &session, &format!("read {outside}"));
        assert!(refused.contains("-32602"), "{outside}: {refused}");
        assert!(said(&mut client, &session, &format!("write {outside} x")).contains("-32602"));
    }
    client.finish();
    // The content is in the file, not in the log.
    let requests: Vec<_> = events(&scratch, &session).into_iter().filter(|event| event.0 == 8).collect();
    let written = &requests[0].1["message"]["params"];
    assert_eq!((&written["contentBytes"], written.get("content")), (&json!(10), None));
    assert_eq!(requests[1].1["message"]["params"]["path"], json!(file));
}

// FS-1: unless it is configured otherwise
#[test]
fn confinement_can_be_switched_off() {
    let scratch = Scratch::new().config("[files]\nconfine = false");
    let (mut client, session) = scratch.session("example");
    let file = scratch.path("outside.txt");
    assert_eq!(said(&mut client, &session, &format!("write {} far", file.display())), "wrote 3 bytes");
    client.finish();
}

// contract 2.2: an agent that does not get along with files is not offered them
#[test]
fn files_can_be_kept_from_an_agent() {
    let scratch = Scratch::new().example("without", &[]).config("files = false\nterminals = false");
    let (mut client, session) = scratch.session("without");
    assert!(said(&mut client, &session, "read /etc/hostname").contains("-32601"));
    assert!(said(&mut client, &session, "run true").contains("-32601"));
    client.finish();
}
