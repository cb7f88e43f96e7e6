//! Many machines, one list of sessions: what the nodes of a fleet tell one another, over an engine that is not acpd's own.
//!
//! The engine is directory and archive, never the truth: the truth of a session is the log of its node. Everything that a
//! node decides from it is a pure function here ([`Directory`], [`Lease`]); [`Engine`] is what it does, with an
//! implementation in memory. Not here: what a session is, and who may see it.

mod archive;
mod directory;
mod engine;
mod history;
mod lease;
mod member;
mod memory;
mod name;
mod placing;
mod published;
mod record;
mod told;

pub use acpd_record::Partition;
pub use archive::{Assembly, GoesOn, MOST_BYTES, Piece, Position, Run, goes_on};
pub use directory::{Directory, Reach};
pub use engine::{Change, Changes, Engine, EngineError, Expected, Pending, Revision, epoch_of};
pub use history::History;
pub use lease::{Lease, Standing};
pub use member::{Claim, Claimed, Fence, Local, Member, NotRemoved, Owned, Removed, Sight};
pub use memory::Memory;
pub use name::{NodeName, NodeNameError};
pub use placing::{Refused, Wanted};
pub use published::Row;
pub use record::{Creator, Epoch, NodeId, NodeRecord, SessionRecord};
pub use told::{Told, ToldMetadata};
