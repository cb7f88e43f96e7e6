//! What an operator sees of a daemon on stderr.

mod journal;
mod life;
mod readiness;
