//! Which answers mean what.

use super::*;
use crate::containment::Containment;
use crate::keeper::protocol::{Consumed, Running};

fn attached(version: u32) -> io::Result<Option<FromKeeper>> {
    let head = protocol::Attached {
        version,
        running: Running { pid: 1, containment: Containment::Subreaper },
        lease: 1,
        detached_ms: 0,
        graces_ms: [0; 2],
        committed: 0,
        consumed: 0,
        marks: BTreeMap::new(),
        undrained: 0,
        stdin_closed: false,
        exited: None,
        is_pty: false,
    };
    Ok(Some(FromKeeper::Attached(Box::new(head), Bytes::new())))
}

fn refused(why: Why) -> io::Result<Option<FromKeeper>> {
    Ok(Some(FromKeeper::Refused(Refused { why })))
}

// contract 7.2: which answer of a keeper means that it cannot be spoken with, so that its program has to end
#[test]
fn an_answer_says_whether_a_keeper_can_be_spoken_with() {
    let failed = |kind: io::ErrorKind| Err(kind.into());
    for (name, told, judged) in [
        ("ours", attached(VERSIONS[1]), "attached"),
        ("an older one, which does not look at ours", attached(VERSIONS[0] - 1), "version"),
        ("a newer one, which does not look at ours", attached(VERSIONS[1] + 1), "version"),
        ("none in common", refused(Why::Version), "version"),
        ("it does not understand what it is asked", refused(Why::Misbehaved), "version"),
        ("what is no answer", Ok(Some(FromKeeper::Consumed(Consumed { position: 0 }))), "version"),
        ("what cannot be read", failed(io::ErrorKind::InvalidData), "version"),
        ("not the right key", refused(Why::Key), "refused"),
        ("a newer controller", refused(Why::Superseded), "refused"),
        ("a reason of a later version", refused(Why::Other), "refused"),
        ("nothing", Ok(None), "gone"),
        ("it ends meanwhile", failed(io::ErrorKind::UnexpectedEof), "gone"),
        ("the system fails", failed(io::ErrorKind::OutOfMemory), "io"),
    ] {
        let is = match judge(told) {
            Ok(_) => "attached",
            Err(AttachError::Version) => "version",
            Err(AttachError::Refused) => "refused",
            Err(AttachError::Gone) => "gone",
            Err(AttachError::Dropped | AttachError::Io(_)) => "io",
        };
        assert_eq!(is, judged, "{name}");
    }
}
