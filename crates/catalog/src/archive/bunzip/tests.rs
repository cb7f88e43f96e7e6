//! Fixtures were written by the reference implementation.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn read(compressed: &[u8]) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    BzDecoder::new(compressed).read_to_end(&mut all).map(|_| all)
}

const EMPTY: &str = "425a683917724538509000000000";
const WORDS: &str = "425a68393141592653598601eecc00006d9380400104003ffffff03000b80a000680000a00068000029529a9a6\
    8d184d0da9b6a4c1391324fa2649f04d49826a4e84f727d9304ec4c13b09b13713b93c13a93627a13f09826e26\
    49dc9a1391352782684ea4fe26c4d0992649d0abc93c93fc5dc914e142421807bb30";
const ZEROS: &str = "425a6839314159265359a64580b20016fa4008c00040000008200030cc09aa69a9022da92045e2ee48a70a1214\
    c8b01640";
const TWO: &str = "425a6839314159265359cfbaa0b4000001910040000201a000219a68334d0cbc5dc914e142433eea82d0425a68\
    393141592653592eb71ad700000141800010000084802000219a68334d073c5dc914e14240badc6b5c";
const RUNS: &str = "425a68393141592653597eccb0d30000064001ff000080001820007418a6c9a8091353268cf5c4468acec2e604\
    68a64af4d418cdd55d5c7042445eaa80f63c88e8a8095c647481c9ad9b629852bbbf1772453850907eccb0d3";

/// Runs of each length around those at which a count begins and ends.
fn runs() -> Vec<u8> {
    let lengths = [1, 2, 3, 4, 5, 6, 7, 8, 254, 255, 256, 257, 258, 259, 260, 263, 264, 1000, 4, 4, 4];
    let run = |(at, length): (u8, usize)| vec![at % 7; length];
    (0..).zip(lengths).flat_map(run).collect()
}

// quirk bzip2-archives (registries): what bzip2 has compressed comes out as it was, also out of several streams
#[test]
fn what_was_compressed_comes_out() {
    let words = "The quick brown fox jumps over the lazy dog. ".repeat(20).into_bytes();
    for (fixture, expected) in [
        (EMPTY, Vec::new()),
        (WORDS, words),
        (ZEROS, vec![0; 3_000_000]),
        (TWO, b"one two\n".to_vec()),
        (RUNS, runs()),
    ] {
        assert!(read(&bytes(fixture)).expect("it is whole") == expected, "{fixture}");
    }
    // In pieces of any size.
    let (compressed, mut all) = (bytes(RUNS), Vec::new());
    let mut decoder = BzDecoder::new(&compressed[..]);
    let mut piece = [0; 3];
    loop {
        match decoder.read(&mut piece).expect("it is whole") {
            0 => break,
            read => all.extend_from_slice(&piece[..read]),
        }
    }
    assert_eq!(all, runs());
}

// issue 28, R16: what is damaged or cut off anywhere is an error, and never a panic
#[test]
fn damage_is_an_error() {
    for fixture in [WORDS, TWO, RUNS] {
        let whole = bytes(fixture);
        for end in 1..whole.len() {
            let cut = read(&whole[..end]);
            let is_between = fixture == TWO && cut.as_deref().ok() == Some(b"one ");
            assert!(cut.is_err() || is_between, "cut at {end}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                // The last bits of a stream mean nothing, and a larger block size takes the same blocks.
                let read = read(&other);
                assert!(
                    read.is_err() || at == 3 || at + 1 == whole.len() || read.ok() == self::read(&whole).ok(),
                    "{at}.{bit}"
                );
            }
        }
    }
    let mut longer = bytes(WORDS);
    longer.extend_from_slice(b"more");
    assert!(read(&longer).is_err());
    assert!(read(b"BZh0").is_err());
}
