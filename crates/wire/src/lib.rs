//! JSON-RPC 2.0 framing for acpd: bounded lines, borrowed envelopes over raw bytes, request tables.
//!
//! Bytes go into a [`LineBuffer`], lines come out. A [`scan`](scan()) finds in one pass over a line the members by which it
//! is routed, and a [`Message`] is a view of it that borrows from the line. Answers are composed from raw parts by the
//! writers or made out of the received line by [`splice`]. [`Outgoing`] and [`Incoming`] keep the open requests of one hop.
//!
//! Invariants: nothing is lost or altered (payloads are never re-encoded), memory is bounded by the line limit, and
//! no input makes this crate panic or recurse.
//!
//! What it is not: it does no IO, knows no clock and no runtime, and gives no meaning to any method. Of ACP it has the names
//! of a few members, and of the kinds of updates.

pub mod codes;
mod envelope;
mod id;
mod line;
mod malformed;
mod nested;
mod raw;
mod scan;
mod splice;
mod table;
mod write;

pub use envelope::Message;
pub use id::{OwnedId, RawId};
pub use line::{DEFAULT_LINE_LIMIT, LineBuffer, LineTooLong};
pub use malformed::Malformed;
pub use nested::{put_member, take_member};
pub use raw::{member, repair_halves, repair_utf8, span_of, without_halves};
pub use scan::{Member, Scan, Skim, Skimmer, UpdateKind, read, readable, scan, value};
pub use splice::splice;
pub use table::{DuplicateId, Incoming, Outgoing};
pub use write::{write_error, write_error_raw, write_notification, write_request, write_result};
