//! The ids under which a client is asked what other nodes ask it: they tell where the answer belongs, so that nothing has to be
//! kept until there is one.
//!
//! A node asks under numbers from 1 up, and so does this one, below all of these. Programs that read numbers as floats read
//! them right, up to 2^53.

use super::{RelayCore, Said};
use acpd_wire::{RawId, span_of, splice};
use bytes::{Bytes, BytesMut};

/// Bits of the number that a node asks under; those above are the upstream's.
const BITS: u32 = 24;
/// Questions of an upstream that are withdrawn when it is lost: as many as a client can have before it.
const WITHDRAWN: usize = 1024;

/// An upstream, by its number from 1 up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::relay) struct UpstreamId(pub(in crate::relay) u64);

impl UpstreamId {
    /// What a node asks under the number `theirs` is asked under here.
    pub(super) fn own_id(self, theirs: u64) -> Option<u64> {
        (theirs < 1 << BITS).then_some((self.0 << BITS) | theirs)
    }

    /// The upstream of a request of which the client says an id, and its number there.
    fn of(own: u64) -> Option<(Self, u64)> {
        let upstream = own >> BITS;
        (upstream > 0).then_some((Self(upstream), own & ((1 << BITS) - 1)))
    }
}

impl RelayCore {
    /// The client answers a request.
    pub(super) fn answer(&mut self, id: RawId<'_>, line: &Bytes) -> Said {
        let Some((own, (upstream, theirs))) = id.as_u64().and_then(|own| Some((own, UpstreamId::of(own)?)))
        else {
            return Said::Here;
        };
        let Some(there) = self.upstreams.get_mut(&upstream) else {
            return Said::Dropped("it answers what a node asked that is not connected any more".to_owned());
        };
        there.asked.remove(&own);
        match span_of(line, id.as_value()) {
            Some(span) => {
                let mut sent = BytesMut::with_capacity(line.len());
                splice(&mut sent, line, &[(span, theirs.to_string().as_bytes())]);
                Said::There { upstream, new: None, line: sent.freeze(), is_request: false }
            }
            None => Said::Here,
        }
    }

    /// The client is asked under this id.
    pub(super) fn asks(&mut self, upstream: UpstreamId, own: u64) {
        if let Some(there) = self.upstreams.get_mut(&upstream)
            && there.asked.len() < WITHDRAWN
        {
            there.asked.insert(own);
        }
    }

    /// The client need not answer it any more.
    pub(super) fn withdraws(&mut self, upstream: UpstreamId, own: u64) {
        if let Some(there) = self.upstreams.get_mut(&upstream) {
            there.asked.remove(&own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: an id is of one upstream, is none that this node asks under, and survives a reader of floats
    #[test]
    fn an_id_tells_where_its_answer_belongs() {
        for (upstream, theirs) in [(1, 0), (1, 7), (2, 7), (1 << 28, (1 << BITS) - 1)] {
            let own = UpstreamId(upstream).own_id(theirs).expect("an id");
            assert_eq!(UpstreamId::of(own), Some((UpstreamId(upstream), theirs)));
            assert!((1 << BITS..1 << 53).contains(&own), "{own}");
        }
        assert_eq!(UpstreamId(1).own_id(1 << BITS), None);
        assert_eq!((UpstreamId::of(7), UpstreamId::of((1 << BITS) - 1)), (None, None));
    }
}
