//! ACP over HTTP and WebSocket, against a real daemon on real sockets.

mod behind;
mod cursors;
mod event_sockets;
mod frames;
mod heads;
mod http2;
mod joint;
mod leaving;
mod limits;
mod raw;
mod stalling;
mod statuses;
mod streams;
