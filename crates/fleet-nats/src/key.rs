//! Names of sessions and nodes as a token of a subject and a key of a bucket: reversible, and never two names as one.
//!
//! Letters, digits, dashes and underscores stand for themselves; each other byte is `=` and two digits, since a dot would end
//! the token, and a star or an angle bracket would name other subjects too. Pure.

/// A name as one token.
pub(crate) fn encode(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            key.push(byte.into());
        } else {
            key.push_str(&format!("={byte:02X}"));
        }
    }
    key
}

/// The name of a token; None if [`encode`] gives no such token.
pub(crate) fn decode(key: &str) -> Option<String> {
    let (mut name, mut rest) = (Vec::with_capacity(key.len()), key.as_bytes());
    while let [byte, behind @ ..] = rest {
        rest = behind;
        name.push(match (byte, behind) {
            (b'=', [high, low, behind @ ..]) => {
                rest = behind;
                let digits = [*high, *low];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            _ => *byte,
        });
    }
    let name = String::from_utf8(name).ok()?;
    // One name has one token: what could also be written otherwise is another's.
    (encode(&name) == key).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet: ids of sessions have dots, which would be two tokens of a subject
    #[test]
    fn each_name_is_one_token_and_comes_back() {
        for (name, key) in [
            ("0198c0de-7a", "0198c0de-7a"),
            ("a.b_c", "a=2Eb_c"),
            ("=2E", "=3D2E"),
            ("*", "=2A"),
            (">", "=3E"),
            ("a b", "a=20b"),
            ("ä/", "=C3=A4=2F"),
            ("", ""),
        ] {
            assert_eq!(encode(name), key);
            assert_eq!(decode(key).as_deref(), Some(name));
        }
        let all: String = (0..=0x2FF).filter_map(char::from_u32).collect();
        let key = encode(&all);
        assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte)), "{key}");
        assert_eq!(decode(&key), Some(all));
    }

    #[test]
    fn what_is_no_name_of_ours_is_none() {
        for key in ["a.b", "=2e", "=41", "=", "=2", "=+1", "=FF", "a/b", "a=", "*"] {
            assert_eq!(decode(key), None, "{key}");
        }
    }
}
