//! A session for tests, beside a vector of its events.

use super::{
    Beginning, Claim, Claimed, Facts, Read, SessionDir, SessionDirectory, SessionFileError, SessionReader,
};
use crate::batch::Batch;
use crate::block::Block;
use crate::segment::SegmentFlags;
use std::path::Path;

pub(super) fn facts(host: &str) -> Facts {
    Facts { id: "a".into(), host: host.into(), ..Facts::default() }
}

pub(super) fn batch(sizes: &[usize], model: &mut Vec<Vec<u8>>) -> Batch {
    let mut batch = Batch::new();
    for size in sizes {
        let mut payload = vec![b'x'; *size];
        payload.extend((model.len() as u64).to_le_bytes());
        batch.push(1, 0, &payload);
        model.push(payload);
    }
    batch
}

pub(super) fn begin(state: &Path, model: &mut Vec<Vec<u8>>) -> (SessionDirectory, Claimed) {
    let directory = SessionDirectory::open(state, "host").expect("it is made");
    let new = Beginning { facts: facts("host"), batch: batch(&[3], model), ..Beginning::default() };
    let claimed = directory.create(new).expect("it is written").expect("there is none");
    (directory, claimed)
}

pub(super) fn session(directory: &SessionDirectory) -> SessionDir {
    directory.find("a").expect("it opens").expect("it is there")
}

pub(super) fn claim(directory: &SessionDirectory, goes_on: bool, batch: Batch) -> Claimed {
    let session = session(directory);
    let last = session.last().expect("it is read");
    let claim = Claim { flags: SegmentFlags::default(), facts: &facts("next"), goes_on, batch };
    session.claim(&last, claim).expect("it is written").expect("nobody else is here")
}

/// All from `after` on, in pieces.
pub(super) fn read(
    directory: &SessionDirectory,
    after: u64,
    upto: u64,
) -> Result<Vec<Vec<u8>>, SessionFileError> {
    let mut reader = SessionReader::new(session(directory), after);
    let mut found = Vec::new();
    while let Read::Blocks(blocks) = reader.read(upto)? {
        for event in blocks.iter().flat_map(Block::events) {
            assert_eq!(event.seq, after + found.len() as u64 + 1);
            found.push(event.payload.to_vec());
        }
    }
    Ok(found)
}
