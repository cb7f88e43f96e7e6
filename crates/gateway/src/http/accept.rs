//! What a client takes as an answer: the headers `Accept` and `Accept-Encoding` (RFC 9110, 12.5.1 and 12.5.3), for
//! everything that has more than one form.

use http::{HeaderMap, HeaderName, header};

/// The range that names a kind most exactly, which counts for it whatever the wider ones say; of two that are as exact the
/// first. None in it when the client does not take the kind, and outside when it says nothing of what it takes.
fn range(headers: &HeaderMap, header: &HeaderName, kind: &str) -> Option<Option<Range>> {
    let mut said = headers.get_all(header).into_iter().peekable();
    said.peek()?;
    let lists = said.filter_map(|value| value.to_str().ok());
    let ranges = lists.flat_map(|value| value.split(',')).filter_map(|range| Range::read(range, kind));
    Some(ranges.reduce(|best, next| if next.exactness > best.exactness { next } else { best }))
}

/// How much a client wants a kind, in thousandths; 0 means not at all. None when it says nothing of what it takes.
fn quality(headers: &HeaderMap, kind: &str) -> Option<u16> {
    range(headers, &header::ACCEPT, kind).map(|range| range.map_or(0, |range| range.quality))
}

/// Whether a client takes what is encoded so: the header `Accept-Encoding`. One that does not say takes anything.
pub(super) fn takes_encoding(headers: &HeaderMap, coding: &str) -> bool {
    range(headers, &header::ACCEPT_ENCODING, coding)
        .is_none_or(|range| range.is_some_and(|range| range.quality > 0))
}

/// Whether a client takes one of these kinds; None when it does not say.
pub(super) fn accepts(headers: &HeaderMap, kinds: &[&str]) -> Option<bool> {
    let mut qualities = kinds.iter().map(|kind| quality(headers, kind));
    qualities.try_fold(false, |any, quality| Some(any || quality? > 0))
}

/// Whether a client wants `kind` rather than `usual`, which is for those who do not care.
pub(super) fn prefers(headers: &HeaderMap, kind: &str, usual: &str) -> bool {
    let (Some(Some(range)), Some(otherwise)) =
        (range(headers, &header::ACCEPT, kind), quality(headers, usual))
    else {
        return false;
    };
    // It says the name of the kind, and not only that it takes others too.
    let (wanted, is_named) = (range.quality, range.exactness == Exactness::ProblemKind);
    wanted > otherwise || (wanted > 0 && wanted == otherwise && is_named)
}

/// A range that a kind is in.
struct Range {
    exactness: Exactness,
    quality: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exactness {
    Anything,
    Type,
    ProblemKind,
}

impl Range {
    /// Reads one range of a list; None when `kind` is not in it.
    fn read(range: &str, kind: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next()?;
        let of_type = |of: &str| kind.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(of));
        let exactness = if ["*/*", "*"].contains(&name) {
            Exactness::Anything
        } else if name.eq_ignore_ascii_case(kind) {
            Exactness::ProblemKind
        } else if name.strip_suffix("/*").is_some_and(of_type) {
            Exactness::Type
        } else {
            return None;
        };
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        // What is no weight is as none: the client has named the kind.
        let quality = weight.and_then(thousandths).unwrap_or(1000);
        Some(Self { exactness, quality })
    }
}

/// A weight: 0 to 1 with at most three digits behind the point.
fn thousandths(weight: &str) -> Option<u16> {
    let (whole, rest) = weight.split_once('.').unwrap_or((weight, ""));
    if rest.len() > 3 || !rest.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let rest: u16 = format!("{rest:0<3}").parse().ok()?;
    match whole {
        "0" => Some(rest),
        "1" if rest == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const STREAM: &str = "text/event-stream";
    const JSON: &str = "application/json";

    fn headers(values: &[&'static str]) -> HeaderMap {
        let values = values.iter().map(|value| (header::ACCEPT, HeaderValue::from_static(value)));
        values.collect()
    }

    // HT-2: what a client takes is found in a list; the most exact range counts, and a weight of 0 refuses
    #[test]
    fn the_most_exact_range_counts() {
        for (said, expected) in [
            (&["text/event-stream"][..], 1000),
            (&["a/b, text/event-stream;q=0.5"], 500),
            (&["*/*"], 1000),
            (&["text/*"], 1000),
            (&["Text/Event-Stream"], 1000),
            (&["TEXT/*;Q=0.25"], 250),
            (&["text/event-stream;q=0"], 0),
            (&["text/event-stream;q=0.000, */*"], 0),
            (&["*/*, text/event-stream ; q = 0"], 0),
            (&["text/*;q=0, */*;q=0.1"], 0),
            (&["text/*;q=0", "text/event-stream;q=0.1"], 100),
            (&["*/*;q=0.2, text/*;q=0.3"], 300),
            (&["text/event-stream;charset=utf-8;q=0.7"], 700),
            (&["text/event-stream;q=1.000"], 1000),
            (&["text/event-stream;q=2"], 1000),
            (&["text/event-stream;q=0.0001"], 1000),
            (&["text/event-stream;q="], 1000),
            (&["text/event-stream;q=0, text/event-stream"], 0),
            (&["application/json"], 0),
            (&["text/html, a/*"], 0),
            (&["text"], 0),
            (&[""], 0),
        ] {
            assert_eq!(quality(&headers(said), STREAM), Some(expected), "{said:?}");
            assert_eq!(accepts(&headers(said), &[STREAM]), Some(expected > 0), "{said:?}");
        }
        assert_eq!(accepts(&HeaderMap::new(), &[STREAM]), None);
        for (said, expected) in [
            ("application/json", true),
            ("application/*;q=0.1", true),
            ("*/*;q=0", false),
            ("text/event-stream;q=0, application/json;q=0.0", false),
            ("text/html", false),
        ] {
            assert_eq!(accepts(&headers(&[said]), &[JSON, STREAM]), Some(expected), "{said}");
        }
    }

    // inspector: what is there compressed only is for clients that take it so
    #[test]
    fn an_encoding_is_taken_or_not() {
        for (said, expected) in [
            (&["gzip, deflate, br"][..], true),
            (&["br;q=1, *;q=0.1"], true),
            (&["GZIP;q=0.2"], true),
            (&["identity"], false),
            (&["gzip;q=0, *"], false),
            (&[""], false),
            (&[], true),
        ] {
            let said = said.iter().map(|value| (header::ACCEPT_ENCODING, HeaderValue::from_static(value)));
            let headers: HeaderMap = said.collect();
            assert_eq!(takes_encoding(&headers, "gzip"), expected, "{headers:?}");
        }
    }

    // contract 1.6: a stream is for a request that names it, and not for one that takes anything
    #[test]
    fn the_usual_form_is_for_those_who_do_not_care() {
        for (said, expected) in [
            (&["text/event-stream"][..], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "text/event-stream"], true),
            (&["text/event-stream, */*;q=0.1"], true),
            (&["text/*"], true),
            (&["application/json;q=0, */*"], true),
            (&["application/json;q=0.5, text/event-stream;q=0.4"], false),
            (&["text/event-stream;q=0"], false),
            (&["text/event-stream;q=0, */*;q=0"], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&[], false),
        ] {
            assert_eq!(prefers(&headers(said), STREAM, JSON), expected, "{said:?}");
        }
    }
}
