//! Where a session's files are: names that file systems of any kind tell apart.
//!
//! Pure. An id may be any text; a name has only what every file system takes, tells apart without regard to case, and no program
//! takes for an option or a hidden file. Invariant: two ids never have one name, except those too long for one, which have the
//! hash of their bytes; the id stands in the file besides, and what is found under a name is compared with it.

use std::path::{Path, PathBuf};

/// Bytes of a name at most; longer ones are hashed. File systems take 255.
const LONGEST: usize = 200;
/// What a hashed name begins with: no other one has it.
const HASHED: &str = "=#";
/// What seals and logs end with.
const LOG: &str = ".log";
const SEAL: &str = ".seal";

/// The name of a session's directory.
pub fn name_of(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 8);
    for (at, byte) in id.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            // One in front would hide it, and `.` and `..` are others.
            b'.' if at > 0 => name.push('.'),
            b'A'..=b'Z' => name.extend(['=', byte.to_ascii_lowercase().into()]),
            // Behind a second mark: the digits of a byte may be letters, too.
            other => name.extend(['=', '=', hex_digit(other >> 4), hex_digit(other & 15)]),
        }
    }
    if name.is_empty() || name.len() > LONGEST {
        return format!("{HASHED}{:032x}", hash(id.as_bytes()));
    }
    name
}

/// The id that a name was made of; None for a hash, and for what is no name.
pub fn id_of(name: &str) -> Option<String> {
    let (mut id, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let [byte, behind @ ..] = rest {
        (id, rest) = match (byte, behind) {
            (b'=', [b'=', digits @ ..]) => {
                let (digits, behind) = digits.split_at_checked(2)?;
                let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                (push(id, byte), behind)
            }
            (b'=', [letter, behind @ ..]) => (push(id, letter.to_ascii_uppercase()), behind),
            (plain, behind) => (push(id, *plain), behind),
        };
    }
    String::from_utf8(id).ok().filter(|id| name_of(id) == name)
}

fn push(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

fn hex_digit(value: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(value & 15)])
}

/// FNV-1a with 128 bits. What is found under a hash is compared with its id, so one that is made to collide is only refused.
fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The directory, below that of all sessions, that names are spread over.
fn spread(id: &str) -> String {
    format!("{:02x}", crc32fast::hash(id.as_bytes()) & 0xff)
}

/// Where the sessions of a state directory are.
pub fn sessions(state: &Path) -> PathBuf {
    state.join("sessions")
}

/// Where the hosts of a state directory say which sessions they have.
pub fn claims(state: &Path) -> PathBuf {
    state.join("claims")
}

/// Where the logs of a state directory keep what survives the loss of power before it is in segments.
pub fn redo(state: &Path) -> PathBuf {
    state.join("redo")
}

/// The directory of a session.
pub fn session(sessions: &Path, id: &str) -> PathBuf {
    sessions.join(place(id))
}

/// The same below the directory of all sessions.
pub(super) fn place(id: &str) -> String {
    let mut place = spread(id);
    place.push('/');
    place.push_str(&name_of(id));
    place
}

/// What the files of a session are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One segment.
    Log(u32),
    /// Segments from the first to the second number, closed.
    Seal(u32, u32),
}

impl Part {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Log(number) => format!("{number}{LOG}"),
            Self::Seal(first, last) => format!("{first}-{last}{SEAL}"),
        }
    }

    /// What a file of this name is, if it is a part of a session. One name for each part: no leading zeros.
    pub fn of(name: &str) -> Option<Self> {
        let part = match (name.strip_suffix(LOG), name.strip_suffix(SEAL)) {
            (Some(number), _) => Self::Log(number.parse().ok()?),
            (_, Some(range)) => {
                let (first, last) = range.split_once('-')?;
                Self::Seal(first.parse().ok()?, last.parse().ok()?)
            }
            _ => return None,
        };
        let (first, last) = part.range();
        (first > 0 && first <= last && part.name() == name).then_some(part)
    }

    /// The first and the last segment in it.
    pub fn range(self) -> (u32, u32) {
        match self {
            Self::Log(number) => (number, number),
            Self::Seal(first, last) => (first, last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_safe(name: &str) -> bool {
        let taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.=#".contains(&byte);
        !name.is_empty() && name.len() <= LONGEST && !name.starts_with('.') && name.bytes().all(taken)
    }

    // design session-files 2: ids that a file system would take for one another, or for something else, have names of their own
    #[test]
    fn names_tell_ids_apart() {
        let long = "x".repeat(LONGEST + 1);
        let longer = "x".repeat(LONGEST + 2);
        let alike = [
            "a", "A", "=a", "=A", ".", "..", ".a", "a.", "a/b", "a\\b", "", " ", "\u{e3}", "C3", "c3", "Cc",
            "=c3", "==c3", "=#", "Ab", "\u{ab}", "NUL", "nul", &long, &longer,
        ];
        let names: std::collections::BTreeSet<_> = alike.iter().map(|id| name_of(id)).collect();
        assert_eq!(names.len(), alike.len(), "{names:?}");
        assert!(names.iter().all(|name| is_safe(name)), "{names:?}");
        assert_eq!(name_of("0190b1f0-plain_id.2"), "0190b1f0-plain_id.2");
    }

    proptest! {
        // design session-files 2: no name is another id's, whatever the ids are
        #[test]
        fn no_two_ids_have_one_name(one in "\\PC{0,12}", other in "\\PC{0,12}") {
            prop_assert!(is_safe(&name_of(&one)));
            prop_assert_eq!(name_of(&one) == name_of(&other), one == other);
            prop_assert_eq!(id_of(&name_of(&one)), (!one.is_empty()).then_some(one));
        }
    }

    // design session-files 2: only the one name of a part is taken for it
    #[test]
    fn parts_are_known_by_their_names() {
        for part in [Part::Log(1), Part::Log(u32::MAX), Part::Seal(1, 1), Part::Seal(2, 9)] {
            assert_eq!(Part::of(&part.name()), Some(part));
        }
        for other in [
            "0.log",
            "01.log",
            "+1.log",
            "1.log.new",
            ".2.host-1",
            "2-1.seal",
            "1.seal",
            "checkpoint",
            ".log",
        ] {
            assert_eq!(Part::of(other), None, "{other}");
        }
    }
}
