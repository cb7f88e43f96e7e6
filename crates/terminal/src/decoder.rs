//! Bytes to text, cut anywhere: what a command writes arrives in reads that know no characters.
//!
//! Invariant: all the text together is what a lossy decoding of all the bytes at once would give. A character
//! that is not complete yet waits for its rest.

/// Decodes UTF-8; what is invalid becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character, at most three bytes.
    torn: Vec<u8>,
}

impl Decoder {
    /// Appends to `text` all characters that are complete.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.torn.is_empty() {
            self.decode(bytes, text);
        } else {
            let mut joined = std::mem::take(&mut self.torn);
            joined.extend_from_slice(bytes);
            self.decode(&joined, text);
        }
    }

    /// Bytes that wait for the rest of their character.
    pub(crate) fn incomplete(&self) -> usize {
        self.torn.len()
    }

    /// Nothing more will come: what is incomplete now stays so.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !self.torn.is_empty() {
            self.torn.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn decode(&mut self, bytes: &[u8], text: &mut String) {
        let mut seen = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            seen += chunk.valid().len() + invalid.len();
            if seen == bytes.len() && is_beginning(invalid) {
                self.torn.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

/// Whether more bytes could make a character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(reads: &[&[u8]]) -> String {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        for read in reads {
            decoder.push(read, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    // TE-3: a character split across reads is not turned into U+FFFD
    #[test]
    fn a_torn_character_is_mended() {
        assert_eq!(decode(&[b"a\xF0", b"\x9F", b"\xA6", b"\x80b"]), "a\u{1F980}b");
    }

    // TE-3: invalid bytes are replaced
    #[test]
    fn what_is_invalid_is_replaced() {
        assert_eq!(decode(&[b"a\xFFb\xC3"]), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(decode(&[b"\xF0\x9F", b"x"]), "\u{FFFD}x");
    }

    // TE-2: half a character is not shown before the rest is there
    #[test]
    fn an_incomplete_character_waits() {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        decoder.push(b"ok \xE2\x82", &mut text);
        assert_eq!(text, "ok ");
        decoder.push(b"\xAC", &mut text);
        assert_eq!(text, "ok \u{20AC}");
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            pieces in proptest::collection::vec(prop_oneof![
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
                proptest::collection::vec(any::<u8>(), 0..4),
                proptest::collection::vec(0x80u8..=0xF5, 0..4),
            ], 0..20),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = pieces.concat();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let reads: Vec<&[u8]> = at.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(decode(&reads), String::from_utf8_lossy(&bytes));
        }
    }
}
