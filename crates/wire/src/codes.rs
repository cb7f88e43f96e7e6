//! The error codes that JSON-RPC itself defines, and the one for a cancelled request.
//!
//! Not here: codes that a protocol on top of JSON-RPC adds.

/// The bytes are not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a request object.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist or is not available.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The receiver failed by itself.
pub const INTERNAL_ERROR: i64 = -32603;
/// The sender of the request cancelled it.
pub const REQUEST_CANCELLED: i64 = -32800;
