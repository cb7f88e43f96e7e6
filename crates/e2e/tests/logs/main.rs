//! What an operator sees of a daemon on stderr.

mod ids;
mod journal;
mod life;
mod long;
mod readiness;
