//! Who may do what, and what exists for whom (contract 1.7, MC-3, SC-3): one decision for ACP and REST.
//!
//! Pure. A session that a caller may not see is as unknown as one that never was; so that the time does not tell them
//! apart either, sessions are looked up with [`Identity::sees`] as the filter ([`acpd_host::Host::find`]).

use crate::identity::Identity;
use crate::limits::Beyond;
use acpd_api::Scope;

/// What a request needs of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    scope: Scope,
    /// The same where the session was created under another token.
    of_others: Scope,
    unknown: Unknown,
}

/// What becomes of a request to a session that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    /// It is refused, to callers without the scope as well.
    Refused,
    /// What serves it has an answer: deleting what is not there is no error (SE-16). A caller that does not see all
    /// sessions is refused: from another answer it would learn that one is there.
    Served,
}

impl Needs {
    /// A resource of REST.
    pub(crate) const fn resource(scope: Scope) -> Self {
        Self { scope, of_others: scope, unknown: Unknown::Refused }
    }

    /// A method of ACP.
    pub(crate) const fn method(scope: Scope) -> Self {
        Self { scope, of_others: scope, unknown: Unknown::Served }
    }

    /// Whether a session or an agent is used, not only looked at.
    pub(crate) fn is_use(self) -> bool {
        self.scope >= Scope::Control
    }

    /// The same, but `scope` for sessions that were created under another token.
    pub(crate) const fn of_others(self, scope: Scope) -> Self {
        Self { of_others: scope, ..self }
    }
}

/// The session of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// None is named, or it cannot be looked up, which is for the work to report.
    Nothing,
    /// There is none of that id.
    Unknown,
    /// It was created under this token, or under none.
    Of(Option<&'a str>),
}

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    /// It may start runs; others watch what is live.
    pub(crate) may_start_runs: bool,
}

/// Why a caller may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such session, for this caller.
    UnknownSession,
    /// Its scope is `scope`; `required` is needed.
    Forbidden { scope: Scope, required: Scope },
    /// It is beyond a limit of its token.
    Beyond(Box<Beyond>),
    /// It cannot be held against the limits of its token.
    Unreadable { reason: String },
}

/// Whether a caller may do this to a session, or without one.
pub(crate) fn decide(identity: &Identity, needs: Needs, session: Named<'_>) -> Result<Permit, Refusal> {
    let name = identity.name().map(|name| &**name);
    let is_others = match session {
        Named::Of(creator) if !identity.sees(creator) => return Err(Refusal::UnknownSession),
        Named::Of(creator) => creator != name,
        Named::Unknown if needs.unknown == Unknown::Refused || !identity.sees(None) => {
            return Err(Refusal::UnknownSession);
        }
        Named::Unknown | Named::Nothing => false,
    };
    require(identity, needs.scope)?;
    if is_others {
        require(identity, needs.of_others)?;
    }
    Ok(Permit { may_start_runs: identity.may(Scope::Control) })
}

fn require(identity: &Identity, required: Scope) -> Result<(), Refusal> {
    match identity.may(required) {
        true => Ok(()),
        false => Err(Refusal::Forbidden { scope: identity.scope(), required }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Allowance;
    use Scope::{Admin, Control, Observe};

    /// What is decided for no session, one of the caller's own, one of another token, one of none, and an unknown one.
    fn row(identity: &Identity, needs: Needs) -> String {
        let own = Named::Of(identity.name().map(|name| &**name));
        let sessions = [Named::Nothing, own, Named::Of(Some("other")), Named::Of(None), Named::Unknown];
        let word = |session| match decide(identity, needs, session) {
            Ok(permit) => {
                assert_eq!(permit.may_start_runs, identity.may(Control));
                "yes"
            }
            Err(Refusal::UnknownSession) => "unknown",
            Err(Refusal::Forbidden { scope, required }) => {
                assert_eq!(scope, identity.scope());
                required.as_str()
            }
            Err(refusal) => panic!("{refusal:?}"),
        };
        sessions.map(word).join(" ")
    }

    /// Watching, using, ending for good, deleting.
    fn needs(of: fn(Scope) -> Needs) -> [Needs; 4] {
        [of(Observe), of(Control), of(Control).of_others(Admin), of(Admin)]
    }

    fn token(scope: Scope, sees_all: bool) -> Identity {
        Identity::of_token("me", scope, sees_all, Allowance::UNLIMITED)
    }

    fn check(of: fn(Scope) -> Needs, rows: [(Identity, [&str; 4]); 6]) {
        for (identity, expected) in rows {
            for (needs, expected) in needs(of).into_iter().zip(expected) {
                let who = (identity.scope(), identity.sees(None));
                assert_eq!(row(&identity, needs), expected, "{who:?}: {needs:?}");
            }
        }
    }

    // contract 1.7, MC-3, SC-3: scopes, owners and `sees` over ACP; what may not be seen does not exist
    #[test]
    fn methods() {
        let all = "yes yes yes yes yes";
        let own = "yes yes unknown unknown unknown";
        let (no_control, no_admin) =
            ("control control unknown unknown unknown", "admin admin unknown unknown unknown");
        let (lacks_control, lacks_admin) =
            ("control control control control control", "admin admin admin admin admin");
        check(
            Needs::method,
            [
                (token(Observe, false), [own, no_control, no_control, no_admin]),
                (token(Observe, true), [all, lacks_control, lacks_control, lacks_admin]),
                (token(Control, false), [own, own, own, no_admin]),
                (token(Control, true), [all, all, "yes yes admin admin yes", lacks_admin]),
                (token(Admin, false), [all, all, all, all]),
                (Identity::local(Allowance::UNLIMITED), [all, all, all, all]),
            ],
        );
    }

    // contract 1.7, contract 1.1: the same over REST, where a session that is not there is 404 whatever the scope
    #[test]
    fn resources() {
        let all = "yes yes yes yes unknown";
        let own = "yes yes unknown unknown unknown";
        let (no_control, no_admin) =
            ("control control unknown unknown unknown", "admin admin unknown unknown unknown");
        let (lacks_control, lacks_admin) =
            ("control control control control unknown", "admin admin admin admin unknown");
        check(
            Needs::resource,
            [
                (token(Observe, false), [own, no_control, no_control, no_admin]),
                (token(Observe, true), [all, lacks_control, lacks_control, lacks_admin]),
                (token(Control, false), [own, own, own, no_admin]),
                (token(Control, true), [all, all, "yes yes admin admin unknown", lacks_admin]),
                (token(Admin, false), [all, all, all, all]),
                (Identity::local(Allowance::UNLIMITED), [all, all, all, all]),
            ],
        );
    }
}
