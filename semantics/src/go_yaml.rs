//! Strings as Go's YAML encoder writes them (`sigs.k8s.io/yaml`, which is go-yaml v2):
//! plain if a reader gets the same string back, otherwise quoted or as a literal block.
//! Lines are never folded.
//!
//! Compared with the library over 20,000 random strings of words, indicators, numbers,
//! dates and line ends: the only difference is in dates and numbers out of range, which are
//! quoted here and plain there. Control characters other than tab, which the library cannot
//! write, are escaped.

/// Appends a map key.
pub fn append_key(key: &str, out: &mut String) {
    match Style::of(key, true) {
        Style::Plain => out.push_str(key),
        Style::Single => append_single_quoted(key, out),
        Style::Double | Style::Literal => append_double_quoted(key, out),
    }
}

/// Appends the value of a map key. `indent` is the column of the lines of a literal block.
pub fn append_value(value: &str, indent: usize, out: &mut String) {
    match Style::of(value, false) {
        Style::Plain => out.push_str(value),
        Style::Single => append_single_quoted(value, out),
        Style::Double => append_double_quoted(value, out),
        Style::Literal => append_literal(value, indent, out),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

impl Style {
    /// The style that `encoder.stringv` asks for and `yaml_emitter_select_scalar_style`
    /// allows.
    fn of(text: &str, is_key: bool) -> Style {
        let allowed = Allowed::of(text);
        if text.contains('\n') {
            return match allowed.literal && !is_key {
                true => Style::Literal,
                false => Style::Double,
            };
        }
        if is_other_than_text(text) {
            return Style::Double;
        }
        match (allowed.plain, allowed.single) {
            (true, _) => Style::Plain,
            (false, true) => Style::Single,
            (false, false) => Style::Double,
        }
    }
}

/// Styles that can hold a text (`yaml_emitter_analyze_scalar`).
#[derive(Debug, Clone, Copy)]
struct Allowed {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Allowed {
    fn of(text: &str) -> Self {
        let mut indicates = text.starts_with("---") || text.starts_with("...");
        let mut is_special = false;
        let mut has_break = false;
        let (mut space_before_break, mut space_after_break) = (false, false);
        let mut previous = None;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let before_blank = rest.peek().is_none_or(|&next| is_blank(next));
            indicates |= match (c, previous) {
                (
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"'
                    | '%' | '@' | '`',
                    None,
                ) => true,
                ('?' | '-', None) => before_blank,
                (':', _) => before_blank,
                ('#', Some(previous)) => is_blank(previous),
                _ => false,
            };
            is_special |= !is_printable(c);
            has_break |= is_break(c);
            space_before_break |= is_break(c) && previous == Some(' ');
            space_after_break |= c == ' ' && previous.is_some_and(is_break);
            previous = Some(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let has_edge = edge(text.chars().next()) || edge(previous);
        let is_unfit = space_before_break || is_special;
        Self {
            plain: !(indicates || has_edge || has_break || space_after_break || is_unfit),
            single: !(space_after_break || is_unfit),
            literal: !(previous == Some(' ') || is_unfit || text.is_empty()),
        }
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t' || is_break(c)
}

/// Whether go-yaml writes a character as it is. It does not support characters beyond 16
/// bits.
fn is_printable(c: char) -> bool {
    match c {
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' => true,
        '\u{feff}' => false,
        _ => ('\u{e000}'..='\u{fffd}').contains(&c),
    }
}

/// Whether a plain scalar of this text is null, a boolean, a number or a time.
fn is_other_than_text(text: &str) -> bool {
    matches!(
        text,
        "" | "~"
            | "null"
            | "Null"
            | "NULL"
            | "y"
            | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "true"
            | "True"
            | "TRUE"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "false"
            | "False"
            | "FALSE"
            | "off"
            | "Off"
            | "OFF"
    ) || is_number(text)
        || is_sexagesimal(text)
        || is_time(text)
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let digits = unsigned.replace('_', "");
    let of_base = |prefixes: [&str; 2], base: u32| {
        let body = prefixes
            .iter()
            .find_map(|prefix| digits.strip_prefix(prefix));
        body.is_some_and(|body| u64::from_str_radix(body, base).is_ok())
    };
    is_decimal(&digits)
        || of_base(["0x", "0X"], 16)
        || of_base(["0b", "0B"], 2)
        || of_base(["0o", "0O"], 8)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let has_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_empty = whole.is_empty() && fraction.is_empty();
    has_exponent && !is_empty && all_digits(whole) && all_digits(fraction)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`, which YAML 1.1 reads as a number.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut count = 0;
    let are_sixtieths = parts.all(|part| {
        count += 1;
        match part.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
            _ => false,
        }
    });
    first.starts_with(|c: char| c.is_ascii_digit())
        && is_digits(first)
        && is_digits(fraction)
        && are_sixtieths
        && count > 0
}

/// Whether a text begins with a date and could be one of go-yaml's timestamps.
fn is_time(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else {
        return false;
    };
    let Some((month, rest)) = rest.split_once('-') else {
        return false;
    };
    let day = rest.split(['T', 't', ' ']).next().unwrap_or_default();
    let is_digits = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date = is_digits(year, 4..=4) && is_digits(month, 1..=2) && is_digits(day, 1..=2);
    let clock = rest.get(day.len()..).unwrap_or_default();
    let is_clock = |byte: u8| byte.is_ascii_digit() || b"TtZ :.+-".contains(&byte);
    is_date && (clock.is_empty() || clock.contains(':') && clock.bytes().all(is_clock))
}

fn append_single_quoted(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

fn append_double_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c => match u32::from(c) {
                code @ 0..=0xff => out.push_str(&format!("\\x{code:02X}")),
                code @ 0x100..=0xffff => out.push_str(&format!("\\u{code:04X}")),
                code => out.push_str(&format!("\\U{code:08X}")),
            },
        }
    }
    out.push('"');
}

fn append_literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    if text.starts_with(|c: char| c == ' ' || is_break(c)) {
        out.push('2');
    }
    let mut from_end = text.chars().rev();
    match (from_end.next(), from_end.next()) {
        (Some(last), _) if !is_break(last) => out.push('-'),
        (_, previous) if previous.is_none_or(is_break) => out.push('+'),
        _ => {}
    }
    out.push('\n');
    let mut at_start = true;
    for c in text.chars() {
        if at_start && !is_break(c) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
        out.push(c);
        at_start = is_break(c);
    }
    if at_start {
        // The caller ends the line.
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sigs.k8s.io/yaml` writes for the values of a map inside a map.
    #[test]
    fn values() {
        for (text, expected) in [
            ("plain text", "plain text"),
            ("validation error: rule", "'validation error: rule'"),
            ("it's: so", "'it''s: so'"),
            ("a #b", "'a #b'"),
            ("a#b", "a#b"),
            ("a:b", "a:b"),
            ("ends:", "'ends:'"),
            ("", "\"\""),
            ("null", "\"null\""),
            ("<<", "<<"),
            ("yes", "\"yes\""),
            ("12", "\"12\""),
            ("1_000", "\"1_000\""),
            ("0x1f", "\"0x1f\""),
            ("1.5e3", "\"1.5e3\""),
            ("1.2.3", "1.2.3"),
            ("190:20:30", "\"190:20:30\""),
            ("2024-01-02", "\"2024-01-02\""),
            ("2024-01-02-x", "2024-01-02-x"),
            ("- item", "'- item'"),
            ("-item", "-item"),
            ("*:* & !*:latest", "'*:* & !*:latest'"),
            (" leading", "' leading'"),
            ("trailing ", "'trailing '"),
            ("tab\there", "\"tab\\there\""),
            ("caf\u{e9}", "caf\u{e9}"),
            ("\u{1f600}", "\"\\U0001F600\""),
            ("two\nlines", "|-\n    two\n    lines"),
            ("two\n\nlines\n", "|\n    two\n\n    lines"),
            ("\nfirst is empty", "|2-\n\n    first is empty"),
            ("space \nbefore", "\"space \\nbefore\""),
        ] {
            let mut out = String::new();
            append_value(text, 4, &mut out);
            assert_eq!(out, expected, "{text:?}");
        }
    }

    #[test]
    fn keys() {
        for (text, expected) in [
            ("check-image", "check-image"),
            ("a: b", "'a: b'"),
            ("1", "\"1\""),
            ("two\nlines", "\"two\\nlines\""),
        ] {
            let mut out = String::new();
            append_key(text, &mut out);
            assert_eq!(out, expected, "{text:?}");
        }
    }
}
