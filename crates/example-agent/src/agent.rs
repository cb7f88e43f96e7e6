//! The agent as a whole: what all threads share, and which method does what.
//!
//! Invariants: a request is answered by exactly one place; locks are taken session state first, then the table of
//! sessions, never the other way round.
//! Not a place for the methods themselves: lifecycle, listing and prompt have them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::command_line::{Feature, Options};
use crate::failure::Failure;
use crate::login::{self, Way};
use crate::output::Output;
use crate::run::state_dir;
use crate::session::Session;
use crate::store::Store;
use crate::turn_signal::TurnSignal;
use crate::wire::{Incoming, Raw, Reply};

/// An answer now, or `None` if another thread or a later event will give it.
pub(crate) type Answer = Result<Option<Value>, Failure>;

/// Methods that need a login, where one is wanted.
const TAKES_LOGIN: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// Everything that threads share.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) options: Options,
    pub(crate) output: Output,
    pub(crate) store: Store,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    calls: Mutex<HashMap<u64, Arc<TurnSignal>>>,
    next_call: AtomicU64,
    initialized: AtomicBool,
    knows_booleans: AtomicBool,
}

impl Agent {
    pub(crate) fn new(options: Options, store: Store) -> Self {
        Self {
            options,
            output: Output::default(),
            store,
            sessions: Mutex::default(),
            calls: Mutex::default(),
            next_call: AtomicU64::new(0),
            initialized: AtomicBool::new(false),
            knows_booleans: AtomicBool::new(false),
        }
    }

    /// Does what one line asks for.
    pub(crate) fn receive(self: &Arc<Self>, line: &[u8]) {
        match Incoming::parse(line) {
            Incoming::Request { id, method, params } => match self.request(&id, &method, params) {
                Ok(Some(result)) => self.output.answer(Some(&id), Ok(result)),
                Ok(None) => {}
                Err(failure) => self.output.answer(Some(&id), Err(failure)),
            },
            Incoming::Notification { method, params } => self.notification(&method, params),
            Incoming::Response { id, reply } => self.reply(id, reply),
            Incoming::Broken { id, failure } => self.output.answer(id.as_ref(), Err(failure)),
            Incoming::Ignored => {}
        }
    }

    fn request(self: &Arc<Self>, id: &Raw, method: &str, params: Option<Raw>) -> Answer {
        let params = params.map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
        let params: Value = params.map_err(|_| Failure::invalid_params("the params cannot be read"))?;
        if method != "initialize" && !self.initialized.load(Ordering::SeqCst) {
            return Err(Failure::invalid_request("the first request must be initialize"));
        }
        if Feature::of_method(method).is_some_and(|feature| !self.options.offers(feature)) {
            return Err(Failure::method_not_found(method));
        }
        if TAKES_LOGIN.contains(&method) && !self.options.login.is_there(state_dir(&self.options).as_deref())
        {
            return Err(Failure::login_required());
        }
        match method {
            "authenticate" => self.authenticate(&params),
            "initialize" => self.initialize(&params),
            "session/new" => self.new_session(params).map(Some),
            "session/load" => self.load(id, params),
            "session/resume" => self.resume(params).map(Some),
            "session/fork" => self.fork(params).map(Some),
            "session/list" => self.list(&params).map(Some),
            "session/close" | "session/stop" => self.close(id, &params),
            "session/delete" => self.delete(id, &params),
            "session/set_mode" => self.set_mode(&params).map(Some),
            "session/set_config_option" => self.set_config_option(&params).map(Some),
            "session/prompt" => self.prompt(id, &params),
            "_example/ping" => Ok(Some(if params.is_null() { json!({}) } else { params })),
            _ => Err(Failure::method_not_found(method)),
        }
    }

    fn notification(&self, method: &str, params: Option<Raw>) {
        let params = params.and_then(|params| serde_json::from_str::<Value>(params.get()).ok());
        match (method, params) {
            ("session/cancel", Some(params)) => {
                if let Ok(session) = self.session(&params) {
                    session.cancel(&session.state());
                }
            }
            ("$/cancel_request", Some(params)) => self.cancel_prompt(&params["requestId"]),
            _ => {}
        }
    }

    fn cancel_prompt(&self, request: &Value) {
        let sessions: Vec<_> = self.sessions.lock().expect("no holder panics").values().cloned().collect();
        for session in sessions {
            let state = session.state();
            let prompt = state.running.as_ref().map(|running| running.prompt.get());
            if prompt.and_then(|id| serde_json::from_str::<Value>(id).ok()).as_ref() == Some(request) {
                session.cancel(&state);
            }
        }
    }

    fn authenticate(&self, params: &Value) -> Answer {
        let id = params["methodId"].as_str().unwrap_or_default();
        match self.options.login.way(id) {
            Some(Way::Agent) => {
                let made = self.options.login.make(state_dir(&self.options).as_deref());
                made.map_err(|error| Failure::internal(format!("cannot log in: {error}")))?;
                Ok(Some(json!({})))
            }
            Some(_) => Ok(None),
            None => Err(Failure::invalid_params("methodId is no way that the agent goes by itself")),
        }
    }

    fn initialize(&self, params: &Value) -> Answer {
        if params["protocolVersion"].as_u64().is_none() {
            return Err(Failure::invalid_params("protocolVersion is an integer"));
        }
        if self.options.hang_initialize {
            return Ok(None);
        }
        self.initialized.store(true, Ordering::SeqCst);
        let booleans = params["clientCapabilities"]["session"]["configOptions"]["boolean"].is_object();
        self.knows_booleans.store(booleans, Ordering::SeqCst);
        Ok(Some(json!({
            "protocolVersion": 1,
            "agentCapabilities": self.options.capabilities(),
            "authMethods": self.options.login.methods(&params["clientCapabilities"], &login::command()),
            "agentInfo": {"name": "example", "title": "Example", "version": env!("CARGO_PKG_VERSION")},
        })))
    }

    /// Whether the client can show boolean config options.
    pub(crate) fn knows_booleans(&self) -> bool {
        self.knows_booleans.load(Ordering::SeqCst)
    }

    /// The live session that `params` names.
    pub(crate) fn session(&self, params: &Value) -> Result<Arc<Session>, Failure> {
        let id = session_id(params)?;
        let session = self.live(id);
        session.ok_or_else(|| Failure::session_not_found(id))
    }

    pub(crate) fn live(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.lock().expect("no holder panics").get(id).cloned()
    }

    pub(crate) fn insert(&self, session: Session) {
        let session = Arc::new(session);
        self.sessions.lock().expect("no holder panics").insert(session.id.clone(), session);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.sessions.lock().expect("no holder panics").remove(id);
    }

    /// Sends a request to the client; the answer goes to `turn`. Ids count from 0 and overlap the client's.
    pub(crate) fn call(&self, turn: &Arc<TurnSignal>, method: &str, params: &Value) -> u64 {
        let id = self.expect_answer(turn);
        self.output.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The same, taken back in the same write: the client cannot answer in between.
    pub(crate) fn call_and_take_back(&self, turn: &Arc<TurnSignal>, method: &str, params: &Value) -> u64 {
        let id = self.expect_answer(turn);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
        self.output.raw(format!("{request}\n{cancel}\n").as_bytes());
        id
    }

    /// A new id whose answer goes to `turn`.
    pub(crate) fn expect_answer(&self, turn: &Arc<TurnSignal>) -> u64 {
        let id = self.next_call.fetch_add(1, Ordering::SeqCst);
        self.calls.lock().expect("no holder panics").insert(id, Arc::clone(turn));
        id
    }

    fn reply(&self, id: u64, reply: Reply) {
        let turn = self.calls.lock().expect("no holder panics").remove(&id);
        if let Some(turn) = turn {
            turn.deliver(id, reply);
        }
    }
}

pub(crate) fn session_id(params: &Value) -> Result<&str, Failure> {
    params["sessionId"].as_str().ok_or_else(|| Failure::invalid_params("sessionId is a string"))
}
