//! "Did you mean": the closest of the known names. For messages only; nothing is ever chosen by it.

use crate::clean::line;

/// No slip is this long, and the cost grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate that `word` is most probably a slip of, if any is close enough. Case makes no difference.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let lower = Some(word.to_lowercase()).filter(|word| word.len() <= LONGEST)?;
    let near = candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST);
    near.map(|candidate| (strsim::levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The most that is listed of what there is.
const LISTED: usize = 40;

/// `there_is_none` of what was said, what there is instead, and the nearest of its `words`.
pub(crate) fn unlisted<'a>(
    there_is_none: &str,
    said: &str,
    words: impl IntoIterator<Item = &'a str>,
    shown: impl IntoIterator<Item = String>,
) -> String {
    let mut shown: Vec<String> = shown.into_iter().collect();
    let more = shown.len().saturating_sub(LISTED);
    shown.truncate(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let listed = match shown.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}{more}", shown.join(", ")),
    };
    let meant = nearest(said, words).map(|meant| format!("; did you mean {}?", line(meant, 100)));
    format!("{there_is_none}; {listed}{}", meant.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    // contract 6: an unknown name is an error; the message helps
    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let known = ["listen", "default_agent"];
        assert_eq!(nearest("listenn", known), Some("listen"));
        assert_eq!(nearest("defualt_agent", known), Some("default_agent"));
        assert_eq!(nearest("LISTEN", known), Some("listen"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }
}
