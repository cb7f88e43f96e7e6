//! Lines that were scanned before, as those of a log were: read no further than their session and kind are known.
//!
//! Lines of one agent begin alike, up to the text of the update. What is known of one is known of the next that begins with
//! the same bytes, since nothing behind these was read. Not here: whether a line is JSON; whoever wrote the log knew that.

use super::names::{Member, UpdateKind};
use super::{LONGEST, Place};
use super::{Until, Walk};
use std::ops::Range;

/// The longest beginning that is kept, in bytes.
const FRONT: usize = 512;

/// What a line says of itself: whose it is, and the kind of the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skim {
    session: Place,
    kind: UpdateKind,
}

impl Skim {
    /// Where the value of `params.sessionId` stands; `None` when it is absent or was seen twice.
    #[inline]
    pub fn session(&self) -> Option<Range<usize>> {
        self.session.range()
    }

    /// The kind of the update: the member `sessionUpdate` of `params.update`.
    #[inline]
    pub fn kind(&self) -> UpdateKind {
        self.kind
    }
}

/// Skims lines one after another.
#[derive(Debug, Clone, Default)]
pub struct Skimmer {
    /// How the last line began whose session and kind were known before its end, and what they were.
    last: Option<(Vec<u8>, Skim)>,
}

/// What is kept makes it faster and changes no answer.
impl PartialEq for Skimmer {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Skimmer {
    /// Whose a line is and of which kind, as [`scan`](crate::scan()) says if no counted member stands twice; what stands
    /// behind the two is not judged. `None` for a line that is refused as far as it is read.
    #[inline]
    pub fn skim(&mut self, line: &[u8]) -> Option<Skim> {
        match &self.last {
            Some((front, known)) if line.starts_with(front) => Some(*known),
            _ => self.read(line),
        }
    }

    #[inline(never)]
    fn read(&mut self, line: &[u8]) -> Option<Skim> {
        if line.len() > LONGEST {
            return None;
        }
        let mut walk = Walk::new(line, Until::Known);
        let is_whole = walk.line().is_ok();
        let session = walk.places[Member::SessionId as usize];
        let known = Skim { session, kind: walk.kind };
        if walk.until == Until::Left {
            let front = &line[..walk.reader.position()];
            if front.len() <= FRONT {
                let (kept, seen) = self.last.get_or_insert((Vec::new(), known));
                kept.clear();
                kept.extend_from_slice(front);
                *seen = known;
            }
            return Some(known);
        }
        // It was read to its end, and may have members twice.
        let is_twice = |member: Member| walk.twice & (1 << member as u32) != 0;
        is_whole.then(|| Skim {
            session: if is_twice(Member::SessionId) { Place::default() } else { session },
            kind: if walk.twice != 0 { UpdateKind::Other } else { walk.kind },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(session: &str, kind: &str, rest: &str) -> String {
        format!(r#"{{"params":{{{session}"update":{{"sessionUpdate":{kind}{rest}}}}}}}"#)
    }

    // ADR 31: a line of a log is read no further than its session and kind, in any order of these
    #[test]
    fn what_stands_behind_session_and_kind_is_not_read() {
        let mut skimmer = Skimmer::default();
        let (session, no_json) = (r#""sessionId":"s","#, ",what is no JSON");
        for (line, kind) in [
            (update(session, "\"plan\"", no_json), UpdateKind::Plan),
            (update(session, "\"unheard_of\"", no_json), UpdateKind::Other),
            (update(session, "7", no_json), UpdateKind::Other),
            (
                r#"{"params":{"update":{"x":1,"sessionUpdate":"plan"},"sessionId":"s",no"#.to_owned(),
                UpdateKind::Plan,
            ),
        ] {
            let seen = skimmer.skim(line.as_bytes()).expect(&line);
            assert_eq!(
                (seen.session().map(|span| &line[span]), seen.kind()),
                (Some("\"s\""), kind),
                "{line}"
            );
        }
        for line in [
            update("", "\"plan\"", no_json),
            update(r#""sessionId":"s","sessionId":"s","#, "\"plan\"", no_json),
            update(session, "\"plan", ""),
            r#"{"params":{"sessionId":"s",no"#.to_owned(),
            String::new(),
        ] {
            assert!(skimmer.skim(line.as_bytes()).is_none(), "{line}");
        }
    }

    // ADR 31: what is known of a line is known of another only when nothing of that can differ
    #[test]
    fn lines_that_begin_alike_are_told_apart() {
        let kind_first = |session: &str, kind: &str| {
            format!(r#"{{"params":{{"update":{{"sessionUpdate":"{kind}"}},"sessionId":{session}}}}}"#)
        };
        let session_first = |session: &str, kind: &str| {
            update(&format!("\"sessionId\":{session},"), &format!("\"{kind}\""), "")
        };
        let mut skimmer = Skimmer::default();
        for of in [&kind_first as &dyn Fn(&str, &str) -> String, &session_first] {
            for (session, kind, expected) in [
                ("1", "plan", UpdateKind::Plan),
                ("12", "plan", UpdateKind::Plan),
                ("\"s\"", "tool_call", UpdateKind::ToolCall),
                ("\"s\"", "tool_call_update", UpdateKind::ToolCallUpdate),
                ("\"st\"", "tool_call_update", UpdateKind::ToolCallUpdate),
                ("\"s\"", "tool_call", UpdateKind::ToolCall),
            ] {
                let line = of(session, kind);
                for _ in 0..2 {
                    let seen = skimmer.skim(line.as_bytes()).expect("JSON");
                    let seen = (seen.session().map(|span| &line[span]), seen.kind());
                    assert_eq!(seen, (Some(session), expected), "{line}");
                }
            }
        }
    }

    // FR-5: memory is bounded, whatever stands in front
    #[test]
    fn a_long_beginning_is_not_kept() {
        let mut skimmer = Skimmer::default();
        let line = update(&format!(r#""x":"{}","sessionId":"s","#, "x".repeat(FRONT)), "\"plan\"", "");
        assert_eq!(skimmer.skim(line.as_bytes()).map(|seen| seen.kind()), Some(UpdateKind::Plan));
        assert!(skimmer.last.is_none());
    }
}
