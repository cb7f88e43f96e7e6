//! Sizes for people. Pure.

const MIB: u64 = 1024 * 1024;

/// A number of bytes, in MiB where it is whole ones.
pub fn size(bytes: u64) -> String {
    match bytes / MIB {
        mib if mib > 0 && bytes.is_multiple_of(MIB) => format!("{mib} MiB"),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::{MIB, size};

    #[test]
    fn a_size_is_told_in_the_unit_it_was_meant_in() {
        for (bytes, told) in [(0, "0 bytes"), (1000, "1000 bytes"), (MIB, "1 MiB"), (512 * MIB, "512 MiB")] {
            assert_eq!(size(bytes), told);
        }
        assert_eq!(size(MIB + 1), "1048577 bytes");
    }
}
