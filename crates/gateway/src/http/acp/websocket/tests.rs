//! The frames of a WebSocket, on a socket in memory and with a clock that tests can wind.
