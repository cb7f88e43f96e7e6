//! Going on with the sessions that the process had with the host before.

use super::{AgentCore, Effects, For, Route};
use crate::agent::{Claim, Marks, RouteId, SentTurn, Ticket};

impl AgentCore {
    /// Goes on with a session of the host before, which has taken up its lines up to `known`, and whose turn is waited for
    /// under the id of `turn`.
    pub(in crate::agent) fn bind_again(
        &mut self,
        claim: Claim,
        known: u64,
        turn: Option<SentTurn>,
    ) -> RouteId {
        let native = claim.into_native();
        self.claims.bound(&native);
        let route = RouteId(self.next_route);
        self.next_route += 1;
        self.routes.push(Route { id: route, native, known });
        if let Some(SentTurn { turn, request }) = turn {
            self.requests.reopen(request, For::Session { route, ticket: Ticket::Turn(turn) });
        }
        route
    }

    /// All sessions of the host before are bound: what was being served is served again.
    pub(in crate::agent) fn serve_again(&mut self, marks: &Marks, out: &mut Effects) {
        self.stdin.requests.inherit(marks.answered_requests());
        let served: Vec<_> = marks.served().map(|(id, line)| (id, line.map(str::to_owned))).collect();
        self.stdin.served = served.iter().map(|(id, _)| id.clone()).collect();
        let mut fed = Vec::new();
        for (id, line) in served {
            if let Some(line) = line {
                self.line(line.into(), self.said, out);
                fed.push(id);
            }
        }
        self.stdin.fed = fed;
    }
}
