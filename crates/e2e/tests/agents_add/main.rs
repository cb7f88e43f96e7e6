//! `acpd agents add`, `outdated`, `update` and `remove`, with a registry served over TLS on loopback, and with an npm and a
//! PyPI of the test's own.

mod ends;
mod fixtures;
mod hostile;
mod kinds;
mod proxied;
mod proxy;
mod server;
mod updates;
mod world;
