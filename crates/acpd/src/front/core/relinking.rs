//! What is to be done when the link is lost, when there is a new one, and when it is given up.

use super::other_node::lost_node;
use super::{CLOSED, FrontCore, Loss, Out, number};
use crate::front::editing::{own, text, with};
use crate::front::open::{Kind, NOT_AGAIN, Open};
use crate::front::sessions::Session;
use acpd_host::{META, method};
use acpd_wire::{member, write_notification};
use bytes::{Bytes, BytesMut};
use serde_json::json;
use serde_json::value::RawValue;

/// The code of the error for what is not there, as ACP has it.
const NOT_THERE: i64 = -32002;

/// What the front end asks by itself.
#[derive(Debug)]
pub(super) enum Own {
    Initialize,
    /// The client was attached to this session.
    Attach(String),
}

impl FrontCore {
    /// The link is lost. The client is told nothing.
    pub(in crate::front) fn lost(&mut self) {
        self.questions.lost();
        self.own.clear();
        self.sessions.values_mut().for_each(Session::lost);
    }

    /// There is a new link: everything that the client has, and wants, is asked for again. A daemon that is lost before it has
    /// answered is asked again on the next one.
    pub(in crate::front) fn linked(&mut self, out: &mut Out) {
        // The answer to the client's own `initialize` is still to come, or it has not come to that.
        if let Some(hello) = self.hello.clone() {
            let id = self.ask(Own::Initialize);
            let joins =
                self.sessions.iter().find(|(_, session)| session.is_attached).map(|(id, _)| json!(id));
            let hello =
                with(hello, "params", &["_meta", META, "joins"], &joins.unwrap_or_default().to_string());
            out.to_daemon.push(renamed(&hello, &id));
        }
        for (session, after) in self.attached() {
            let id = self.ask(Own::Attach(session.clone()));
            let meta = json!({META: {"after": after, "activate": false}});
            let params = json!({"sessionId": session, "mcpServers": [], "_meta": meta});
            out.to_daemon.push(request(&id, method::SESSION_LOAD, &params));
        }
        let mut open = std::mem::take(&mut self.open);
        open.retain_mut(|open| {
            if !open.kind.is_sent_again() {
                out.to_client.push(Self::fail(&open.id, NOT_AGAIN));
                return false;
            }
            open.is_again = true;
            out.to_daemon.push(open.line.clone());
            if open.is_withdrawn {
                let mut line = BytesMut::new();
                let params = format!("{{\"requestId\":{}}}", open.id.as_raw());
                write_notification(&mut line, method::CANCEL_REQUEST, Some(params.as_bytes()));
                out.to_daemon.push(line.freeze());
            }
            true
        });
        self.open = open;
        out.is_back = self.own.is_empty() && self.open.is_empty();
    }

    /// Where the client was in each session.
    fn attached(&self) -> Vec<(String, u64)> {
        let sessions = self.sessions.iter().filter(|(_, session)| session.goes_on());
        sessions.map(|(id, session)| (id.clone(), session.cursor)).collect()
    }

    /// The answer to what the front end has asked.
    pub(super) fn own_answered(&mut self, asked: Own, outcome: Result<&RawValue, &RawValue>, out: &mut Out) {
        match (asked, outcome) {
            (Own::Initialize, Ok(_)) => out.is_back = !self.node_is_lost,
            (Own::Initialize, Err(error)) => {
                let why = text(Some(error), "message").unwrap_or_default();
                out.lost = Some(Loss { why, retry: None });
            }
            (Own::Attach(session), Ok(result)) => {
                out.is_back = std::mem::take(&mut self.node_is_lost);
                let open = own(Some(result), "openQuestions");
                let open: Vec<u64> =
                    open.and_then(|open| serde_json::from_str(open.get()).ok()).unwrap_or_default();
                self.over(&session, &open, out);
                match own(Some(result), "resumable") {
                    // It has ended, which was told, or is about to be.
                    Some(_not) => self.release_or_forget(&session, out),
                    None => {
                        let known = self.sessions.entry(session).or_default();
                        known.attached(number(own(Some(result), "seq")));
                    }
                }
            }
            (Own::Attach(session), Err(error))
                if let Some(why) = lost_node(error).filter(|_| self.waits_for_node(&session)) =>
            {
                self.node_is_lost = true;
                out.lost = Some(Loss { why, retry: None });
            }
            (Own::Attach(session), Err(error)) => {
                self.node_is_lost = false;
                self.over(&session, &[], out);
                self.sessions.remove(&session);
                let leaves =
                    |open: &Open| open.kind == Kind::Leave && open.session.as_ref() == Some(&session);
                if self.open.iter().any(leaves) {
                    return;
                }
                let code = member(error, "code").and_then(|code| code.get().parse().ok());
                let reason = if code == Some(NOT_THERE) { "deleted" } else { "internal" };
                let detail = text(Some(error), "message").unwrap_or_default();
                let params = json!({"reason": reason, "detail": detail, "sessionId": session}).to_string();
                let mut line = BytesMut::new();
                write_notification(&mut line, CLOSED, Some(params.as_bytes()));
                out.to_client.push(line.freeze());
            }
        }
    }

    /// Withdraws the questions of a session that are not open any more.
    fn over(&mut self, session: &str, open: &[u64], out: &mut Out) {
        let over = self.questions.keep(session, open);
        out.to_client.extend(over.into_iter().map(Self::withdrawn));
    }

    fn release_or_forget(&mut self, session: &str, out: &mut Out) {
        if !self.is_owed(session) {
            self.release(session, out);
            self.ended(session);
        }
    }

    /// The daemon is given up: what is open is answered with that.
    pub(in crate::front) fn given_up(&mut self, why: &str) -> Vec<Bytes> {
        self.open.drain(..).map(|open| Self::fail(&open.id, why)).collect()
    }

    fn ask(&mut self, asked: Own) -> String {
        self.numbers += 1;
        let id = format!("{}-{}", self.name, self.numbers);
        self.own.insert(id.clone(), asked);
        id
    }
}

fn request(id: &str, method: &str, params: &serde_json::Value) -> Bytes {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    request.to_string().into()
}

/// The client's `initialize` under another id.
fn renamed(line: &[u8], id: &str) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(line).ok();
    let params = raw.and_then(|raw| member(raw, "params")).unwrap_or(RawValue::NULL);
    let method = method::INITIALIZE;
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#).into()
}
