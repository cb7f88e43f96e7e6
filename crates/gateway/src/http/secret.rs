//! Names that cannot be guessed: of tokens, codes and connections.

use data_encoding::HEXLOWER;

/// So many random bytes, in hexadecimal digits.
pub(super) fn secret<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    HEXLOWER.encode(&bytes)
}
