//! ACP over HTTP and WebSocket, against a real daemon on real sockets.

mod joint;
