//! The connection's core, stepped without a runtime: every input in every stage.

mod joining;
mod table;

use super::*;
use crate::connection::effects::Work;
use crate::connection::input;
use crate::identity::Allowance;
use crate::questions::EventPosition;
use acpd_host::TerminationInfo;
use acpd_record::QuestionNumber;
use std::sync::Arc;

/// A core and what it did. An effect is a few words, see [`words`].
struct Client(ConnectionCore);

fn session(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

fn id(text: &str) -> OwnedId {
    let raw: &serde_json::value::RawValue = serde_json::from_str(text).expect("JSON");
    acpd_wire::RawId::new(raw).expect("an id").to_owned()
}

/// What a line is to a client that was asked question 1 of the session s under the id 1, and another one before.
fn line(text: &str) -> Input {
    input::read(&Bytes::from(text.to_owned()), |id| match id.as_raw() {
        "1" => AskedQuestion::Open(EventPosition { session: session("s"), number: QuestionNumber(1) }),
        "0" => AskedQuestion::Over,
        _ => AskedQuestion::Never,
    })
}

/// A request with the session, if one is named.
fn request(id: u32, method: &str, session: &str) -> Input {
    let params = match session {
        "" => String::new(),
        session => format!(r#","params":{{"sessionId":"{session}"}}"#),
    };
    line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{params}}}"#))
}

fn initialize(id: u32) -> Input {
    line(&format!(r#"{{"id":{id},"method":"initialize","params":{{"protocolVersion":1}}}}"#))
}

fn call(id: u32, method: &str, session: &str) -> Box<Call> {
    match request(id, method, session) {
        Input::Request(call) => call,
        input => panic!("{input:?}"),
    }
}

fn message(id: Option<u32>, method: &str, of: &str) -> Message {
    let request = id.map(|number| self::id(&number.to_string()));
    Message::new(request, session(of), method.to_owned(), None)
}

/// The run that began behind an event, of a session that was created without a token.
fn run(began_after: u64) -> Result<Run, HostError> {
    Ok(Run { began_after, created_by: None, beyond: None })
}

fn ended() -> HostError {
    let info: TerminationInfo = serde_json::from_str(
        r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#,
    )
    .expect("a record");
    HostError::SessionEnded { id: "s".to_owned(), info: Arc::new(info) }
}

fn done(id: u32, outcome: Outcome) -> Input {
    Input::Done { request: Some(self::id(&id.to_string())), outcome }
}

fn attached(id: u32, of: &str, run: Option<u64>) -> Input {
    let unresumable = run.is_none().then_some(HostError::Broken);
    done(id, Outcome::Attached { session: session(of), run, unresumable })
}

const GONE: Input = Input::Gone { is_revoked: false, host_closes: false };

impl Client {
    fn of(identity: Identity) -> Self {
        Self(ConnectionCore::new(identity, "agent".to_owned(), false))
    }

    /// One that has said nothing yet.
    fn uninitialized() -> Self {
        Self::of(Identity::local(Allowance::UNLIMITED))
    }

    /// One whose `initialize` (0) is being served.
    fn initializing() -> Self {
        let mut client = Self::uninitialized();
        assert_eq!(client.take(initialize(0)), "start 0 Initialize");
        client
    }

    /// One that is attached to the run of the session s that began behind event 3.
    fn open() -> Self {
        Self::initializing().attached()
    }

    fn attached(mut self) -> Self {
        assert_eq!(self.take(done(0, Outcome::Initialized)), "introduce");
        assert_eq!(self.take(attached(0, "s", Some(3))), "attach s");
        self
    }

    /// The same once it is gone.
    fn finishing() -> Self {
        let mut client = Self::open();
        assert_eq!(client.take(GONE), "close left, EndViewers");
        client
    }

    /// One with this identity.
    fn open_as(identity: Identity) -> Self {
        let mut client = Self::of(identity);
        assert_eq!(client.take(initialize(0)), "start 0 Initialize");
        client.attached()
    }

    fn take(&mut self, input: Input) -> String {
        let mut effects = Effects::default();
        self.0.handle(input, &mut effects);
        let mut words = Vec::new();
        while let Some(effect) = effects.next() {
            words.push(self::words(effect));
        }
        words.join(", ")
    }

    fn stage(&self) -> &'static str {
        match self.0.stage {
            Stage::Uninitialized => "uninitialized",
            Stage::Initializing { .. } => "initializing",
            Stage::Open => "open",
            Stage::Finishing => "finishing",
        }
    }
}

/// `=1 CODE` and `=1 RESULT` answer the request 1; `send CODE` answers none; the others are as they are called.
fn words(effect: Effect) -> String {
    match effect {
        Effect::Find(call) => format!("find {}", call.name),
        Effect::Count(call) => format!("count {}", call.name),
        Effect::Reach(message) => format!("reach {}", message.method),
        Effect::Pass(message) => format!("pass {}", message.method),
        Effect::Start(work, call) => {
            let work = match work {
                Work::Create(None) => "Create".to_owned(),
                Work::Create(Some(_)) => "Fork".to_owned(),
                Work::Join { replay: true, only_watches: false, .. } => "Load".to_owned(),
                Work::Join { replay: false, only_watches: false, .. } => "Resume".to_owned(),
                Work::Join { only_watches: true, .. } => "Watch".to_owned(),
                work => format!("{work:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
            };
            format!("start {} {work}", call.id)
        }
        Effect::Answer { request, body, after, .. } => {
            let body = match body {
                Ok(result) => std::str::from_utf8(&result).expect("text").to_owned(),
                Err(error) => code(&error).to_string(),
            };
            let behind = if after > 0 { format!(" behind {after}") } else { String::new() };
            format!("={request} {body}{behind}")
        }
        Effect::Send(line) => {
            let line = std::str::from_utf8(&line).expect("text");
            let code =
                line.split_once("\"code\":").map(|(_, rest)| rest.split(',').next().unwrap_or_default());
            format!("send {}", code.unwrap_or("refusal"))
        }
        Effect::RecordRefusal { method, .. } => format!("refused {method}"),
        Effect::PassAnswer { position, .. } => format!("answer {}", position.number),
        Effect::Withdraw(request) => format!("withdraw {request}"),
        Effect::Introduce(_) => "introduce".to_owned(),
        Effect::Attach(session) => format!("attach {session}"),
        Effect::Forget(session) => format!("forget {session}"),
        Effect::Leave { request, session } => format!("leave {request} {session}"),
        Effect::Close(why) => format!("close {why}"),
        Effect::EndViewers | Effect::ShutDown | Effect::Drain => format!("{effect:?}"),
        Effect::SendLast(_) => "last".to_owned(),
    }
}

fn code(error: &WireError) -> i64 {
    match error {
        WireError::Own { code, .. } => *code,
        WireError::Raw(_) => 0,
    }
}

// contract 1: at the limit of open requests the client is not read, and what waits counts
#[test]
fn the_client_is_read_up_to_the_limit() {
    let mut client = Client::open();
    assert!(client.0.reads(OPEN_REQUESTS - 1) && !client.0.reads(OPEN_REQUESTS));
    assert_eq!(client.take(request(1, "session/load", "t")), "find session/load");
    let found =
        Input::Found { call: call(1, "session/load", "t"), session: Lookup::Of(None), is_live: false };
    assert_eq!(client.take(found), "start 1 Load");
    let prompt =
        Input::Found { call: call(2, "session/prompt", "t"), session: Lookup::Of(None), is_live: false };
    assert_eq!(client.take(prompt), "");
    assert!(client.0.reads(OPEN_REQUESTS - 2) && !client.0.reads(OPEN_REQUESTS - 1));
    assert!(!Client::initializing().0.reads(0), "everything depends on the answer to initialize");
    assert!(!Client::finishing().0.reads(0) && Client::uninitialized().0.reads(0));
}

// FR-3: an id is taken until its request is answered
#[test]
fn a_second_request_with_an_open_id_is_refused() {
    let mut client = Client::open();
    assert_eq!(client.take(request(1, "session/new", "")), "start 1 Create");
    assert_eq!(client.take(request(1, "session/list", "")), "send -32600");
    assert_eq!(client.take(done(1, Outcome::Answered)), "");
    assert_eq!(client.take(request(1, "session/list", "")), "start 1 List");
}

// IN-2: a second initialize is negotiated like the first; if it fails, the connection stays as it was
#[test]
fn initialize_again() {
    let mut client = Client::open();
    assert_eq!(client.take(initialize(1)), "start 1 Initialize");
    assert_eq!(client.stage(), "initializing");
    let error = wire_error(&HostError::Broken);
    assert_eq!(client.take(done(1, Outcome::NotInitialized(error))), "refused initialize");
    assert_eq!(
        (client.stage(), client.take(request(2, "session/new", "")).as_str()),
        ("open", "start 2 Create")
    );
    assert_eq!(client.take(line(r#"{"id":3,"method":"initialize","params":{}}"#)), "=3 -32602");
    assert_eq!(client.take(initialize(4)), "start 4 Initialize");
    assert_eq!(client.take(Input::lost(id("4"))), "=4 -32603");
    assert_eq!(client.stage(), "open");
}

// contract 1.7, MC-3: what the scope of a token does not include is refused before anything is looked up
#[test]
fn scopes_are_asked_first() {
    let mut client = Client::open_as(Identity::of_token("me", Scope::Observe, true, Allowance::UNLIMITED));
    assert_eq!(client.take(request(1, "session/prompt", "s")), "refused session/prompt, =1 -32003");
    assert_eq!(client.take(request(2, "session/new", "")), "refused session/new, =2 -32003");
    let found =
        Input::Found { call: call(3, "session/load", "s"), session: Lookup::Of(None), is_live: false };
    assert_eq!(client.take(found), "start 3 Watch", "it starts nothing");
    assert_eq!(
        client.take(Input::Reached { message: message(None, "session/cancel", "s"), run: run(3) }),
        ""
    );
}

// contract 1.7, SC-3: what a caller may not see is as unknown as what never was
#[test]
fn sessions_of_others_are_unknown() {
    let mut client = Client::open_as(Identity::of_token("me", Scope::Control, false, Allowance::UNLIMITED));
    for (owner, seen) in [
        (Lookup::Of(Some("other".into())), "refused session/status, =1 -32002"),
        (Lookup::Unknown, "refused session/status, =1 -32002"),
        (Lookup::Of(Some("me".into())), "start 1 Status"),
        (Lookup::Nothing, "start 1 Status"),
    ] {
        let found =
            Input::Found { call: call(1, "session/status", "s"), session: owner.clone(), is_live: true };
        assert_eq!(client.take(found), seen, "{owner:?}");
    }
}

// HT-12: what may start a run counts, unless the session is live
#[test]
fn runs_are_counted_where_there_is_a_limit() {
    let allowance = Allowance { sessions: 2, ..Allowance::UNLIMITED };
    let mut client = Client::open_as(Identity::of_token("me", Scope::Control, true, allowance));
    assert_eq!(client.take(request(1, "session/new", "")), "count session/new");
    let load =
        |is_live| Input::Found { call: call(2, "session/load", "t"), session: Lookup::Of(None), is_live };
    assert_eq!(client.take(load(false)), "count session/load");
    assert_eq!(client.take(load(true)), "start 2 Load");
    let counted = |is_granted| Input::Counted { call: call(2, "session/load", "t"), is_granted };
    assert_eq!(client.take(counted(true)), "start 2 Load");
    assert_eq!(client.take(counted(false)), "refused session/load, =2 -32003");
}

// contract 1, SE-16: what serves each method
#[test]
fn methods_of_a_session_are_served() {
    let mut client = Client::open();
    for (method, served) in [
        ("session/status", "start 1 Status"),
        ("session/resume", "start 1 Resume"),
        ("session/fork", "start 1 Fork"),
        ("session/close", "start 1 End"),
        ("session/stop", "start 1 End"),
        ("_sandboxagent/session/terminate", "start 1 End"),
        ("session/delete", "start 1 Delete"),
        ("session/set_mode", "reach session/set_mode"),
        ("_x/y", "reach _x/y"),
        ("_sandboxagent/session/detach", "start 1 CheckItIsThere"),
    ] {
        let found = Input::Found { call: call(1, method, "u"), session: Lookup::Of(None), is_live: false };
        assert_eq!(client.take(found), served, "{method}");
        assert_eq!(client.take(done(1, Outcome::Answered)), "");
    }
    assert_eq!(client.take(request(2, "session/prompt", "")), "=2 -32602", "a session is required");
    assert_eq!(client.take(request(3, "_x/y", "")), "start 3 AskAgent");
    assert_eq!(client.take(request(4, "session/prompt", "no id")), "=4 -32002");
    assert_eq!(client.take(request(5, "session/delete", "no id")), "=5 {}", "as good as deleted");
    assert_eq!(client.take(line(r#"{"id":6,"method":"session/list","params":{"cwd":"x"}}"#)), "=6 -32602");
}

// FR-3, contract 6: acpd that ends answers what it can and then the rest; one client that leaves is not answered
#[test]
fn how_a_connection_ends() {
    let gone = |is_revoked, host_closes| Input::Gone { is_revoked, host_closes };
    for (input, effects) in [
        (gone(false, false), "close left, EndViewers"),
        (gone(true, false), "close revoked, EndViewers"),
        (gone(false, true), "close shutdown, Drain"),
    ] {
        assert_eq!(Client::open().take(input), effects);
    }
    let mut last = Client::open();
    last.0.ends_host = true;
    assert_eq!(last.take(request(1, "session/new", "")), "start 1 Create");
    assert_eq!(last.take(request(2, "session/new", "")), "start 2 Create");
    assert_eq!(last.take(gone(false, false)), "close left, ShutDown, Drain");
    assert_eq!(last.take(done(2, Outcome::Answered)), "");
    assert_eq!(last.take(Input::Drained), "last");
}

// contract 7.2: what is beyond a limit is refused, also when that turned out only when its run was reached
#[test]
fn what_is_beyond_a_limit_is_not_passed_on() {
    let beyond =
        || Box::new(crate::limits::Beyond { limit: "roots", message: "no".to_owned(), allowed: Vec::new() });
    let mut client = Client::open();
    client.take(request(1, "session/close", "s"));
    let mut close = call(1, "session/close", "s");
    close.held.beyond = Some(Refusal::Beyond(beyond()));
    let found = Input::Found { call: close, session: Lookup::Of(None), is_live: true };
    assert_eq!(client.take(found), "refused session/close, =1 -32003");
    let run = || Ok(Run { began_after: 3, created_by: None, beyond: Some(beyond()) });
    client.take(request(2, "session/prompt", "s"));
    let prompt = message(Some(2), "session/prompt", "s");
    assert_eq!(client.take(Input::Reached { message: prompt, run: run() }), "=2 -32003");
    let cancel = message(None, "session/cancel", "s");
    assert_eq!(client.take(Input::Reached { message: cancel, run: run() }), "");
}
