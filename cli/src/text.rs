//! Makes text from policies and resources safe to show on a terminal.
//!
//! Escape sequences could repaint the screen and invisible characters could make names look
//! alike; both are shown as escapes.

use std::borrow::Cow;

/// Escapes every control, direction and invisible character, including line ends.
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

/// Escapes the text but keeps its line ends.
pub fn clean_text(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(clean).collect();
    lines.join("\n")
}

/// Escapes characters that JSON itself allows: direction and invisible characters, and line
/// ends that only some readers recognise. The JSON value is unchanged.
pub fn clean_json(json: &str) -> Cow<'_, str> {
    // Below U+007F such characters occur only between values.
    let escaped = |character: char| character >= '\u{7F}' && is_unsafe(character);
    if !json.contains(escaped) {
        return Cow::Borrowed(json);
    }
    let mut cleaned = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                cleaned.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            cleaned.push(character);
        }
    }
    Cow::Owned(cleaned)
}

/// Escapes the text but keeps its line ends: each further line begins with `indent`, so
/// that no line looks like one of ours, nor like a command to a CI system that reads the
/// log.
pub fn clean_lines(text: &str, indent: &str) -> String {
    let lines = text
        .trim_end()
        .lines()
        .map(|line| without_command(clean(line)));
    let lines: Vec<_> = lines.collect();
    lines.join(&format!("\n{indent}"))
}

/// Runners of GitHub and Azure recognise commands after white space too.
fn without_command(line: Cow<'_, str>) -> Cow<'_, str> {
    let start = line.trim_start();
    let is_command = ["::", "##[", "##vso[", "##teamcity["]
        .iter()
        .any(|command| start.starts_with(command));
    match start.chars().next() {
        Some(first) if is_command => {
            let rest = start.get(first.len_utf8()..).unwrap_or("");
            Cow::Owned(format!("{}{rest}", first.escape_unicode()))
        }
        _ => line,
    }
}

/// At most that many characters of a text, with `…` for the rest.
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or(""))),
        None => Cow::Borrowed(text),
    }
}

/// A source line for an excerpt: the renderer handles control characters; other invisible
/// characters become replacement characters.
pub fn visible(line: &str) -> Cow<'_, str> {
    let hidden = |character: char| !character.is_control() && is_unsafe(character);
    if line.contains(hidden) {
        Cow::Owned(line.replace(hidden, "\u{FFFD}"))
    } else {
        Cow::Borrowed(line)
    }
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

/// Display name of a rule: `policy/rule`, or only the policy if its rules have no names.
pub fn rule_name(policy: &str, rule: &str) -> String {
    match rule {
        "" => policy.to_owned(),
        rule => format!("{policy}/{rule}"),
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
    fn excerpts_have_a_character_for_each_character() {
        let line = "\ta\u{202e}b\u{200b}\u{e0041}é";
        assert_eq!(visible(line), "\ta\u{fffd}b\u{fffd}\u{fffd}é");
    }

    #[test]
    fn lines_stay_lines_and_are_indented() {
        assert_eq!(
            clean_lines("one\npass: 9\r\n\x1b[2J\n", "  "),
            "one\n  pass: 9\n  \\u{1b}[2J"
        );
    }

    #[test]
    fn a_log_that_is_read_for_commands_finds_none() {
        for (text, expected) in [
            ("::error::x", "\\u{3a}:error::x"),
            ("a\n  ::add-mask::x", "a\n  \\u{3a}:add-mask::x"),
            ("##vso[task.complete]", "\\u{23}#vso[task.complete]"),
            ("a :: b", "a :: b"),
            ("## a heading", "## a heading"),
        ] {
            assert_eq!(clean_lines(text, "  "), expected);
        }
    }

    #[test]
    fn json_means_the_same_without_its_invisible_characters() {
        let text = "a\u{202e}b\u{2028}\u{7f}\u{9b}é🎈\u{e0041}\n\u{1b}";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let cleaned = clean_json(&json);
        assert_eq!(
            cleaned,
            "[\n  \"a\\u202eb\\u2028\\u007f\\u009bé🎈\\udb40\\udc41\\n\\u001b\"\n]"
        );
        let read: Vec<String> = serde_json::from_str(&cleaned).unwrap();
        assert_eq!(read, [text]);
        assert_eq!(clean_json("[\"é\"]"), "[\"é\"]");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        for (text, expected) in [("", ""), ("äöü", "äöü"), ("äöüß", "äöü…")] {
            assert_eq!(shortened(text, 3), expected);
        }
    }

    #[test]
    fn counts_have_plurals() {
        assert_eq!(count(1, "rule"), "1 rule");
        assert_eq!(count(0, "policy"), "0 policies");
    }
}
