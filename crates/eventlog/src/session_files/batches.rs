//! The last batches of a session as they are stored, with the hosts that wrote them: for what was to be done behind each append
//! and was not, because the host died.

use super::last_segment::facts_in;
use super::layout::Part;
use super::session_dir::{SessionDir, SessionFileError};
use crate::segment::{SegmentHeader, StoredBatch, scan};
use std::fs::File;
use std::io::Read as _;

/// An open segment, and where the one behind it says that it ends.
type Segment = (File, SegmentHeader, Option<u64>);

impl SessionDir {
    /// Hands out, in order, each batch with an event behind `after`, and the host that wrote it. Of what is damaged, and of what
    /// is sealed, none. A segment is in memory at once: 64 MiB, and what its last batch has beyond that.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn visit_batches(
        &self,
        after: u64,
        mut visit: impl FnMut(&str, &StoredBatch<'_>),
    ) -> Result<(), SessionFileError> {
        let segments = loop {
            match self.segments_behind(after) {
                // It was sealed meanwhile.
                Err(error) if error.is_missing() => {}
                segments => break segments?,
            }
        };
        for (file, header, cut) in segments.into_iter().rev() {
            let mut bytes = Vec::new();
            file.take(cut.unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
            let mut host = String::new();
            scan(&bytes, &header.nonce, header.first_seq, |_, batch| {
                if let Some(facts) = facts_in(&batch) {
                    host = facts.host;
                }
                if batch.head.events > 0 && batch.head.last_seq() > after {
                    visit(&host, &batch);
                }
            });
        }
        Ok(())
    }

    /// The segments that have the events behind `after`, or would have them, the last one first.
    fn segments_behind(&self, after: u64) -> Result<Vec<Segment>, SessionFileError> {
        let (mut segments, mut cut) = (Vec::new(), None);
        for part in self.parts()?.into_iter().rev() {
            if matches!(part, Part::Seal(..)) {
                break;
            }
            let (file, header) = self.open_segment(part)?;
            segments.push((file, header, cut));
            if header.first_seq <= after + 1 {
                break;
            }
            cut = Some(header.cut);
        }
        Ok(segments)
    }
}
