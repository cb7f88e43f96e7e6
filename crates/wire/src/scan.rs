//! The places in a line of JSON by which acpd routes and decides: one pass over all of it, in any order of the members.
//!
//! Invariants: a line is accepted exactly when serde_json reads one object from it; every byte is looked at once;
//! nothing recurses, and nothing is allocated for values nested less than 128 deep; names are compared after their
//! escapes are decoded. A member that stands twice has no place: receivers differ in which one they take.
//! Not here: the meaning of a method, and the contents of any member but the kind of an update.

mod names;
mod readable;
mod reader;
mod skim;

pub use names::{Member, UpdateKind};
pub use readable::{read, readable, value};
pub(crate) use reader::{is_low, unit_at};
pub use skim::{Skim, Skimmer};

use crate::malformed::Malformed;
use crate::raw::raw_value;
use names::{MEMBERS, Object, PLACES};
use reader::{Invalid, Reader, Text};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::ops::Range;

/// The longest line, in bytes: places are 32-bit numbers.
const LONGEST: usize = u32::MAX as usize;

/// The places of the counted members of one object of JSON; see [`Member`].
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    text: &'a str,
    places: [Place; MEMBERS],
    /// A bit for each member that stands twice.
    twice: u32,
    kind: UpdateKind,
    has_halves: bool,
}

/// Start and end of a value; both 0 for a member that is absent, since a value never begins a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place(u32, u32);

impl Place {
    #[inline]
    fn range(self) -> Option<Range<usize>> {
        let Self(start, end) = self;
        (end != 0).then_some(start as usize..end as usize)
    }
}

/// Finds the counted members of the object in a line.
///
/// # Errors
///
/// [`Malformed`] describes a line that is not one object of JSON.
pub fn scan(line: &[u8]) -> Result<Scan<'_>, Malformed<'_>> {
    let text = std::str::from_utf8(line).map_err(|e| Malformed::NotUtf8 { valid_up_to: e.valid_up_to() })?;
    match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(Malformed::Blank),
        Some(b'{') if line.len() > LONGEST => {
            let reason = "longer than 4 GiB";
            Err(Malformed::NotAnEnvelope { reason, id: None, answerable: true })
        }
        Some(b'{') => {
            let mut walk = Walk::new(line, Until::End);
            match walk.line() {
                Ok(()) => Ok(walk.finish(text)),
                Err(Invalid) => Err(not_json(text, true)),
            }
        }
        Some(first) => {
            let _any: IgnoredAny = serde_json::from_str(text).map_err(|e| refused(e, false))?;
            Err(match first {
                b'[' => Malformed::Batch,
                _ => Malformed::NotAnEnvelope { reason: "not an object", id: None, answerable: true },
            })
        }
    }
}

impl<'a> Scan<'a> {
    /// The line.
    pub fn line(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Where the value of a member stands; `None` when the member is absent or stands twice.
    pub fn span(&self, member: Member) -> Option<Range<usize>> {
        let is_twice = self.twice & (1 << member as u32) != 0;
        self.place(member).filter(|_| !is_twice)
    }

    /// The value of a member, under the same conditions as [`span`](Self::span).
    pub fn value(&self, member: Member) -> Option<&'a RawValue> {
        self.span(member).map(|span| raw_value(&self.text[span]))
    }

    /// The kind of the update: the member `sessionUpdate` of `params.update`.
    pub fn kind(&self) -> UpdateKind {
        self.kind
    }

    /// Whether a counted member of the params or of the update stands twice. Such a line belongs to no session.
    pub fn is_ambiguous(&self) -> bool {
        self.doubled().is_some()
    }

    /// The first counted member of the params or of the update that stands twice, such as `params.sessionId`.
    pub fn doubled(&self) -> Option<&'static str> {
        let first = (self.twice & !Object::Root.bits()).trailing_zeros();
        PLACES.get(first as usize).copied()
    }

    /// Whether a string has half of a surrogate pair, which most parsers refuse; see
    /// [`repair_halves`](crate::repair_halves).
    pub fn has_halves(&self) -> bool {
        self.has_halves
    }

    /// Whether a counted member of the root stands twice, which makes the line no message.
    pub(crate) fn has_doubled_root(&self) -> bool {
        self.twice & Object::Root.bits() != 0
    }

    /// The text of a member, of the last one if there are two.
    pub(crate) fn last(&self, member: Member) -> Option<&'a str> {
        self.place(member).map(|span| &self.text[span])
    }

    fn place(&self, member: Member) -> Option<Range<usize>> {
        self.places[member as usize].range()
    }
}

/// How far a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    /// Its session and the kind of its update are known.
    Known,
    /// They are, and it was left there, which looks like an error to what it was in.
    Left,
}

/// One pass over a line.
struct Walk<'a> {
    reader: Reader<'a>,
    places: [Place; MEMBERS],
    twice: u32,
    kind: UpdateKind,
    until: Until,
}

impl<'a> Walk<'a> {
    fn new(line: &'a [u8], until: Until) -> Self {
        let (places, kind) = ([Place::default(); MEMBERS], UpdateKind::Other);
        Self { reader: Reader::new(line), places, twice: 0, kind, until }
    }

    fn line(&mut self) -> Result<(), Invalid> {
        // White space that JSON does not know may stand in front.
        if self.reader.skip_space() != b'{' {
            return Err(Invalid);
        }
        self.members(Self::root_member)?;
        self.reader.end()
    }

    fn root_member(&mut self, name: Text) -> Result<(), Invalid> {
        match self.counted(Object::Root, name) {
            Some(Member::Params) if self.reader.peek() == b'{' => {
                self.noted(Member::Params, |walk| walk.members(Self::params_member))
            }
            Some(member) => self.noted(member, Self::value),
            None => self.value(),
        }
    }

    fn params_member(&mut self, name: Text) -> Result<(), Invalid> {
        match self.counted(Object::Params, name) {
            Some(Member::Update) if self.reader.peek() == b'{' => {
                self.noted(Member::Update, |walk| walk.members(Self::update_member))
            }
            Some(member) => self.noted(member, Self::value),
            None => self.value(),
        }
    }

    fn update_member(&mut self, name: Text) -> Result<(), Invalid> {
        match self.counted(Object::Update, name) {
            Some(Member::SessionUpdate) if self.reader.peek() == b'"' => {
                self.noted(Member::SessionUpdate, |walk| {
                    let text = walk.reader.string()?;
                    walk.kind = walk.reader.decode(text, UpdateKind::of_name).unwrap_or(UpdateKind::Other);
                    Ok(())
                })
            }
            Some(member) => self.noted(member, Self::value),
            None => self.value(),
        }
    }

    fn value(&mut self) -> Result<(), Invalid> {
        self.reader.value()
    }

    fn counted(&self, object: Object, name: Text) -> Option<Member> {
        self.reader.decode(name, |name| object.member(name))
    }

    /// Passes over an object; `each` passes over the value behind each name.
    fn members(&mut self, each: impl Fn(&mut Self, Text) -> Result<(), Invalid>) -> Result<(), Invalid> {
        let mut is_open = self.reader.open_object()?;
        while is_open {
            let name = self.reader.name()?;
            each(self, name)?;
            is_open = self.reader.next_member()?;
            if self.until == Until::Known && self.knows_enough() {
                self.until = Until::Left;
                return Err(Invalid);
            }
        }
        Ok(())
    }

    fn knows_enough(&self) -> bool {
        let is_there = |member: Member| self.places[member as usize].range().is_some();
        is_there(Member::SessionId) && is_there(Member::SessionUpdate) && self.twice == 0
    }

    /// Keeps the place of a value that `pass` passes over.
    fn noted(
        &mut self,
        member: Member,
        pass: impl FnOnce(&mut Self) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let start = self.reader.position();
        pass(self)?;
        let place = &mut self.places[member as usize];
        if place.1 != 0 {
            self.twice |= 1 << member as u32;
        }
        *place = Place(start as u32, self.reader.position() as u32);
        Ok(())
    }

    fn finish(self, text: &'a str) -> Scan<'a> {
        let Self { reader, places, twice, kind, .. } = self;
        let mut scan = Scan { text, places, twice, kind, has_halves: reader.has_halves() };
        if twice != 0 {
            scan.kind = UpdateKind::Other;
        }
        scan
    }
}

/// The reason why a line is refused. It is read again for that, by a parser that keeps one.
#[cold]
fn not_json(text: &str, looks_like_message: bool) -> Malformed<'_> {
    let read = serde_json::from_str::<IgnoredAny>(text);
    let unknown = || serde::de::Error::custom("not an object of JSON");
    refused(read.err().unwrap_or_else(unknown), looks_like_message)
}

fn refused<'a>(source: serde_json::Error, looks_like_message: bool) -> Malformed<'a> {
    Malformed::NotJson { column: source.column(), looks_like_message, source }
}

#[cfg(test)]
mod tests {
    use super::names::KINDS;
    use super::*;
    use crate::Message;

    fn scanned(line: &str) -> Scan<'_> {
        scan(line.as_bytes()).expect(line)
    }

    fn update(update: &str) -> String {
        format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
    }

    // quirk discriminator-last (agents on SDKs that sort members): the kind of an update is read wherever it stands
    #[test]
    fn the_kind_is_found_in_any_place() {
        let long = "x".repeat(5000);
        for (name, kind) in KINDS {
            let name = std::str::from_utf8(name).expect("ASCII");
            let name = format!(r#""sessionUpdate":"{name}""#);
            for text in [
                format!(r#"{{{name},"content":{{"type":"text","text":"{long}"}}}}"#),
                format!(r#"{{"content":{{"type":"text","text":"{long}"}},{name}}}"#),
                format!(r#"{{"rawInput":{{"sessionUpdate":"notice"}},"a":"sessionUpdate",{name}}}"#),
                format!(
                    r#"{{"a":["sessionUpdate","\"sessionUpdate\":\"x"], {name} ,"_meta":{{"sessionUpdate":"x"}}}}"#
                ),
            ] {
                assert_eq!(scanned(&update(&text)).kind(), *kind, "{text}");
            }
        }
        let escaped = update(r#"{"session\u0055pdate":"\u0070l\u0061n"}"#);
        assert_eq!(scanned(&escaped).kind(), UpdateKind::Plan);
    }

    // FR-8: the kind is the update's own member, and a word elsewhere is none
    #[test]
    fn other_members_are_no_kind() {
        for text in [
            r#"{}"#,
            r#"{"sessionUpdate":"unheard_of"}"#,
            r#"{"sessionUpdate":7}"#,
            r#"{"sessionUpdate":"pl\ud800an"}"#,
            r#"{"sessionUpdate":"plan and what is longer than any kind that is known \u0020"}"#,
            r#"{"x":{"sessionUpdate":"plan"}}"#,
            r#"[{"sessionUpdate":"plan"}]"#,
            r#"{"sessionUpdate":"plan","sessionUpdat\u0065":"plan"}"#,
        ] {
            assert_eq!(scanned(&update(text)).kind(), UpdateKind::Other, "{text}");
        }
        let elsewhere =
            r#"{"method":"m","update":{"sessionUpdate":"plan"},"params":[{"sessionUpdate":"plan"}]}"#;
        assert_eq!(scanned(elsewhere).kind(), UpdateKind::Other);
    }

    // FR-2: each member in its own object, with the place where it stands
    #[test]
    fn members_are_found_in_their_objects() {
        let line = r#" {"params" : {"update":{"sessionId":"inner","toolCallId":"c"},"_meta":{"sessionId":"m"},"session\u0049d": "s" },"id":7}"#;
        let scan = scanned(line);
        let value = |member| scan.value(member).map(RawValue::get);
        assert_eq!(value(Member::SessionId), Some("\"s\""));
        assert_eq!(value(Member::UpdateSessionId), Some("\"inner\""));
        assert_eq!(value(Member::ToolCallId), Some("\"c\""));
        assert_eq!(value(Member::Id), Some("7"));
        assert_eq!((value(Member::Method), value(Member::RequestId)), (None, None));
        assert_eq!(scan.span(Member::SessionId).map(|span| &line[span]), Some("\"s\""));
    }

    // contract 1.7: receivers differ in which of two members they take, so neither is taken
    #[test]
    fn a_member_that_stands_twice_has_no_place() {
        let twice = scanned(r#"{"method":"m","params":{"sessionId":"a","s\u0065ssionId":"b","x":1,"x":2}}"#);
        assert!(twice.is_ambiguous() && twice.span(Member::SessionId).is_none());
        assert_eq!(twice.doubled(), Some("params.sessionId"));
        let in_update = update(r#"{"sessionUpdate":"plan","toolCallId":1,"toolCallId":1}"#);
        assert_eq!(scanned(&in_update).doubled(), Some("params.update.toolCallId"));
        let updates = scanned(r#"{"params":{"update":{},"update":{"sessionUpdate":"plan"}}}"#);
        assert_eq!((updates.is_ambiguous(), updates.kind()), (true, UpdateKind::Other));
        let elsewhere = update(r#"{"x":1,"x":2,"content":{"sessionUpdate":"a","sessionUpdate":"b"}}"#);
        assert!(!scanned(&elsewhere).is_ambiguous());
        let root = Message::parse(br#"{"id":1,"id":2,"method":"m"}"#);
        assert!(matches!(root, Err(Malformed::NotAnEnvelope { .. })));
    }

    // contract 1.7: a member that stands twice is named as it stands
    #[test]
    fn members_are_named_by_their_places() {
        for (number, place) in PLACES.iter().enumerate() {
            let (object, name) = match place.strip_prefix("params.") {
                None => (Object::Root, *place),
                Some(name) => {
                    name.strip_prefix("update.").map_or((Object::Params, name), |name| (Object::Update, name))
                }
            };
            assert_eq!(object.member(name.as_bytes()).map(|member| member as usize), Some(number), "{place}");
        }
    }

    // quirk half-surrogate
    #[test]
    fn halves_are_seen() {
        for (text, has_halves) in [
            (r#""\ud83d""#, true),
            (r#""\ude00""#, true),
            (r#""\ud83d\ud83d\ude00""#, true),
            (r#""\uD83d\uDE00""#, false),
            (r#""\\ud83d""#, false),
            (r#"{"\ud800":1}"#, true),
        ] {
            let line = format!(r#"{{"method":"m","params":[{text}]}}"#);
            assert_eq!(scanned(&line).has_halves(), has_halves, "{text}");
        }
    }

    // FR-5: nesting costs memory in proportion to the line, never the stack
    #[test]
    fn levels_are_counted_across_words() {
        for depth in [1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 10_000] {
            let (open, close) = ("[{\"a\":".repeat(depth), "}]".repeat(depth));
            assert!(scan(format!(r#"{{"x":{open}1{close},"id":1}}"#).as_bytes()).is_ok(), "{depth}");
            let wrong = format!("{}]]", &close[..close.len() - 2]);
            assert!(scan(format!(r#"{{"x":{open}1{wrong}}}"#).as_bytes()).is_err(), "{depth}");
        }
    }
}
