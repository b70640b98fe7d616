//! Text from policies and resources, made safe to show on a terminal.
//!
//! Escape sequences could repaint the screen and invisible characters could make one
//! name look like another; both are shown as escapes instead.

use std::borrow::Cow;

/// The text with every control, direction and invisible character escaped, line ends
/// included.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unsafe(character) {
            cleaned.extend(character.escape_default());
        } else {
            cleaned.push(character);
        }
    }
    Cow::Owned(cleaned)
}

/// The text cleaned, with its own line ends kept: each further line begins with
/// `indent`, so that no line of it can be taken for one of ours.
pub fn clean_lines(text: &str, indent: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(clean).collect();
    lines.join(&format!("\n{indent}"))
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{AD}'
                | '\u{61C}'
                | '\u{180E}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

/// `1 rule`, `2 rules`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("{number} {noun}")
    } else if let Some(stem) = noun.strip_suffix('y') {
        format!("{number} {stem}ies")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        for (text, expected) in [
            ("plain: é 日本 🎈", "plain: é 日本 🎈"),
            ("\x1b[31mred\x1b[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\x1b]8;;http://x\x07", "\\u{1b}]8;;http://x\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\rb\nc\td\u{7f}", "a\\rb\\nc\\td\\u{7f}"),
            ("user\u{202e}txt", "user\\u{202e}txt"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("line\u{2028}end", "line\\u{2028}end"),
        ] {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn lines_stay_lines_and_are_indented() {
        assert_eq!(
            clean_lines("one\npass: 9\r\n\x1b[2J\n", "  "),
            "one\n  pass: 9\n  \\u{1b}[2J"
        );
    }

    #[test]
    fn counts_have_plurals() {
        assert_eq!(count(1, "rule"), "1 rule");
        assert_eq!(count(0, "policy"), "0 policies");
    }
}
