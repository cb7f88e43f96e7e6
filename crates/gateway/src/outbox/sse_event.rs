//! One event of an event stream (Server-Sent Events), as all streams write it.

use bytes::{BufMut, BytesMut};

/// Writes an event: an id, without which a reader keeps the one before; a name; and data, which is JSON on one line. A
/// carriage return in it is white space, but the end of a line in a stream, so it becomes a space.
pub(crate) fn sse_event(
    out: &mut BytesMut,
    id: Option<std::fmt::Arguments<'_>>,
    name: Option<&str>,
    data: impl FnOnce(&mut BytesMut),
) {
    use std::fmt::Write;
    if let Some(id) = id {
        // Into memory, which takes everything.
        let _written = writeln!(out, "id: {id}");
    }
    if let Some(name) = name {
        let _written = writeln!(out, "event: {name}");
    }
    out.put_slice(b"data: ");
    let begin = out.len();
    data(out);
    if memchr::memchr(b'\r', &out[begin..]).is_some() {
        out[begin..].iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b' ');
    }
    out.put_slice(b"\n\n");
}
