//! "Did you mean": the closest of the known names. For messages only; nothing is ever chosen by it.

/// The candidate that `word` is most probably a slip of, if any is close enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, remove, replace, case aside) between two words.
fn distance(left: &str, right: &str) -> usize {
    // No slip is this long, and the cost grows with the product of the lengths.
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let mut above: Vec<usize> = (0..=left.len()).collect();
    for (row, wanted) in right.to_lowercase().chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, found) in left.iter().enumerate() {
            let replaced = above[column] + usize::from(*found != wanted);
            line.push(replaced.min(above[column + 1] + 1).min(line[column] + 1));
        }
        above = line;
    }
    above[left.len()]
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
