//! Text that takes as much room on a disk as in memory.

/// A word of 1 MiB that cannot be packed, by xorshift.
pub fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'A' + (state >> 32) as u8 % 58)
    };
    let word: String = (0..1 << 20).map(|_| letter()).collect();
    // Neither an escape of JSON nor a directive.
    word.replace(['\\', '[', ']', '^', '_', '`'], "z")
}
