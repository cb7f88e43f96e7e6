//! End-to-end tests of acpd against the real binary; they are in `tests/`, their harness is `acpd-testkit`.

pub use acpd_testkit::*;
