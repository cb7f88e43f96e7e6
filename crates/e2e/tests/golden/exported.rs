//! What each version recorded, as files: exported, imported by a daemon that has nothing, and exported again.

use crate::archive::unpack;
use crate::show_rest::ids;
use acpd_e2e::{Daemon, Http, Scratch};
use std::path::Path;

fn exported(daemon: &Daemon, id: &str) -> String {
    let answer = Http::on(daemon.connect()).request("GET", &format!("/v1/sessions/{id}/export"), &[], "");
    assert_eq!(answer.status, 200, "{id}");
    String::from_utf8(answer.body).expect("it is text")
}

/// Every session of the fixture in this archive comes back as it went, byte for byte.
pub(crate) fn come_back(fixture: &Path) {
    let (from, to) = (Scratch::new(), Scratch::new());
    unpack(fixture, &from.path(""));
    let (mut source, mut target) = (from.serve(), to.serve());
    let ids = ids(&source);
    assert!(!ids.is_empty(), "there is something to export");
    for id in &ids {
        let export = exported(&source, id);
        let answer = Http::on(target.connect()).request(
            "POST",
            "/v1/import",
            &[("Content-Type", "application/x-ndjson")],
            &export,
        );
        assert_eq!(answer.status, 201, "{id}: {}", String::from_utf8_lossy(&answer.body));
        let again = exported(&target, id);
        let differs = export.lines().zip(again.lines()).find(|(before, after)| before != after);
        assert!(export == again, "{id}: {differs:?}");
    }
    assert_eq!(crate::show_rest::ids(&target), ids);
    source.stop();
    target.stop();
}
