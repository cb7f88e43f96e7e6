//! An ACP agent on the official Rust SDK, on standard input and output, as an independent peer of acpd.
//!
//! Each line of a prompt is done in turn: `tool TITLE` plays a tool call, `hang` waits for a cancel, anything else
//! is said back word by word.
//! Not a second example agent: it has only what proves that acpd can host an agent whose engine is not ours.

mod script;
mod sessions;

use agent_client_protocol::v1::schema::{Implementation, InitializeRequest, InitializeResponse};
use agent_client_protocol::{Agent, Result, Stdio, on_receive_request, schema::ProtocolVersion};

use crate::sessions::Sessions;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    Agent
        .v1()
        .name("sdk-agent")
        .on_receive_request(
            async |_: InitializeRequest, responder, _| {
                let info = Implementation::new("sdk-agent", env!("CARGO_PKG_VERSION"));
                responder.respond(InitializeResponse::new(ProtocolVersion::V1).agent_info(info))
            },
            on_receive_request!(),
        )
        .with_handler(Sessions::default())
        .connect_to(Stdio::new())
        .await
}
