//! Which boot of the machine this is: what was written in an earlier one and not synced may be lost.

use super::BOOT_BYTES;
use std::fs;

/// Where Linux says it, as a UUID.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of this boot; zeros where the system has none.
pub fn boot_id() -> [u8; BOOT_BYTES] {
    fs::read_to_string(BOOT_ID).ok().and_then(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> Option<[u8; BOOT_BYTES]> {
    let digits: String = text.trim_end().chars().filter(|character| *character != '-').collect();
    let is_id = digits.len() == 2 * BOOT_BYTES && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_id)?;
    Some(number.to_be_bytes())
}

/// Whether what was written in the boot `written` may have been lost in the boot `now`.
pub(super) fn has_booted_since(written: &[u8; BOOT_BYTES], now: &[u8; BOOT_BYTES]) -> bool {
    *written == [0; BOOT_BYTES] || written != now
}

#[cfg(test)]
mod tests {
    use super::*;

    // design session-files 5: a boot that is unknown is another one
    #[test]
    fn boots_are_told_apart() {
        let one = parse("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\n").unwrap();
        assert_eq!(one[..3], [0x0f, 0x1e, 0x2d]);
        for odd in
            ["", "0f1e", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1fg", "+f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"]
        {
            assert_eq!(parse(odd), None, "{odd}");
        }
        let (none, other) = ([0; BOOT_BYTES], [1; BOOT_BYTES]);
        for (written, now, expected) in
            [(one, one, false), (one, other, true), (none, one, true), (none, none, true), (one, none, true)]
        {
            assert_eq!(has_booted_since(&written, &now), expected);
        }
    }

    // design session-files 5: all processes of one boot read the same
    #[test]
    #[cfg(target_os = "linux")]
    fn a_boot_has_one_id() {
        assert_eq!(boot_id(), boot_id());
        assert_ne!(boot_id(), [0; BOOT_BYTES]);
    }
}
