//! The nodes of a fleet.

use super::{Answer, FORBIDDEN, Operation, TOO_MANY, UNAUTHORIZED, of, problem};
use acpd_api::{Node, Nodes, RemovedNode};
use http::Method;
use serde_json::{Value, json};

const NO_FLEET: Answer = problem(409, "the daemon is in no fleet");
const UNKNOWN: Answer = problem(404, "no such node");
const THERE: Answer = problem(409, "the node is there, or the daemon is in no fleet");
const NO_ANSWER: Answer = problem(503, "the fleet does not answer");
const GONE: Answer = problem(503, "the node cannot be reached");

/// All of them, in the order of their paths.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::GET,
        path: "/v1/nodes",
        id: "listNodes",
        tag: "operation",
        summary: "`GET /v1/nodes`: the nodes of the fleet.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<Nodes>(200, "all nodes"), FORBIDDEN, UNAUTHORIZED, TOO_MANY, NO_FLEET],
        is_open: false,
    },
    Operation {
        method: Method::DELETE,
        path: "/v1/nodes/{name}",
        id: "removeNode",
        tag: "operation",
        summary: "`DELETE /v1/nodes/{name}`: removes a node that is gone for good, with its sessions and their archive.",
        description: None,
        parameters: node,
        request: None,
        answers: &[
            of::<RemovedNode>(200, "what was removed"),
            FORBIDDEN,
            UNAUTHORIZED,
            TOO_MANY,
            THERE,
            UNKNOWN,
            NO_ANSWER,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/nodes/{name}/drain",
        id: "drainNode",
        tag: "operation",
        summary: "`POST /v1/nodes/{name}/drain`: a node takes no new sessions from now on, also after a restart; those that it has \
                  go on.",
        description: None,
        parameters: node,
        request: None,
        answers: &[of::<Node>(200, "the node"), FORBIDDEN, UNAUTHORIZED, TOO_MANY, NO_FLEET, UNKNOWN, GONE],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/nodes/{name}/undrain",
        id: "undrainNode",
        tag: "operation",
        summary: "`POST /v1/nodes/{name}/undrain`: a node takes new sessions again.",
        description: None,
        parameters: node,
        request: None,
        answers: &[of::<Node>(200, "the node"), FORBIDDEN, UNAUTHORIZED, TOO_MANY, NO_FLEET, UNKNOWN, GONE],
        is_open: false,
    },
];

fn node() -> Vec<Value> {
    vec![
        json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"}, "description": "The node's name."}),
    ]
}
