//! Clauses of the templates of CEL's `format` (docs/spec/cel.md §3.9).

/// Most decimals of a number.
const MAX_PRECISION: usize = 1000;

/// A clause such as `%.3f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause<'t> {
    /// What to write: one of `sdfebxXo`.
    pub verb: char,
    /// Number of decimals.
    pub precision: Option<usize>,
    /// The template after the clause.
    pub rest: &'t str,
}

/// Reads the clause after a percent sign.
///
/// # Errors
/// cel-go's text.
pub fn clause(text: &str) -> Result<Clause<'_>, String> {
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let failed = |what: String| Err(format!("could not parse formatting clause: {what}"));
    let bad_precision = |what: String| failed(format!("error while parsing precision: {what}"));
    let (mut rest, mut precision) = (text, None);
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = after.split_at(digits);
        if after.is_empty() {
            return bad_precision("could not find end of precision specifier".to_owned());
        }
        let Ok(number) = number.parse::<usize>() else {
            let problem = match number {
                "" => "invalid syntax",
                _ => "value out of range",
            };
            return bad_precision(format!(
                "error while converting precision to integer: strconv.Atoi: parsing {number:?}: {problem}"
            ));
        };
        if number > MAX_PRECISION {
            return bad_precision(format!(
                "precision {number} exceeds maximum allowed precision {MAX_PRECISION}"
            ));
        }
        (rest, precision) = (after, Some(number));
    }
    let verb = rest.chars().next().unwrap_or_default();
    if !"sdfebxXo".contains(verb) {
        // cel-go looks at one byte.
        let first = rest.bytes().next().map_or(verb, char::from);
        return failed(format!("unrecognized formatting clause \"{first}\""));
    }
    Ok(Clause {
        verb,
        precision,
        rest: &rest[1..],
    })
}
