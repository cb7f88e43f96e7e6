//! The options of a question, one of them selected.
//!
//! Pure; owned by the question on the screen. Invariants: a letter stands for one option and for the kind that a person
//! expects of it; what is selected at first allows nothing for longer than this once, if there is a choice; the lines never need more rows
//! than there are.

use super::paint::Paint;
use super::question::{Choice, Kind};
use crate::keyboard::Key;

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressed {
    /// The answer: an option, by its place.
    Chosen(usize),
    /// Another option is selected.
    Moved,
    Nothing,
}

#[derive(Debug)]
pub(super) struct Menu {
    letters: Vec<Option<char>>,
    selected: usize,
}

impl Menu {
    pub(super) fn new(options: &[Choice]) -> Self {
        let of_kind = |kind| options.iter().position(|choice| choice.kind == kind);
        let harmless = [Kind::AllowOnce, Kind::RejectOnce, Kind::RejectAlways, Kind::Other];
        let selected = harmless.into_iter().find_map(of_kind).unwrap_or_default();
        Self { letters: letters(options), selected }
    }

    pub(super) fn press(&mut self, key: Key) -> Pressed {
        let last = self.letters.len().saturating_sub(1);
        self.selected = match key {
            Key::Up => self.selected.checked_sub(1).unwrap_or(last),
            Key::Down if self.selected == last => 0,
            Key::Down => self.selected + 1,
            Key::Enter => return Pressed::Chosen(self.selected),
            Key::Letter(letter) => {
                let at = self.letters.iter().position(|own| *own == Some(letter));
                return at.map_or(Pressed::Nothing, Pressed::Chosen);
            }
            _ => return Pressed::Nothing,
        };
        Pressed::Moved
    }

    /// One row for each option, and one that says how to choose. When there are fewer `rows`, those around the
    /// selected one.
    pub(super) fn lines(&self, options: &[Choice], rows: usize, paint: Paint) -> Vec<String> {
        let room = rows.saturating_sub(1).clamp(1, options.len().max(1));
        let first = self.selected.saturating_sub(room / 2).min(options.len().saturating_sub(room));
        let option = |(at, choice): (usize, &Choice)| {
            let letter = self.letters[at].map_or(' ', |letter| letter);
            let (mark, name) = match at == self.selected {
                true => (paint.notable("❯"), paint.bold(&choice.name)),
                false => (" ".to_owned(), choice.name.clone()),
            };
            format!("  {mark} {} {name}", paint.kind(letter))
        };
        let mut lines: Vec<String> = options.iter().enumerate().skip(first).take(room).map(option).collect();
        let place = match room < options.len() {
            true => format!("{} of {}: ", self.selected + 1, options.len()),
            false => String::new(),
        };
        let hint = format_args!("  {place}up, down, enter, a letter; esc cancels");
        lines.push(paint.dim(hint));
        lines
    }
}

impl Menu {
    /// One row for each option, with its letter, where nothing can be selected.
    pub(super) fn plain_lines(&self, options: &[Choice]) -> Vec<String> {
        let letters = self.letters.iter().map(|letter| letter.unwrap_or(' '));
        letters.zip(options).map(|(letter, choice)| format!("    {letter} {}", choice.name)).collect()
    }
}

/// Yes, always, no, deny for the kinds; else a letter of the name, if one is free.
pub(super) fn letters(options: &[Choice]) -> Vec<Option<char>> {
    let mut letters = vec![None; options.len()];
    for (kind, letter) in
        [(Kind::AllowOnce, 'y'), (Kind::AllowAlways, 'a'), (Kind::RejectOnce, 'n'), (Kind::RejectAlways, 'd')]
    {
        if let Some(at) = options.iter().position(|choice| choice.kind == kind) {
            letters[at] = Some(letter);
        }
    }
    for (at, choice) in options.iter().enumerate() {
        if letters[at].is_some() {
            continue;
        }
        // These four mean something, also where no option has that meaning.
        let free = |letter: &char| !"yand".contains(*letter) && !letters.contains(&Some(*letter));
        let of_name = choice.name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase());
        letters[at] = of_name.chain('1'..='9').find(free);
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint::new(false);

    fn options(all: &[(&str, Kind)]) -> Vec<Choice> {
        let choice =
            |(name, kind): &(&str, Kind)| Choice { id: String::new(), name: (*name).to_owned(), kind: *kind };
        all.iter().map(choice).collect()
    }

    fn shown(options: &[Choice]) -> String {
        let lines = Menu::new(options).lines(options, 20, PLAIN);
        lines[..lines.len() - 1].join("\n")
    }

    // contract 6: letters go by the kind of an option, and two of a kind have two; what is selected allows once at most
    #[test]
    fn options_have_letters() {
        use Kind::{AllowAlways, AllowOnce, Other, RejectAlways, RejectOnce};
        for (all, expected) in [
            (
                vec![
                    ("Yes", AllowOnce),
                    ("Always", AllowAlways),
                    ("No", RejectOnce),
                    ("Never", RejectAlways),
                ],
                "  ❯ y Yes\n    a Always\n    n No\n    d Never",
            ),
            // Gemini puts always first; vibe has two of them.
            (
                vec![
                    ("All", AllowAlways),
                    ("All tools", AllowAlways),
                    ("One", AllowOnce),
                    ("Quit", RejectOnce),
                ],
                "    a All\n    l All tools\n  ❯ y One\n    n Quit",
            ),
            (vec![("Always", AllowAlways), ("No", RejectOnce)], "    a Always\n  ❯ n No"),
            (vec![("Always", AllowAlways), ("Never", RejectAlways)], "    a Always\n  ❯ d Never"),
            (vec![("Yes", Other), ("yes", Other), ("漢", Other)], "  ❯ e Yes\n    s yes\n    1 漢"),
        ] {
            assert_eq!(shown(&options(&all)), expected);
        }
    }

    // contract 6: arrows go around, enter and letters choose, what means nothing does nothing
    #[test]
    fn keys_choose() {
        let options = options(&[("a", Kind::AllowAlways), ("y", Kind::AllowOnce), ("n", Kind::RejectOnce)]);
        for (keys, chosen) in [
            (vec![Key::Enter], Some(1)),
            (vec![Key::Down, Key::Enter], Some(2)),
            (vec![Key::Down, Key::Down, Key::Enter], Some(0)),
            (vec![Key::Up, Key::Up, Key::Enter], Some(2)),
            (vec![Key::Letter('a')], Some(0)),
            (vec![Key::Letter('n')], Some(2)),
            (vec![Key::Letter('x'), Key::Letter('d'), Key::Escape, Key::Interrupt, Key::Suspend], None),
        ] {
            let mut menu = Menu::new(&options);
            let pressed: Vec<Pressed> = keys.iter().map(|key| menu.press(*key)).collect();
            let last = pressed.last().copied();
            assert_eq!(last, Some(chosen.map_or(Pressed::Nothing, Pressed::Chosen)), "{keys:?}");
        }
    }

    // contract 6: any number of options fits any screen
    #[test]
    fn many_options_are_a_window() {
        let names: Vec<String> = (1..=30).map(|n| format!("Option {n}")).collect();
        let all: Vec<(&str, Kind)> = names.iter().map(|name| (name.as_str(), Kind::Other)).collect();
        let options = options(&all);
        let mut menu = Menu::new(&options);
        for (downs, rows, first, last, selected) in
            [(0, 5, 1, 4, 1), (3, 5, 2, 5, 4), (26, 5, 27, 30, 30), (0, 2, 30, 30, 30), (0, 0, 30, 30, 30)]
        {
            (0..downs).for_each(|_| assert_eq!(menu.press(Key::Down), Pressed::Moved));
            let lines = menu.lines(&options, rows, PLAIN);
            assert_eq!(lines.len(), last - first + 2);
            assert!(lines[0].ends_with(&format!(" Option {first}")), "{lines:?}");
            assert!(lines[lines.len() - 2].ends_with(&format!(" Option {last}")), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains('❯') && line.ends_with(&format!(" {selected}"))));
            assert!(lines[lines.len() - 1].contains(&format!("{selected} of 30")), "{lines:?}");
        }
    }
}
