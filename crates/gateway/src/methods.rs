//! Every method that a client may call: one line each.
//!
//! The one place that knows what a method needs and where it goes. Invariant: a name that is not in the table has a line
//! all the same ([`find`]), so that nothing is decided about names elsewhere.

use crate::access::Needs;
use acpd_api::Scope;
use acpd_host::method::{
    AUTHENTICATE, INITIALIZE, LOGOUT, SESSION_CANCEL, SESSION_CLOSE, SESSION_DELETE, SESSION_DETACH,
    SESSION_FORK, SESSION_LIST, SESSION_LOAD, SESSION_NEW, SESSION_PROMPT, SESSION_RESUME, SESSION_STATUS,
    SESSION_STOP, SESSION_TERMINATE, SET_CONFIG_OPTION, SET_MODE, SET_MODEL,
};

/// A method, and all that is decided by its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// Its name; of a method that is not known, how it begins.
    name: &'static str,
    /// What the client's token must include (contract 1.7, MC-3).
    pub(crate) needs: Needs,
    pub(crate) starts_run: StartsRun,
    pub(crate) http_header: HttpHeader,
    /// What serves it, and with that whether it names a session.
    pub(crate) handler: Handler,
}

/// Whether a method can start a run, which counts as a session that is about to be live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartsRun {
    No,
    /// In a new session.
    New,
    /// In the session that it names, unless that is live.
    UnlessLive,
}

/// What the header `Acp-Session-Id` is to a method (HT-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpHeader {
    /// The method is not of a session, whatever the header says.
    Ignored,
    /// It becomes `params.sessionId`.
    Taken,
    /// The same, and without either the method means nothing.
    Required,
}

/// What serves a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// acpd, for the connection; a session in the params means nothing.
    Connection(OfConnection),
    /// The session in the params, which is required.
    Session(OfSession),
    /// The agent of the session in the params, or that of the connection.
    Agent,
}

/// Methods that name no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfConnection {
    Initialize,
    New,
    List,
    /// Gated by a capability that acpd does not list (IN-3): never passed on.
    NotServed,
}

/// Methods of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfSession {
    Status,
    Load,
    Resume,
    Fork,
    Close,
    Terminate,
    Delete,
    Detach,
    /// Passed on to the session's run.
    Run,
}

use Handler::{Agent, Connection, Session};
use HttpHeader::{Ignored, Required, Taken};
use Scope::{Admin, Control, Observe};

/// All methods that are known.
#[rustfmt::skip]
static METHODS: [Method; 25] = [
    line(INITIALIZE, Observe, Ignored, Connection(OfConnection::Initialize)),
    line(AUTHENTICATE, Control, Ignored, Agent),
    line(LOGOUT, Control, Ignored, Agent),
    line(SESSION_NEW, Control, Ignored, Connection(OfConnection::New)).starts(StartsRun::New),
    line(SESSION_LIST, Observe, Ignored, Connection(OfConnection::List)),
    line(SESSION_STATUS, Observe, Taken, Session(OfSession::Status)),
    line(SESSION_LOAD, Observe, Required, Session(OfSession::Load)).starts(StartsRun::UnlessLive),
    line(SESSION_RESUME, Observe, Required, Session(OfSession::Resume)).starts(StartsRun::UnlessLive),
    line(SESSION_FORK, Control, Required, Session(OfSession::Fork)).starts(StartsRun::New),
    line(SESSION_CLOSE, Control, Required, Session(OfSession::Close)),
    line(SESSION_STOP, Control, Taken, Session(OfSession::Close)),
    line(SESSION_DELETE, Admin, Required, Session(OfSession::Delete)),
    line(SESSION_TERMINATE, Control, Taken, Session(OfSession::Terminate)).of_others(Admin),
    line(SESSION_DETACH, Observe, Taken, Session(OfSession::Detach)),
    line(SESSION_PROMPT, Control, Required, Session(OfSession::Run)),
    line(SESSION_CANCEL, Control, Required, Session(OfSession::Run)),
    line(SET_MODE, Control, Required, Session(OfSession::Run)),
    line(SET_MODEL, Control, Required, Session(OfSession::Run)),
    line(SET_CONFIG_OPTION, Control, Required, Session(OfSession::Run)),
    line("session/archive", Control, Taken, Connection(OfConnection::NotServed)),
    line("session/unarchive", Control, Taken, Connection(OfConnection::NotServed)),
    line("session/set_title", Control, Taken, Connection(OfConnection::NotServed)),
    line("proxy/initialize", Control, Ignored, Connection(OfConnection::NotServed)),
    line("proxy/successor", Control, Ignored, Connection(OfConnection::NotServed)),
    line("mcp/message", Control, Ignored, Connection(OfConnection::NotServed)),
];

/// Methods that are not known, by how they begin: an agent's own, passed on to it (FR-4). The first that fits counts.
static UNKNOWN: [Method; 3] = [
    line("session/", Control, Taken, Session(OfSession::Run)),
    line("_", Control, Taken, Agent),
    line("", Control, Ignored, Agent),
];

const fn line(name: &'static str, scope: Scope, http_header: HttpHeader, handler: Handler) -> Method {
    Method { name, needs: Needs::method(scope), starts_run: StartsRun::No, http_header, handler }
}

impl Method {
    const fn starts(self, starts_run: StartsRun) -> Self {
        Self { starts_run, ..self }
    }

    const fn of_others(self, scope: Scope) -> Self {
        Self { needs: self.needs.of_others(scope), ..self }
    }

    /// Whether it is served before `initialize`.
    pub(crate) fn is_served_early(&self) -> bool {
        matches!(self.handler, Connection(OfConnection::Initialize | OfConnection::NotServed))
    }

    /// Whether it uses an agent or a session, in which the limits of a token may limit it.
    pub(crate) fn is_use(&self) -> bool {
        match self.handler {
            Connection(_) => self.starts_run != StartsRun::No,
            Session(_) | Agent => self.starts_run != StartsRun::No || self.needs.is_use(),
        }
    }

    /// Whether what is answered depends on a session in the params.
    pub(crate) fn may_name_a_session(&self) -> bool {
        match self.handler {
            Connection(_) => false,
            Session(_) | Agent => true,
        }
    }
}

/// The line of a method.
pub(crate) fn find(name: &str) -> &'static Method {
    let known = METHODS.iter().find(|method| method.name == name);
    let unknown = || UNKNOWN.iter().find(|method| name.starts_with(method.name));
    known.or_else(unknown).expect("every name begins with nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Methods of a client in the tables of contract 1, 1.4, 6 and 7.3, and those of ACP that they build on.
    const OF_THE_CONTRACT: [&str; 19] = [
        "initialize",
        "authenticate",
        "logout",
        "session/new",
        "session/list",
        "session/status",
        "session/load",
        "session/resume",
        "session/fork",
        "session/close",
        "session/stop",
        "session/delete",
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
        "_sandboxagent/session/terminate",
        "_sandboxagent/session/detach",
    ];

    // contract 1: every method is known, once, and what is gated by a capability is refused
    #[test]
    fn every_method_of_the_contract_has_a_line() {
        let not_served = |method: &Method| method.handler == Connection(OfConnection::NotServed);
        for name in OF_THE_CONTRACT {
            let method = find(name);
            assert_eq!(method.name, name);
            assert!(!not_served(method), "{name}");
        }
        for method in &METHODS {
            assert_eq!(
                METHODS.iter().filter(|other| other.name == method.name).count(),
                1,
                "{}",
                method.name
            );
            assert_eq!(OF_THE_CONTRACT.contains(&method.name), !not_served(method), "{}", method.name);
        }
    }

    // contract 1.7, MC-3: what each scope may call
    #[test]
    fn each_method_needs_a_scope() {
        for method in &METHODS {
            let scope = match method.name {
                "initialize"
                | "session/list"
                | "session/status"
                | "session/load"
                | "session/resume"
                | "_sandboxagent/session/detach" => Observe,
                "session/delete" => Admin,
                _ => Control,
            };
            let expected = match method.name {
                // One's own may be ended for good, any only by an admin.
                "_sandboxagent/session/terminate" => Needs::method(scope).of_others(Admin),
                _ => Needs::method(scope),
            };
            assert_eq!(method.needs, expected, "{}", method.name);
        }
    }

    // contract 7.2: what needs control, or may start a run, is a use that a token may be limited in
    #[test]
    fn what_is_a_use_is_known() {
        for method in &METHODS {
            let looks = matches!(
                method.name,
                "initialize" | "session/list" | "session/status" | "_sandboxagent/session/detach"
            );
            let is_served = method.handler != Connection(OfConnection::NotServed);
            assert_eq!(method.is_use(), is_served && !looks, "{}", method.name);
        }
        assert!(UNKNOWN.iter().all(Method::is_use));
    }

    // HT-12: what may start a run counts as a session
    #[test]
    fn what_may_start_a_run_is_known() {
        for (name, starts) in [
            ("session/new", StartsRun::New),
            ("session/fork", StartsRun::New),
            ("session/load", StartsRun::UnlessLive),
            ("session/resume", StartsRun::UnlessLive),
        ] {
            assert_eq!(find(name).starts_run, starts, "{name}");
        }
        let others = METHODS.iter().chain(&UNKNOWN).filter(|method| method.starts_run != StartsRun::No);
        assert_eq!(others.count(), 4);
    }

    // HT-3: which methods take their session from the header, and which mean nothing without one
    #[test]
    fn the_header_is_for_methods_of_a_session() {
        for (name, header) in [
            ("session/prompt", Required),
            ("session/set_model", Required),
            ("session/status", Taken),
            ("session/stop", Taken),
            ("_sandboxagent/session/detach", Taken),
            ("session/archive", Taken),
            ("session/new", Ignored),
            ("session/list", Ignored),
            ("authenticate", Ignored),
            ("mcp/message", Ignored),
            ("session/unheard", Taken),
            ("_x/y", Taken),
            ("x/y", Ignored),
        ] {
            assert_eq!(find(name).http_header, header, "{name}");
        }
        assert_eq!(METHODS.iter().filter(|method| method.http_header == Required).count(), 10);
    }

    // FR-4: what is not known is the agent's, under control; of sessions it needs one
    #[test]
    fn an_unknown_method_is_passed_on() {
        for (name, handler) in [
            ("session/unheard", Session(OfSession::Run)),
            ("_x/y", Agent),
            ("_sandboxagent/session/unheard", Agent),
            ("Session/prompt", Agent),
            ("", Agent),
        ] {
            let method = find(name);
            assert_eq!((method.handler, method.needs), (handler, Needs::method(Control)), "{name}");
        }
        assert!(find("_x/y").may_name_a_session() && !find("session/new").may_name_a_session());
    }
}
