//! Sessions as files: where they are, who may write them, and how.
//!
//! A session is a directory of segments (`segment.rs`), each of one owner. The owner of the last one appends to it with one write
//! and asks nobody; everything else is a claim of the next segment. Not here: which host is dead, and what a list of sessions is
//! read from.

mod append;
mod aside;
mod batches;
mod catch_up;
mod claim;
mod claims_file;
mod directory;
mod examination;
mod facts;
pub(crate) mod fail_point;
#[cfg(test)]
mod fixture;
mod from_end;
mod heads;
#[cfg(test)]
pub(crate) mod held_file;
mod last_segment;
pub mod layout;
mod reader;
mod renaming;
mod row;
mod sealed_copy;
mod sealed_file;
mod sealing;
mod session_dir;
mod storage;

pub(crate) use append::NextBatch;
pub use append::{FramedAppend, SEGMENT_BYTES, SegmentWriter, Standing};
pub use aside::Aside;
pub use catch_up::{CatchUp, CatchUpPiece, FoundSession, IndexedSession};
pub(crate) use claim::new_nonce;
pub use claim::{Claim, Claimed};
pub(crate) use claims_file::CLAIMS_HEAD;
pub use claims_file::{Claims, ClaimsFile};
pub(crate) use directory::make_directory;
pub use directory::{Beginning, SessionDirectory};
pub use examination::Examination;
pub use facts::Facts;
pub(crate) use facts::NO_HOST;
#[cfg(test)]
pub(crate) use fail_point::{FailPoint, failing_at};
pub use heads::{HeadReader, Heads};
pub use last_segment::LastSegment;
pub use reader::{Read, SessionReader};
pub use renaming::Renaming;
pub(crate) use sealed_copy::SealedCopy;
pub use sealing::{SMALL_SEGMENT, SealControl, Sealing};
pub use session_dir::{SessionDir, SessionFileError};
pub use storage::StoredFile;
pub(crate) use storage::write_all;
