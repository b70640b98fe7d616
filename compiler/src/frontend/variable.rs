//! Locates variables `{{ }}` and references `$( )` in a text, and extracts their names.
//!
//! Nothing is resolved here: [`jmespath`](kpvm_syntax::jmespath) parses the expression
//! inside a variable, and the path of a reference is looked up elsewhere.
//!
//! Kyverno finds both with regular expressions (docs/spec/conditions.md §4.2 and §5) that
//! consume the preceding character. The scanners here find the same matches in linear time:
//!
//! - variables: `(^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})`
//! - references: `^\$\(.[^\ ]*\)|[^\\]\$\(.[^\ ]*\)`
//! - escaped references: `\\\$\(.[^\ \)]*\)`

use std::borrow::Cow;

/// A match of Kyverno's search for variables: the consumed character and the range after
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VariableSpan {
    /// The preceding character, which is part of the match and remains in the text. `None`
    /// at the start of the text.
    pub preceding: Option<char>,
    /// First byte of `{{`.
    pub start: usize,
    /// Offset after `}}`.
    pub end: usize,
}

/// Name of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableName {
    /// The expression, trimmed and without the shallow marker.
    pub expression: String,
    /// Whether it was marked with `-`: variables in its result are not substituted.
    pub shallow: bool,
    /// Offset of the expression in the scanned text.
    pub offset: usize,
}

/// A match of a `$( )` reference; see [`VariableSpan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReferenceSpan {
    /// The preceding character, which is part of the match and remains in the text. `None`
    /// at the start of the text.
    pub preceding: Option<char>,
    /// First byte of `$(`.
    pub start: usize,
    /// Offset after the last `)`.
    pub end: usize,
}

/// Target of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference<'t> {
    /// The operator before the path.
    pub operator: ReferenceOperator,
    /// The path as written, relative unless it begins with `/`.
    pub path: &'t str,
}

/// `expected path, found empty reference` (docs/spec/conditions.md §5, step 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected path, found empty reference")]
pub struct EmptyReference;

/// Operator at the start of a reference (docs/spec/patterns.md §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceOperator {
    /// None: the target replaces the reference unchanged.
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `!`
    NotEqual,
    /// `-`: the text looks like the range `1-2`.
    InRange,
    /// `!-`: the text looks like the range `1!-2`.
    NotInRange,
}

impl ReferenceOperator {
    /// Text of the operator; its length is removed from the reference.
    pub fn text(self) -> &'static str {
        match self {
            ReferenceOperator::Equal => "",
            ReferenceOperator::GreaterOrEqual => ">=",
            ReferenceOperator::LessOrEqual => "<=",
            ReferenceOperator::Greater => ">",
            ReferenceOperator::Less => "<",
            ReferenceOperator::NotEqual => "!",
            ReferenceOperator::InRange => "-",
            ReferenceOperator::NotInRange => "!-",
        }
    }
}

/// Variables found by one pass of the substitution, left to right. Of two adjacent ones the
/// second is not found: the first match has consumed the character before it
/// (docs/spec/conditions.md §4.2).
pub fn scan(text: &str) -> Vec<VariableSpan> {
    let mut spans = Vec::new();
    let mut after_match = 0;
    let mut from = 0;
    while let Some(start) = find_from(text, "{{", from) {
        from = start + 1;
        if let Some(preceding) = preceded(text, start, after_match)
            && let Some(end) = variable_end(text, start)
        {
            spans.push(VariableSpan {
                preceding,
                start,
                end,
            });
            after_match = end;
            from = end;
        }
    }
    spans
}

/// Whether the whole text is one variable, whose value then keeps its type
/// (docs/spec/conditions.md §4.3).
pub fn is_whole_variable(text: &str) -> bool {
    text.starts_with("{{") && variable_end(text, 0) == Some(text.len())
}

/// Name of a variable and whether it is shallow, from its text with or without the braces:
/// removes all `{{` and `}}` and surrounding white space; a leading `-` marks it as shallow
/// (docs/spec/conditions.md §4.2).
pub fn normalise(body: &str) -> (String, bool) {
    let name = body.replace("{{", "").replace("}}", "");
    let name = name.trim();
    match name.strip_prefix('-') {
        Some(name) => (name.trim().to_owned(), true),
        None => (name.to_owned(), false),
    }
}

/// Replaces `\{{` by `{{`, as after the last pass (docs/spec/conditions.md §4.2).
pub fn unescape_variables(text: &str) -> Cow<'_, str> {
    replaced(text, "\\{{", "{{")
}

/// Replaces `{{` by `\{{`, as for the result of a shallow variable.
pub fn escape_variables(text: &str) -> Cow<'_, str> {
    replaced(text, "{{", "\\{{")
}

fn replaced<'t>(text: &'t str, from: &str, to: &str) -> Cow<'t, str> {
    if text.contains(from) {
        Cow::Owned(text.replace(from, to))
    } else {
        Cow::Borrowed(text)
    }
}

impl VariableSpan {
    /// The variable's own text, `{{…}}`, in the text that was scanned.
    pub fn text<'t>(&self, scanned: &'t str) -> &'t str {
        scanned.get(self.start..self.end).unwrap_or_default()
    }

    /// Name of the variable.
    ///
    /// After a multi-byte character Kyverno removes only one byte, and the others become
    /// part of the name, each shown as U+FFFD. Such a variable never resolves, because its
    /// name is not an expression.
    pub fn name(&self, scanned: &str) -> VariableName {
        let text = self.text(scanned);
        let left_over = left_over(self.preceding);
        let (expression, shallow) = normalise(&format!("{left_over}{text}"));
        // Only white space and the braces follow the expression.
        let before = match expression.as_str() {
            "" => 2,
            expression => text.rfind(expression).unwrap_or(0),
        };
        VariableName {
            expression,
            shallow,
            offset: self.start + before,
        }
    }
}

/// References in a text, left to right. Two of them without a space between count as one
/// (docs/spec/patterns.md §10.1).
pub fn scan_references(text: &str) -> Vec<ReferenceSpan> {
    let mut spans = Vec::new();
    let mut run = Run::default();
    let mut after_match = 0;
    let mut from = 0;
    while let Some(start) = find_from(text, "$(", from) {
        from = start + 1;
        if let Some(preceding) = preceded(text, start, after_match)
            && let Some(end) = run.reference_end(text, start)
        {
            spans.push(ReferenceSpan {
                preceding,
                start,
                end,
            });
            after_match = end;
            from = end;
        }
    }
    spans
}

/// Removes the backslash of each escaped reference (docs/spec/conditions.md §5). `\${…}` is
/// unchanged.
pub fn unescape_references(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut unescaped = String::new();
    let mut from = 0;
    while let Some(start) = find_from(rest, "\\$(", from) {
        match escaped_reference_end(rest, start) {
            Ok(end) => {
                unescaped.push_str(rest.get(..start).unwrap_or_default());
                unescaped.push_str(rest.get(start + 1..end).unwrap_or_default());
                rest = rest.get(end..).unwrap_or_default();
                from = 0;
            }
            Err(resume) => from = resume,
        }
    }
    if unescaped.is_empty() {
        return Cow::Borrowed(text);
    }
    unescaped.push_str(rest);
    Cow::Owned(unescaped)
}

impl ReferenceSpan {
    /// Text of the reference in Kyverno's messages: `$(…)`, preceded by the bytes that
    /// Kyverno leaves there after a multi-byte character, as U+FFFD.
    pub fn text<'t>(&self, scanned: &'t str) -> Cow<'t, str> {
        let text = scanned.get(self.start..self.end).unwrap_or_default();
        match left_over(self.preceding) {
            left_over if left_over.is_empty() => Cow::Borrowed(text),
            left_over => Cow::Owned(format!("{left_over}{text}")),
        }
    }
}

impl<'t> Reference<'t> {
    /// Parses a reference's text: removes `$`, `(` and `)` at both ends, then an operator
    /// at the start (docs/spec/conditions.md §5, step 1).
    ///
    /// # Errors
    /// If the path is empty.
    pub fn parse(text: &'t str) -> Result<Self, EmptyReference> {
        let inner = text.trim_matches(['$', '(', ')']);
        let operator = detect_operator(inner);
        let path = inner.get(operator.text().len()..).unwrap_or_default();
        if path.is_empty() {
            return Err(EmptyReference);
        }
        Ok(Self { operator, path })
    }

    /// The path of the target, for a reference in the leaf at `leaf`
    /// (docs/spec/conditions.md §5, step 2).
    pub fn target(&self, leaf: &str) -> String {
        if self.path.starts_with('/') {
            self.path.to_owned()
        } else {
            join_path(leaf, self.path)
        }
    }
}

/// Operator at the start of a text, first match wins (docs/spec/patterns.md §6.1).
pub fn detect_operator(text: &str) -> ReferenceOperator {
    if text.len() < 2 {
        return ReferenceOperator::Equal;
    }
    let starts = [
        ReferenceOperator::GreaterOrEqual,
        ReferenceOperator::LessOrEqual,
        ReferenceOperator::Greater,
        ReferenceOperator::Less,
        ReferenceOperator::NotEqual,
    ];
    if let Some(operator) = starts.into_iter().find(|op| text.starts_with(op.text())) {
        return operator;
    }
    [ReferenceOperator::NotInRange, ReferenceOperator::InRange]
        .into_iter()
        .find(|operator| is_range(text, operator.text()))
        .unwrap_or(ReferenceOperator::Equal)
}

/// Whether a text consists of two endpoints with the operator between.
fn is_range(text: &str, operator: &str) -> bool {
    after_endpoint(text)
        .and_then(|rest| rest.strip_prefix(operator))
        .and_then(after_endpoint)
        == Some("")
}

/// The text after the leading endpoint `[-|\+]?\d+(?:\.\d+)?[A-Za-z]*`.
fn after_endpoint(text: &str) -> Option<&str> {
    let digits =
        |text: &'_ str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let text = text.strip_prefix(['-', '|', '+']).unwrap_or(text);
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let mut text = text.get(whole..)?;
    if let Some(fraction) = text.strip_prefix('.') {
        match digits(fraction) {
            0 => {}
            length => text = fraction.get(length..)?,
        }
    }
    Some(text.trim_start_matches(|c: char| c.is_ascii_alphabetic()))
}

/// Joins two paths with `/` and cleans the result like Go's `path.Join`: removes empty
/// parts and `.`; `..` removes the preceding part, but not the root.
pub fn join_path(base: &str, relative: &str) -> String {
    let joined = match (base, relative) {
        ("", relative) => relative.to_owned(),
        (base, "") => base.to_owned(),
        (base, relative) => format!("{base}/{relative}"),
    };
    if joined.is_empty() {
        return joined;
    }
    let rooted = joined.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, path) => format!("/{path}"),
        (false, path) if path.is_empty() => ".".to_owned(),
        (false, path) => path,
    }
}

/// Offset of the next occurrence at or after `from`.
fn find_from(text: &str, wanted: &str, from: usize) -> Option<usize> {
    Some(from + text.get(from..)?.find(wanted)?)
}

/// The character consumed by a match at `start`, if one can begin there: none at the start
/// of the text, otherwise any character but a backslash that no earlier match has consumed.
/// The outer option says whether a match is possible.
fn preceded(text: &str, start: usize, after_match: usize) -> Option<Option<char>> {
    if start == 0 {
        return Some(None);
    }
    let before = text.get(after_match..start)?.chars().next_back()?;
    (before != '\\').then_some(Some(before))
}

/// Bytes of a consumed character that Kyverno does not remove, each as displayed.
fn left_over(preceding: Option<char>) -> String {
    let bytes = preceding.map_or(1, char::len_utf8);
    "\u{fffd}".repeat(bytes.saturating_sub(1))
}

/// Offset after the `}}` of the variable that begins at `start`. One level of inner braces
/// is allowed; deeper ones mean there is no variable.
fn variable_end(text: &str, start: usize) -> Option<usize> {
    let is_brace = |c: char| c == '{' || c == '}';
    let mut position = start + 2;
    loop {
        let rest = text.get(position..)?;
        let brace = rest.find(is_brace)?;
        let rest = rest.get(brace..)?;
        position += brace;
        if rest.starts_with("}}") {
            return Some(position + 2);
        }
        let inner = rest.strip_prefix('{')?;
        let length = inner.find(is_brace)?;
        inner.get(length..)?.strip_prefix('}')?;
        position += length + 2;
    }
}

/// The last examined run of non-space characters, so that many unfinished references in one
/// run do not each scan it again.
#[derive(Default)]
struct Run {
    start: usize,
    end: usize,
    last_parenthesis: Option<usize>,
}

impl Run {
    /// Offset after the last `)` of the reference that begins at `start`.
    fn reference_end(&mut self, text: &str, start: usize) -> Option<usize> {
        let first = text.get(start + 2..)?.chars().next()?;
        if first == '\n' {
            return None;
        }
        let greedy = start + 2 + first.len_utf8();
        if greedy < self.start || greedy >= self.end {
            let rest = text.get(greedy..)?;
            let length = rest.find(' ').unwrap_or(rest.len());
            self.start = greedy;
            self.end = greedy + length;
            self.last_parenthesis = rest.get(..length)?.rfind(')').map(|at| greedy + at);
        }
        self.last_parenthesis
            .filter(|last| *last >= greedy)
            .map(|last| last + 1)
    }
}

/// Offset after the first `)` of the escaped reference whose backslash is at `start`, or
/// the next offset at which one may begin.
fn escaped_reference_end(text: &str, start: usize) -> Result<usize, usize> {
    let after = |position: usize| text.get(position..).unwrap_or_default();
    let first = match after(start + 3).chars().next() {
        None | Some('\n') => return Err(start + 1),
        Some(first) => first,
    };
    let position = start + 3 + first.len_utf8();
    match after(position).find([' ', ')']) {
        Some(stop) if after(position + stop).starts_with(')') => Ok(position + stop + 1),
        // A space is allowed as the first inner character: `\$( )`.
        Some(stop) => Err((position + stop - 3).max(start + 1)),
        None => Err(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables(text: &str) -> Vec<&str> {
        scan(text).iter().map(|span| span.text(text)).collect()
    }

    fn references(text: &str) -> Vec<String> {
        let spans = scan_references(text);
        spans
            .iter()
            .map(|span| span.text(text).into_owned())
            .collect()
    }

    #[test]
    fn variables_are_found_as_kyverno_finds_them() {
        // docs/spec/conditions.md §4.2 and worked cases 39 to 42; golden substitution.json.
        for (text, found) in [
            ("{{ x }}", vec!["{{ x }}"]),
            (" {{ x }} {{y}}", vec!["{{ x }}", "{{y}}"]),
            ("{{a}}{{b}}", vec!["{{a}}"]),
            ("{{ a.{{ b }} }}", vec!["{{ b }}"]),
            ("{{ {a: b}.a }}", vec!["{{ {a: b}.a }}"]),
            ("{{ {a: {b: c}} }}", vec![]),
            ("\\{{ x }}", vec![]),
            ("\\{{ a.{{ b }} }}", vec!["{{ b }}"]),
            ("{{}}", vec!["{{}}"]),
            ("{{ x ", vec![]),
            ("{{ x }", vec![]),
            ("{{ x }}}", vec!["{{ x }}"]),
            ("{{{x}}}", vec!["{{{x}}}"]),
            ("{{{x}}", vec!["{{x}}"]),
            ("{{\n x\n}}", vec!["{{\n x\n}}"]),
            ("{{ '}}' }}", vec!["{{ '}}"]),
            ("\n{{ x }}", vec!["{{ x }}"]),
        ] {
            assert_eq!(variables(text), found, "{text}");
        }
    }

    #[test]
    fn only_the_exact_text_is_a_whole_variable() {
        // docs/spec/conditions.md §4.3, second consequence.
        for (text, whole) in [
            ("{{ x }}", true),
            ("{{- x }}", true),
            (" {{ x }}", false),
            ("{{ x }} ", false),
            ("{{ x }}\n", false),
            ("{{ x.{{ y }} }}", false),
            ("{{a}}{{b}}", false),
            ("", false),
        ] {
            assert_eq!(is_whole_variable(text), whole, "{text}");
        }
    }

    #[test]
    fn names_are_trimmed_and_marked() {
        // docs/spec/conditions.md §4.2; golden substitution.json (`{{ -x }}`, `{{{x}}}`, an
        // accented letter before a variable).
        for (text, expression, shallow, offset) in [
            ("v{{ x }}", "x", false, 4),
            ("{{-x}}", "x", true, 3),
            ("{{ - x }}", "x", true, 5),
            ("{{--}}", "-", true, 3),
            ("{{{x}}}", "{x}", false, 2),
            ("{{\u{a0}x\u{2003}}}", "x", false, 4),
            ("{{ }}", "", false, 2),
            ("é{{ b }}é", "\u{fffd} b", false, 2),
            ("\u{1f600}{{ -b }}", "\u{fffd}\u{fffd}\u{fffd} -b", false, 4),
        ] {
            let name = scan(text)[0].name(text);
            let found = (name.expression.as_str(), name.shallow, name.offset);
            assert_eq!(found, (expression, shallow, offset), "{text}");
        }
        assert_eq!(normalise("{{ '{{' }}"), ("''".to_owned(), false));
    }

    #[test]
    fn golden_substitutions_that_do_not_compile() {
        let cases = kpvm_golden::read("operators/substitution.json").unwrap();
        let cases: Vec<serde_json::Value> = serde_json::from_str(&cases).unwrap();
        let mut seen = 0;
        for case in &cases {
            let (Some(text), Some(error)) = (case["document"].as_str(), case["error"].as_str())
            else {
                continue;
            };
            if error.contains("incorrect query") {
                let name = scan(text)[0].name(text).expression;
                let parsed = kpvm_syntax::jmespath::parse(&name).unwrap_err();
                let expected =
                    format!("failed to resolve {name} at path : incorrect query {name}: {parsed}");
                assert_eq!(error, expected);
                seen += 1;
            }
        }
        assert_eq!(seen, 5);
    }

    #[test]
    fn escapes_go_and_come() {
        // docs/spec/conditions.md §4.2 and 5; worked cases 39 and 45.
        assert_eq!(unescape_variables("\\{{ x }}"), "{{ x }}");
        assert_eq!(unescape_variables("\\\\{{x}}"), "\\{{x}}");
        assert_eq!(escape_variables("{{ z }}"), "\\{{ z }}");
        for (text, unescaped) in [
            ("\\$(POD)", "$(POD)"),
            ("a\\$(POD)b\\$(X)", "a$(POD)b$(X)"),
            ("\\${POD}", "\\${POD}"),
            ("\\$()", "\\$()"),
            ("\\$())", "$())"),
            ("\\$(a b) \\$( )", "\\$(a b) $( )"),
        ] {
            assert_eq!(unescape_references(text), unescaped, "{text}");
        }
    }

    #[test]
    fn references_are_found_as_kyverno_finds_them() {
        // docs/spec/patterns.md §10.1; docs/spec/conditions.md §5; golden substitution.json.
        for (text, found) in [
            ("$(a)", vec!["$(a)"]),
            ("a $(b)", vec!["$(b)"]),
            ("$(cat x)", vec![]),
            ("\\$(POD)", vec![]),
            ("$()", vec![]),
            ("$())", vec!["$())"]),
            ("$( )", vec!["$( )"]),
            ("$(\n)", vec![]),
            ("$(a\n)", vec!["$(a\n)"]),
            ("$", vec![]),
            ("$(../b)$(../c)", vec!["$(../b)$(../c)"]),
            ("$(../b) $(../c)", vec!["$(../b)", "$(../c)"]),
            (">=$(../a)", vec!["$(../a)"]),
            ("é$(a)", vec!["\u{fffd}$(a)"]),
        ] {
            assert_eq!(references(text), found, "{text}");
        }
    }

    #[test]
    fn references_are_read() {
        // docs/spec/conditions.md §5, steps 1 and 2 and worked case 45; docs/spec/patterns.md §10.1.
        use ReferenceOperator::*;
        for (text, leaf, operator, target) in [
            ("$(/a)", "/b", Equal, "/a"),
            ("$(../a)", "/b", Equal, "/a"),
            ("$(./../a)", "/b", Equal, "/a"),
            ("$(./../../x)", "/a/b/c", Equal, "/a/x"),
            ("$(a)", "", Equal, "a"),
            ("$(>)", "", Equal, ">"),
            ("$(../0)", "/1", Equal, "/0"),
            ("$(>=./../a)", "/b", GreaterOrEqual, "/a"),
            ("$(!../b)", "/a", NotEqual, "/b"),
            ("$(1-2)", "/a", InRange, "/a/-2"),
            ("$(1!-2)", "/a", NotInRange, "/a/-2"),
            ("$(/b)-$(/c)", "/a", Equal, "/b)-$(/c"),
            ("$(./../b)-$(./../c)", "/a", Equal, "/c"),
            (
                "$(<=./../../limits/memory)",
                "/spec/containers/0/resources/requests/memory",
                LessOrEqual,
                "/spec/containers/0/resources/limits/memory",
            ),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(reference.operator, operator, "{text}");
            assert_eq!(reference.target(leaf), target, "{text}");
        }
        assert_eq!(Reference::parse("$($)"), Err(EmptyReference));
        assert_eq!(Reference::parse("$(>=)"), Err(EmptyReference));
    }

    #[test]
    fn ranges_are_operators_too() {
        // docs/spec/patterns.md §6.1.
        use ReferenceOperator::*;
        for (text, operator) in [
            ("1-5", InRange),
            ("-10--8", InRange),
            ("-10-+8", InRange),
            ("1.5-2", InRange),
            ("1Gi!-2Gi", NotInRange),
            ("!1-5", NotEqual),
            ("1 - 5", Equal),
            ("5.10.84-1", Equal),
            ("a-b", Equal),
            (".5-1", Equal),
            ("-", Equal),
            ("1.-2", Equal),
        ] {
            assert_eq!(detect_operator(text), operator, "{text}");
        }
    }

    #[test]
    fn paths_are_cleaned_as_go_does() {
        // Go's path.Join (docs/spec/conditions.md §5, step 2).
        for (base, relative, joined) in [
            ("", "", ""),
            ("", "./", "."),
            ("/a", "", "/a"),
            ("/a", "..", "/"),
            ("/a", "../../..", "/"),
            ("a", "../..", ".."),
            ("", "../../x", "../../x"),
            ("/a//b/", "./c/", "/a/b/c"),
        ] {
            assert_eq!(join_path(base, relative), joined, "{base} + {relative}");
        }
    }

    /// The regular expression of the module documentation, tried at every position.
    fn slow_scan(text: &str) -> Vec<(usize, usize)> {
        let chars: Vec<(usize, char)> = text.char_indices().collect();
        let at = |index: usize| chars.get(index).map(|(_, c)| *c);
        let body = |open: usize| -> Option<usize> {
            if at(open) != Some('{') || at(open + 1) != Some('{') {
                return None;
            }
            let mut index = open + 2;
            loop {
                match at(index)? {
                    '{' => {
                        index += 1;
                        while !matches!(at(index)?, '{' | '}') {
                            index += 1;
                        }
                        if at(index) != Some('}') {
                            return None;
                        }
                        index += 1;
                    }
                    '}' => return (at(index + 1) == Some('}')).then_some(index + 2),
                    _ => index += 1,
                }
            }
        };
        let offset = |index: usize| chars.get(index).map_or(text.len(), |(offset, _)| *offset);
        let mut found = Vec::new();
        let mut index = 0;
        while index < chars.len() {
            let at_start = (index == 0).then(|| body(0)).flatten().map(|end| (0, end));
            let swallowing = || body(index + 1).map(|end| (index + 1, end));
            let allowed = at(index) != Some('\\');
            match at_start.or_else(|| allowed.then(swallowing).flatten()) {
                Some((start, end)) => {
                    found.push((offset(start), offset(end)));
                    index = end;
                }
                None => index += 1,
            }
        }
        found
    }

    proptest! {
        #[test]
        fn scanning_agrees_with_the_expression(text in "[{}x\\\\é]{0,24}") {
            let found: Vec<_> = scan(&text).iter().map(|span| (span.start, span.end)).collect();
            prop_assert_eq!(found, slow_scan(&text));
        }

        #[test]
        fn nothing_panics(text in "[{}$() a/.<>=!\\n\\\\é-]{0,40}", other in ".{0,20}") {
            for text in [&text, &other] {
                for span in scan(text) {
                    let _ = span.name(text);
                }
                for span in scan_references(text) {
                    if let Ok(reference) = Reference::parse(&span.text(text)) {
                        let _ = reference.target("/a/b");
                    }
                }
                let _ = (unescape_references(text), is_whole_variable(text));
            }
        }
    }
}
