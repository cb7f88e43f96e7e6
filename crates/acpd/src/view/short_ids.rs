//! Short forms of session ids for people: their ends, which are random, where their beginnings are the time.
//!
//! Pure. Invariant: what is shown names one session of those that it was made for, by its end and by no beginning.

/// Characters that are shown at least.
const LEAST: usize = 6;
/// Characters of an id that is shown alone: none of some thousand others is likely to end so.
const ALONE: usize = 8;

/// The shortest end of each that no other one has, as an end or as a beginning.
pub(crate) fn short_ends(ids: &[&str]) -> Vec<String> {
    let backwards: Vec<String> = ids.iter().map(|id| id.chars().rev().collect()).collect();
    let mut ends = backwards.clone();
    ends.sort_unstable();
    ends.dedup();
    let mut begins: Vec<&str> = ids.to_vec();
    begins.sort_unstable();
    ids.iter().zip(&backwards).map(|(id, end)| shown(shortest(end, id, &ends, &begins))).collect()
}

/// `id` is `end` backwards; the lists are sorted.
fn shortest(end: &str, id: &str, ends: &[String], begins: &[&str]) -> String {
    let at = ends.partition_point(|other| other.as_str() < end);
    let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| ends.get(at));
    let shared = |other: &String| end.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let mut length = LEAST.max(neighbours.map(shared).max().map_or(0, |shared| shared + 1));
    loop {
        let short = last(id, length);
        let from = begins.partition_point(|other| *other < short);
        let begin_so = begins[from..].iter().take_while(|other| other.starts_with(short));
        if short.len() == id.len() || begin_so.count() == 0 {
            return short.to_owned();
        }
        length += 1;
    }
}

/// The end of an id, for where nothing is known of the others.
pub(crate) fn short_id(id: &str) -> String {
    shown(last(id, ALONE).to_owned())
}

/// The last characters, `most` of them (at least one) or all.
fn last(id: &str, most: usize) -> &str {
    let from = id.char_indices().nth_back(most - 1).map_or(0, |(at, _)| at);
    &id[from..]
}

/// Ids are a daemon's, and so is whatever is not shown as it is.
fn shown(id: String) -> String {
    if id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return id;
    }
    id.chars().map(|c| if c.is_ascii_graphic() { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: lists show the shortest unique end of at least 6 characters
    #[test]
    fn ends_are_as_long_as_it_takes() {
        for (ids, ends) in [
            (&["0199-aaaaaa111111"][..], &["111111"][..]),
            (&["0199-aaaaaa111111", "0199-aaaaaa222222"], &["111111", "222222"]),
            (
                &["0199-aaaaab111111", "0199-aaaaac111111", "0199-aaaaaa333333"],
                &["b111111", "c111111", "333333"],
            ),
            // An end that is the beginning of another would name two.
            (&["0199-a-222222", "222222-b-333333"], &["-222222", "333333"]),
            (&["a", "ba", "\u{1b}"], &["a", "ba", "\u{fffd}"]),
            (&["same", "same"], &["same", "same"]),
        ] {
            assert_eq!(short_ends(ids), ends);
        }
    }

    // contract 7.1: an id that is shown alone is its end
    #[test]
    fn an_id_alone_is_its_end() {
        assert_eq!(short_id("0199aaaa-bbbb-7ccc-8ddd-eeee12345678"), "12345678");
        assert_eq!(short_id("s\u{7}"), "s\u{fffd}");
    }
}
