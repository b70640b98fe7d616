//! Translates Go's regular expressions (RE2 with Perl flags) into the syntax of the `regex`
//! crates (docs/spec/jmespath.md §9.1).
//!
//! Returns the translated pattern and the names of its groups, or Go's error text. Nothing
//! is matched here. The traversal uses an explicit stack, as Go's parser does, and performs
//! its checks in Go's order.

use std::ops::RangeInclusive;

/// A pattern in the syntax of the `regex` crates.
#[derive(Debug)]
pub struct Translated {
    /// The pattern in the syntax of `regex-syntax`.
    pub pattern: String,
    /// Names of the groups, from 1 on.
    pub names: Vec<Option<Box<str>>>,
}

/// Maximum nesting of groups in Go.
const MAX_NESTING: usize = 1000;

/// Maximum repeat count, and product of nested counts.
const MAX_REPEAT: u64 = 1000;

/// A class that matches no character.
const NOTHING: &str = "[^\\x{0}-\\x{10FFFF}]";

/// Translates a pattern.
///
/// # Errors
/// Go's text.
pub fn translate(pattern: &str) -> Result<Translated, String> {
    let mut translator = Translator {
        pattern,
        groups: Vec::new(),
        current: Group::default(),
        names: Vec::new(),
        last_repeat: None,
    };
    translator.run()?;
    if !translator.groups.is_empty() {
        return Err(error("missing closing )", pattern));
    }
    let (pattern, _) = translator.current.finish();
    Ok(Translated {
        pattern,
        names: translator.names,
    })
}

fn error(problem: &str, fragment: &str) -> String {
    format!("error parsing regexp: {problem}: `{fragment}`")
}

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_REPEAT: &str = "invalid repeat count";

/// The part of `from` before `rest`, which is a suffix of it.
fn until<'t>(from: &'t str, rest: &str) -> &'t str {
    from.get(..from.len() - rest.len()).unwrap_or(from)
}

/// An element of a sequence.
struct Item {
    text: String,
    /// Whether a repetition applies to it; a change of flags is not an atom.
    is_atom: bool,
    is_repeated: bool,
    /// Largest product of nested repeat counts in it.
    product: u64,
}

/// A group under construction, or the whole pattern.
#[derive(Default)]
struct Group {
    open: String,
    /// Finished alternatives, each with its `|`.
    alternatives: String,
    product: u64,
    items: Vec<Item>,
}

impl Group {
    fn end_alternative(&mut self) {
        for item in self.items.drain(..) {
            self.alternatives.push_str(&item.text);
            self.product = self.product.max(item.product);
        }
    }

    fn finish(mut self) -> (String, u64) {
        self.end_alternative();
        (self.alternatives, self.product)
    }
}

struct Translator<'p> {
    pattern: &'p str,
    groups: Vec<Group>,
    current: Group,
    names: Vec<Option<Box<str>>>,
    /// Text from the operator on, if the previous element is a repetition.
    last_repeat: Option<&'p str>,
}

type Step<'p> = Result<&'p str, String>;

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        let mut rest = self.pattern;
        while let Some(c) = rest.chars().next() {
            let after = rest.get(c.len_utf8()..).unwrap_or_default();
            let last_repeat = self.last_repeat.take();
            rest = match c {
                '(' => self.open_group(rest)?,
                ')' => self.close_group(after)?,
                '|' => {
                    self.current.end_alternative();
                    self.current.alternatives.push('|');
                    after
                }
                '^' | '$' | '.' => self.atom(c.to_string(), after),
                '[' => self.class(rest)?,
                '*' | '+' | '?' => self.repeat(rest, after, &c.to_string(), None, last_repeat)?,
                '{' => self.counted(rest, after, last_repeat)?,
                '\\' => self.escape(rest)?,
                c => self.literal(Some(c), after),
            };
        }
        Ok(())
    }

    fn atom(&mut self, text: String, rest: &'p str) -> &'p str {
        self.current.items.push(Item {
            text,
            is_atom: true,
            is_repeated: false,
            product: 1,
        });
        rest
    }

    /// A character; `None` for a surrogate, which no text contains.
    fn literal(&mut self, c: Option<char>, rest: &'p str) -> &'p str {
        let text = match c {
            Some(c) => regex_syntax::escape(c.encode_utf8(&mut [0; 4])),
            None => NOTHING.to_owned(),
        };
        self.atom(text, rest)
    }

    fn push_group(&mut self, open: String) -> Result<(), String> {
        if self.groups.len() >= MAX_NESTING {
            return Err(error("expression nests too deeply", self.pattern));
        }
        let group = Group {
            open,
            ..Group::default()
        };
        self.groups
            .push(std::mem::replace(&mut self.current, group));
        Ok(())
    }

    /// `(`, a named group, or flags.
    fn open_group(&mut self, text: &'p str) -> Step<'p> {
        let Some(inside) = text.strip_prefix("(?") else {
            self.names.push(None);
            self.push_group("(".into())?;
            return Ok(text.get(1..).unwrap_or_default());
        };
        let name = inside.strip_prefix("P<").or(inside.strip_prefix('<'));
        match name {
            Some(name) if !name.is_empty() => self.named_group(text, name),
            _ => self.flags(text, inside),
        }
    }

    fn named_group(&mut self, text: &'p str, name: &'p str) -> Step<'p> {
        let Some((name, rest)) = name.split_once('>') else {
            return Err(error("invalid named capture", text));
        };
        let valid = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(valid) {
            return Err(error("invalid named capture", until(text, rest)));
        }
        self.names.push(Some(name.into()));
        self.push_group("(".into())?;
        Ok(rest)
    }

    /// `(?i)`, `(?i-s:`, `(?:`.
    fn flags(&mut self, text: &'p str, inside: &'p str) -> Step<'p> {
        let mut rest = inside;
        let (mut on, mut off) = (String::new(), String::new());
        let (mut negative, mut saw_flag) = (false, false);
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                'i' | 'm' | 's' | 'U' => {
                    saw_flag = true;
                    on.retain(|flag| flag != c);
                    off.retain(|flag| flag != c);
                    if negative { &mut off } else { &mut on }.push(c);
                }
                '-' if !negative => (negative, saw_flag) = (true, false),
                ':' | ')' if !negative || saw_flag => {
                    let flags = if off.is_empty() {
                        on
                    } else {
                        format!("{on}-{off}")
                    };
                    if c == ':' {
                        self.push_group(format!("(?{flags}:"))?;
                    } else if !flags.is_empty() {
                        self.current.items.push(Item {
                            text: format!("(?{flags})"),
                            is_atom: false,
                            is_repeated: false,
                            product: 1,
                        });
                    }
                    return Ok(rest);
                }
                _ => break,
            }
        }
        Err(error(
            "invalid or unsupported Perl syntax",
            until(text, rest),
        ))
    }

    fn close_group(&mut self, rest: &'p str) -> Step<'p> {
        let Some(outer) = self.groups.pop() else {
            return Err(error("unexpected )", self.pattern));
        };
        let group = std::mem::replace(&mut self.current, outer);
        let open = group.open.clone();
        let (text, product) = group.finish();
        self.current.items.push(Item {
            text: format!("{open}{text})"),
            is_atom: true,
            is_repeated: false,
            product: product.max(1),
        });
        Ok(rest)
    }

    /// An operator `*`, `+`, `?` or `{…}`, parsed up to `after`.
    fn repeat(
        &mut self,
        before: &'p str,
        after: &'p str,
        operator: &str,
        count: Option<(u64, Option<u64>)>,
        last_repeat: Option<&'p str>,
    ) -> Step<'p> {
        let (lazy, after) = match after.strip_prefix('?') {
            Some(after) => ("?", after),
            None => ("", after),
        };
        if let Some(last) = last_repeat {
            let fragment = until(last, after);
            return Err(error("invalid nested repetition operator", fragment));
        }
        let Some(item) = self.current.items.iter_mut().rfind(|item| item.is_atom) else {
            let fragment = until(before, after);
            return Err(error("missing argument to repetition operator", fragment));
        };
        item.text = if item.is_repeated {
            format!("(?:{}){operator}{lazy}", item.text)
        } else {
            format!("{}{operator}{lazy}", item.text)
        };
        item.is_repeated = true;
        if let Some((min, max)) = count {
            item.product = match max {
                // Go does not look inside an element repeated zero times.
                Some(0) => 1,
                Some(max) => item.product.saturating_mul(max),
                None => item.product.saturating_mul(min.max(1)),
            };
            if item.product > MAX_REPEAT && (min >= 2 || max.is_some_and(|max| max >= 2)) {
                return Err(error(BAD_REPEAT, until(before, after)));
            }
        }
        self.last_repeat = Some(before);
        Ok(after)
    }

    /// `{2}`, `{2,}`, `{2,3}`; otherwise `{` is a plain character.
    fn counted(&mut self, text: &'p str, inside: &'p str, last: Option<&'p str>) -> Step<'p> {
        let Some((min, max, after)) = counts(inside) else {
            return Ok(self.literal(Some('{'), inside));
        };
        if min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || max < min) {
            return Err(error(BAD_REPEAT, until(text, after)));
        }
        let operator = match max {
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        };
        self.repeat(text, after, &operator, Some((min, max)), last)
    }

    fn escape(&mut self, text: &'p str) -> Step<'p> {
        let after = text.get(2..).unwrap_or_default();
        match text.as_bytes().get(1) {
            Some(b'A') => return Ok(self.atom("\\A".into(), after)),
            Some(b'z') => return Ok(self.atom("\\z".into(), after)),
            Some(b'b') => return Ok(self.atom("(?-u:\\b)".into(), after)),
            Some(b'B') => return Ok(self.atom("(?-u:\\B)".into(), after)),
            Some(b'C') => return Err(error(BAD_ESCAPE, "\\C")),
            Some(b'Q') => {
                let (literal, rest) = after.split_once("\\E").unwrap_or((after, ""));
                for c in literal.chars() {
                    self.literal(Some(c), rest);
                }
                return Ok(rest);
            }
            _ => {}
        }
        if let Some((class, rest)) = unicode_class(text)? {
            return Ok(self.atom(class, rest));
        }
        if let Some((class, rest)) = perl_class(text) {
            return Ok(self.atom(class.into(), rest));
        }
        let (code, rest) = escaped(text)?;
        Ok(self.literal(char::from_u32(code), rest))
    }

    /// `[…]`.
    fn class(&mut self, whole: &'p str) -> Step<'p> {
        let inside = whole.get(1..).unwrap_or_default();
        let (negated, mut rest) = match inside.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, inside),
        };
        let mut body = String::new();
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            rest = class_member(whole, rest, &mut body)?;
        }
        let class = match (body.is_empty(), negated) {
            (true, false) => NOTHING.to_owned(),
            (true, true) => "[\\x{0}-\\x{10FFFF}]".to_owned(),
            (false, true) => format!("[^{body}]"),
            (false, false) => format!("[{body}]"),
        };
        Ok(self.atom(class, rest.get(1..).unwrap_or_default()))
    }
}

/// The numbers of `2}`, `2,}` or `2,3}`, and the text after them. A number with too many
/// digits counts as the largest.
fn counts(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (min, rest) = count(text)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, Some(min), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((min, None, rest));
    }
    let (max, rest) = count(rest)?;
    Some((min, Some(max), rest.strip_prefix('}')?))
}

/// A number without leading zeros.
fn count(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}

/// One member of a class: a named class, a character or a range.
fn class_member<'p>(whole: &str, text: &'p str, body: &mut String) -> Step<'p> {
    if let Some(name) = text.strip_prefix("[:")
        && let Some((name, rest)) = name.split_once(":]")
    {
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(error(BAD_RANGE, until(text, rest)));
        }
        body.push_str(until(text, rest));
        return Ok(rest);
    }
    if let Some((class, rest)) = unicode_class(text)? {
        body.push_str(&class);
        return Ok(rest);
    }
    if let Some((class, rest)) = perl_class(text) {
        body.push_str(class);
        return Ok(rest);
    }
    let (low, mut rest) = class_character(whole, text)?;
    let mut high = low;
    if let Some(after) = rest.strip_prefix('-')
        && !after.is_empty()
        && !after.starts_with(']')
    {
        (high, rest) = class_character(whole, after)?;
        if high < low {
            return Err(error(BAD_RANGE, until(text, rest)));
        }
    }
    push_range(low..=high, body);
    Ok(rest)
}

/// A range without surrogates, which no text contains.
fn push_range(range: RangeInclusive<u32>, body: &mut String) {
    let (low, high) = (*range.start(), *range.end());
    for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if low <= high {
            body.push_str(&format!("\\x{{{low:X}}}-\\x{{{high:X}}}"));
        }
    }
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

fn class_character<'p>(whole: &str, text: &'p str) -> Result<(u32, &'p str), String> {
    if text.starts_with('\\') {
        return escaped(text);
    }
    match text.chars().next() {
        Some(c) => Ok((u32::from(c), text.get(c.len_utf8()..).unwrap_or_default())),
        None => Err(error("missing closing ]", whole)),
    }
}

/// `\d` and similar classes, which are ASCII only in Go.
fn perl_class(text: &str) -> Option<(&'static str, &str)> {
    let class = match text.as_bytes() {
        [b'\\', b'd', ..] => "[0-9]",
        [b'\\', b'D', ..] => "[^0-9]",
        [b'\\', b's', ..] => "[\\t\\n\\x{C}\\r\\x{20}]",
        [b'\\', b'S', ..] => "[^\\t\\n\\x{C}\\r\\x{20}]",
        [b'\\', b'w', ..] => "[0-9A-Za-z_]",
        [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
        _ => return None,
    };
    Some((class, text.get(2..).unwrap_or_default()))
}

/// `\pL`, `\p{Greek}`, `\P{^Greek}`.
fn unicode_class(text: &str) -> Result<Option<(String, &str)>, String> {
    let mut negated = match text.as_bytes() {
        [b'\\', b'p', ..] => false,
        [b'\\', b'P', ..] => true,
        _ => return Ok(None),
    };
    let inside = text.get(2..).unwrap_or_default();
    let (mut name, rest) = if let Some(name) = inside.strip_prefix('{') {
        name.split_once('}').ok_or_else(|| error(BAD_RANGE, text))?
    } else {
        let length = inside.chars().next().map_or(0, char::len_utf8);
        inside.split_at_checked(length).unwrap_or((inside, ""))
    };
    if let Some(positive) = name.strip_prefix('^') {
        (negated, name) = (!negated, positive);
    }
    let letter = if negated { 'P' } else { 'p' };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let candidates = ["gc", "sc"].map(|kind| format!("\\{letter}{{{kind}={name}}}"));
    candidates
        .into_iter()
        .find(|class| {
            !name.is_empty() && name.chars().all(plain) && regex_syntax::parse(class).is_ok()
        })
        .map(|class| Some((class, rest)))
        .ok_or_else(|| error(BAD_RANGE, until(text, rest)))
}

/// The character of an escape sequence.
fn escaped(text: &str) -> Result<(u32, &str), String> {
    let mut rest = text.get(1..).unwrap_or_default();
    let Some(c) = take(&mut rest) else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let code = match c {
        '1'..='7' if !rest.starts_with(|c| matches!(c, '0'..='7')) => None,
        '0'..='7' => Some(octal(c, &mut rest)),
        'x' => hexadecimal(&mut rest),
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, rest)),
        None => Err(error(BAD_ESCAPE, until(text, rest))),
    }
}

fn take(text: &mut &str) -> Option<char> {
    let c = text.chars().next()?;
    *text = text.get(c.len_utf8()..).unwrap_or_default();
    Some(c)
}

/// Up to three octal digits.
fn octal(first: char, rest: &mut &str) -> u32 {
    let mut code = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let Some(digit) = rest.chars().next().and_then(|c| c.to_digit(8)) else {
            break;
        };
        take(rest);
        code = code * 8 + digit;
    }
    code
}

/// `41` or `{41}`; consumes the examined text even if it is invalid.
fn hexadecimal(rest: &mut &str) -> Option<u32> {
    let first = take(rest)?;
    if first != '{' {
        let second = take(rest).and_then(|c| c.to_digit(16));
        return Some(first.to_digit(16)? * 16 + second?);
    }
    let (mut code, mut digits) = (0, 0);
    loop {
        match take(rest)? {
            '}' if digits > 0 => return Some(code),
            c => code = code * 16 + c.to_digit(16)?,
        }
        if code > u32::from(char::MAX) {
            return None;
        }
        digits += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        // docs/spec/jmespath.md §9.1.
        for (pattern, text) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a**?", "invalid nested repetition operator: `**?`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(a{500}){500}", "invalid repeat count: `{500}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?-u)a", "invalid or unsupported Perl syntax: `(?-u`"),
            ("[a--b]", "invalid character class range: `a--`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\u0041", r"invalid escape sequence: `\u`"),
            ("\\", "trailing backslash at end of expression: ``"),
        ] {
            let error = translate(pattern).unwrap_err();
            assert_eq!(error, format!("error parsing regexp: {text}"), "{pattern}");
        }
    }

    #[test]
    fn what_go_reads_otherwise_is_rewritten() {
        for (pattern, rewritten) in [
            (r"\d", "[0-9]"),
            (r"\bx", r"(?-u:\b)x"),
            ("a{,3}", r"a\{,3\}"),
            ("a{2}", "a{2,2}"),
            (r"\Qa.b\E*", r"a\.b*"),
            (r"\101", "A"),
            (r"\<", "<"),
            (
                "[a&&b]",
                r"[\x{61}-\x{61}\x{26}-\x{26}\x{26}-\x{26}\x{62}-\x{62}]",
            ),
            ("a*(?i)*", "(?:a*)*(?i)"),
            ("(?P<1n>a)", "(a)"),
        ] {
            assert_eq!(translate(pattern).unwrap().pattern, rewritten, "{pattern}");
        }
    }
}
