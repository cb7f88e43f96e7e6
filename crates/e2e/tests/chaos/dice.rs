//! Small seeded randomness, and the numbers that the environment may set.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A generator (xorshift64*).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero would stay zero; neighbouring seeds must not begin alike.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    /// One of them.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// The number in an environment variable, or else `default`.
pub(crate) fn number_from(variable: &str, default: usize) -> usize {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// The seeds to try: the one that `ACPD_SEED` says, or else `count` new ones.
pub(crate) fn seeds(count: usize) -> Vec<u64> {
    if let Ok(seed) = std::env::var("ACPD_SEED") {
        return vec![seed.parse().expect("ACPD_SEED is a number")];
    }
    (0..count).map(|_| RandomState::new().build_hasher().finish() % 1_000_000_000).collect()
}
