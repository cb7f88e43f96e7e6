//! Frames on a stream socket: a length (of type and body, 32 bits, the lowest byte first), a type, a body.
//!
//! Not here: what the types mean, and who reads or writes the socket.

use serde::Serialize;
use std::io;
use tokio_util::bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes before a body.
pub(crate) const HEAD: usize = 5;
/// The longest body. A line may have 1 GiB at most, and some more is around it.
pub(crate) const LONGEST: usize = (1 << 30) + (1 << 24);

/// A frame that has come whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

impl Frame {
    /// Takes the next frame out of what was read. None: it has not come whole, and there is room for more of it.
    ///
    /// # Errors
    /// When it is longer than `longest`.
    pub(crate) fn take(read: &mut BytesMut, longest: usize) -> io::Result<Option<Self>> {
        let Some(head) = read.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 || length - 1 > longest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame of no allowed length"));
        }
        let whole = 4 + length;
        if read.len() < whole {
            // As it comes: the length alone is no reason to take memory.
            let missing = whole - read.len();
            read.reserve(missing.min(read.len().max(64 * 1024)));
            return Ok(None);
        }
        let mut frame = read.split_to(whole);
        frame.advance(4);
        let kind = frame.get_u8();
        Ok(Some(Self { kind, body: frame.freeze() }))
    }

    /// The parts of a bulk body: a length as above, so many bytes of JSON, maybe none, and everything else.
    pub(crate) fn bulk(mut self) -> Option<(Bytes, Bytes)> {
        if self.body.len() < 4 {
            return None;
        }
        let head = self.body.get_u32_le() as usize;
        (head <= self.body.len()).then(|| (self.body.split_to(head), self.body))
    }
}

/// Writes what stands before a body of `length` bytes.
///
/// # Panics
/// When the body is longer than a frame can be; nothing that is let in is.
pub(crate) fn put_head(out: &mut BytesMut, kind: u8, length: usize) {
    out.put_u32_le(u32::try_from(length + 1).expect("bodies are bounded"));
    out.put_u8(kind);
}

/// Writes a frame with a body of JSON.
pub(crate) fn put_json(out: &mut BytesMut, kind: u8, body: &impl Serialize) {
    let body = json(body);
    put_head(out, kind, body.len());
    out.put_slice(&body);
}

/// Writes a frame with a bulk body, up to the bytes at its end, which the caller writes.
pub(crate) fn put_bulk(out: &mut BytesMut, kind: u8, head: &[u8], bytes: usize) {
    put_head(out, kind, 4 + head.len() + bytes);
    out.put_u32_le(u32::try_from(head.len()).expect("heads are bounded"));
    out.put_slice(head);
}

pub(crate) fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("a body of strings and numbers is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // KEEP: frames come out as they went in, cut anywhere
        #[test]
        fn frames_survive_the_socket(
            frames in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
            cut in 1usize..30,
        ) {
            let mut wire = BytesMut::new();
            for (kind, body) in &frames {
                put_head(&mut wire, *kind, body.len());
                wire.put_slice(body);
            }
            let (mut read, mut got) = (BytesMut::new(), Vec::new());
            for piece in wire.chunks(cut) {
                read.extend_from_slice(piece);
                while let Some(frame) = Frame::take(&mut read, 64).expect("none is long") {
                    got.push((frame.kind, frame.body.to_vec()));
                }
            }
            prop_assert_eq!(got, frames);
            prop_assert!(read.is_empty());
        }
    }

    #[test]
    fn what_is_too_long_or_nothing_is_refused() {
        for (bytes, refused) in
            [(&[0, 0, 0, 0][..], true), (&[12, 0, 0, 0, 1], true), (&[11, 0, 0, 0, 1], false)]
        {
            assert_eq!(Frame::take(&mut BytesMut::from(bytes), 10).is_err(), refused, "{bytes:?}");
        }
        let bulk = |body: &'static [u8]| Frame { kind: 1, body: Bytes::from_static(body) }.bulk();
        assert_eq!(
            bulk(&[1, 0, 0, 0, 7, 8, 9]),
            Some((Bytes::from_static(&[7]), Bytes::from_static(&[8, 9])))
        );
        assert_eq!((bulk(&[1, 0, 0, 0]), bulk(&[0, 0])), (None, None));
    }
}
