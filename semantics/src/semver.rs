//! Semantic versions and ranges as in `blang/semver`: strict versions (three numbers, no
//! leading zeros, no `v`) and its own range grammar (docs/spec/jmespath.md §10,
//! docs/spec/conditions.md §3.7).

use std::cmp::Ordering;
use std::fmt;

use crate::quote::go_quote;

/// A part of a pre-release; numbers precede texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part<'t> {
    /// A number without leading zeros.
    Number(u64),
    /// Letters, digits and hyphens.
    Text(&'t str),
}

/// A version; build metadata after `+` does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version<'t> {
    numbers: [u64; 3],
    pre_release: Vec<Part<'t>>,
}

impl<'t> Version<'t> {
    /// Parses a version.
    ///
    /// # Errors
    /// Why the text is not a version.
    pub fn parse(text: &'t str) -> Result<Self, VersionError<'t>> {
        parse(text)
    }

    /// Major, minor and patch.
    pub fn numbers(&self) -> [u64; 3] {
        self.numbers
    }

    /// Precedence of two versions, without build metadata.
    pub fn order(&self, other: &Version<'_>) -> Ordering {
        // A version without pre-release is greater than any with one.
        let released = |version: &Version<'_>| version.pre_release.is_empty();
        let numbers = self.numbers.cmp(&other.numbers);
        numbers
            .then(released(self).cmp(&released(other)))
            .then_with(|| self.pre_release.iter().cmp(other.pre_release.iter()))
    }
}

/// Why a text is not a version. The words of `blang/semver` are made when it is shown, since
/// most comparisons only ask whether both texts are versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionError<'t> {
    problem: Problem,
    /// The part of the text that is wrong.
    part: &'t str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Empty,
    MissingNumbers,
    /// Something else than digits in the number of this name.
    NumberCharacters(&'static str),
    LeadingZeros(&'static str),
    /// Not a number of 64 bits.
    Number,
    EmptyPreRelease,
    PreReleaseLeadingZeros,
    PreReleaseCharacters,
    EmptyBuild,
    BuildCharacters,
}

impl fmt::Display for VersionError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = go_quote(self.part);
        match self.problem {
            Problem::Empty => f.write_str("Version string empty"),
            Problem::MissingNumbers => f.write_str("No Major.Minor.Patch elements found"),
            Problem::NumberCharacters(name) => {
                write!(f, "Invalid character(s) found in {name} number {part}")
            }
            Problem::LeadingZeros(title) => {
                write!(f, "{title} number must not contain leading zeroes {part}")
            }
            Problem::Number => {
                let problem = if self.part.is_empty() {
                    "invalid syntax"
                } else {
                    "value out of range"
                };
                write!(f, "strconv.ParseUint: parsing {part}: {problem}")
            }
            Problem::EmptyPreRelease => f.write_str("Prerelease is empty"),
            Problem::PreReleaseLeadingZeros => write!(
                f,
                "Numeric PreRelease version must not contain leading zeroes {part}"
            ),
            Problem::PreReleaseCharacters => {
                write!(f, "Invalid character(s) found in prerelease {part}")
            }
            Problem::EmptyBuild => f.write_str("Build meta data is empty"),
            Problem::BuildCharacters => {
                write!(f, "Invalid character(s) found in build meta data {part}")
            }
        }
    }
}

impl std::error::Error for VersionError<'_> {}

impl Problem {
    /// The error about a part of a version.
    fn at<T>(self, part: &str) -> Result<T, VersionError<'_>> {
        Err(VersionError {
            problem: self,
            part,
        })
    }
}

fn parse(text: &str) -> Result<Version<'_>, VersionError<'_>> {
    if text.is_empty() {
        return Problem::Empty.at(text);
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(patch)) = (parts.next(), parts.next(), parts.next()) else {
        return Problem::MissingNumbers.at(text);
    };
    let major = number(major, "major", "Major")?;
    let minor = number(minor, "minor", "Minor")?;
    let (patch, build) = match patch.split_once('+') {
        Some((patch, build)) => (patch, Some(build)),
        None => (patch, None),
    };
    let (patch, pre_release) = match patch.split_once('-') {
        Some((patch, pre_release)) => (patch, Some(pre_release)),
        None => (patch, None),
    };
    let patch = number(patch, "patch", "Patch")?;
    let pre_release = pre_release.map_or(Ok(Vec::new()), |pre_release| {
        pre_release.split('.').map(pre_release_part).collect()
    })?;
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Problem::EmptyBuild.at(part);
        }
        if !is_alphanumeric(part) {
            return Problem::BuildCharacters.at(part);
        }
    }
    Ok(Version {
        numbers: [major, minor, patch],
        pre_release,
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number<'t>(
    text: &'t str,
    name: &'static str,
    title: &'static str,
) -> Result<u64, VersionError<'t>> {
    if !is_number(text) {
        return Problem::NumberCharacters(name).at(text);
    }
    if has_leading_zero(text) {
        return Problem::LeadingZeros(title).at(text);
    }
    parse_number(text)
}

fn parse_number(text: &str) -> Result<u64, VersionError<'_>> {
    text.parse().or_else(|_| Problem::Number.at(text))
}

fn pre_release_part(text: &str) -> Result<Part<'_>, VersionError<'_>> {
    if text.is_empty() {
        return Problem::EmptyPreRelease.at(text);
    }
    if is_number(text) {
        if has_leading_zero(text) {
            return Problem::PreReleaseLeadingZeros.at(text);
        }
        return parse_number(text).map(Part::Number);
    }
    if is_alphanumeric(text) {
        Ok(Part::Text(text))
    } else {
        Problem::PreReleaseCharacters.at(text)
    }
}

/// Splits at spaces, except after `>`, `<` or `=`; drops pieces of a single byte.
fn pieces(range: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut start, mut before) = (0, b' ');
    let mut push = |piece: Option<&str>| {
        if let Some(piece) = piece.filter(|piece| piece.len() > 1) {
            pieces.push(piece.replace(' ', ""));
        }
    };
    for (at, byte) in range.bytes().enumerate() {
        if byte != b' ' {
            before = byte;
        } else if !matches!(before, b'>' | b'<' | b'=') {
            push(range.get(start..at));
            start = at + 1;
        }
    }
    push(range.get(start..));
    pieces
}

/// Splits into alternatives at `||`.
fn alternatives(pieces: &[String]) -> Result<Vec<&[String]>, String> {
    if pieces.first().is_some_and(|piece| piece == "||") {
        return Err("First element in range is '||'".into());
    }
    if pieces.last().is_none_or(|piece| piece == "||") {
        return Err("Last element in range is '||'".into());
    }
    Ok(pieces.split(|piece| piece == "||").collect())
}

/// Splits a piece into operator and version, which begins at the first digit.
fn split_operator(piece: &str) -> Result<(&str, &str), String> {
    let digit = piece.find(char::is_numeric);
    match digit.and_then(|digit| piece.split_at_checked(digit)) {
        Some((operator, version)) => Ok((operator.trim(), version)),
        None => Err(format!(
            "Could not get version from string: {}",
            go_quote(piece)
        )),
    }
}

/// Expands a piece that contains an `x` into one or two without.
fn expand(piece: &str, out: &mut Vec<String>) -> Result<(), String> {
    if !piece.contains('x') {
        out.push(piece.to_owned());
        return Ok(());
    }
    let (operator, version) = split_operator(piece)?;
    let mut flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 {
        flat.push_str(".0");
    }
    let incremented = || incremented(version, &flat);
    match operator {
        ">" => out.push(format!(">={}", incremented())),
        ">=" => out.push(format!(">={flat}")),
        "<" => out.push(format!("<{flat}")),
        "<=" => out.push(format!("<{}", incremented())),
        "" | "=" | "==" => {
            out.push(format!(">={flat}"));
            out.push(format!("<{}", incremented()));
        }
        "!" | "!=" => {
            out.push(format!("<{flat}"));
            out.push(format!(">={}", incremented()));
        }
        _ => out.push(flat),
    }
    Ok(())
}

/// First version after a wildcard; empty if the wildcard is not the last part.
fn incremented(wildcard: &str, flat: &str) -> String {
    let place = match wildcard.rsplit_once('.') {
        Some((before, "x")) => match before.split('.').count() {
            1 => 0,
            2 => 1,
            _ => return String::new(),
        },
        _ => return String::new(),
    };
    let mut parts: Vec<_> = flat.split('.').map(str::to_owned).collect();
    let Some(part) = parts.get_mut(place) else {
        return String::new();
    };
    let Some(next) = part
        .parse::<i64>()
        .ok()
        .and_then(|part| part.checked_add(1))
    else {
        return String::new();
    };
    *part = next.to_string();
    parts.join(".")
}

/// One comparison of a range.
struct Comparator<'t> {
    operator: &'t str,
    version: Version<'t>,
}

impl Comparator<'_> {
    fn holds(&self, version: &Version<'_>) -> bool {
        let order = version.order(&self.version);
        match self.operator {
            ">" => order.is_gt(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            "!" | "!=" => order.is_ne(),
            _ => order.is_eq(),
        }
    }
}

fn comparator(piece: &str) -> Result<Comparator<'_>, String> {
    let (operator, version) = split_operator(piece)?;
    let whole = go_quote(&format!("{operator}{version}"));
    let wrap = |problem| format!("Could not parse Range {}: {problem}", go_quote(piece));
    if !matches!(
        operator,
        "" | "=" | "==" | ">" | ">=" | "<" | "<=" | "!" | "!="
    ) {
        let operator = go_quote(operator);
        return Err(wrap(format!(
            "Could not parse comparator {operator} in {whole}"
        )));
    }
    match parse(version) {
        Ok(version) => Ok(Comparator { operator, version }),
        Err(problem) => Err(wrap(format!(
            "Could not parse version {} in {whole}: {problem}",
            go_quote(version)
        ))),
    }
}

/// Whether a version is in a range.
///
/// # Errors
/// If the range is invalid, in the words of `blang/semver`.
pub fn is_in_range(version: &Version<'_>, range: &str) -> Result<bool, String> {
    let pieces = pieces(range);
    let mut expanded = Vec::new();
    for alternative in alternatives(&pieces)? {
        let mut pieces = Vec::new();
        for piece in alternative {
            expand(piece, &mut pieces)?;
        }
        expanded.push(pieces);
    }
    // The whole range is parsed before anything is compared.
    let mut read = Vec::new();
    for alternative in &expanded {
        let comparators = alternative.iter().map(|piece| comparator(piece));
        read.push(comparators.collect::<Result<Vec<_>, _>>()?);
    }
    for alternative in read {
        if alternative.is_empty() {
            return Err("Kyverno crashes on this range: nothing stands between two ||".into());
        }
        if alternative.iter().all(|one| one.holds(version)) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_blang_does() {
        // docs/spec/jmespath.md §10.
        let rows: &[(&str, &str, Result<bool, &str>)] = &[
            ("v1.2.3", "<1.0.0", Ok(true)),
            ("2.0.0", "!1.x", Ok(false)),
            ("1.0.0", "9", Err("Last element in range is '||'")),
            ("1.0.0", "|| 1.0.0", Err("First element in range is '||'")),
            ("1.0.0", "! 1.0.0", Ok(true)),
            ("1.0.0", ">= 1.0.0", Ok(true)),
            ("4.0.9", "=4.x.x", Ok(true)),
            ("4.1.0", "=4.x.x", Ok(false)),
            ("1.0.0-alpha", "<1.0.0", Ok(true)),
            ("1.0.0-2", "<1.0.0-a", Ok(true)),
            ("1.2.3", ">=1.0.0 || || 2.0.0", Ok(true)),
            (
                "1.0.0",
                "^1.0.0",
                Err(
                    r#"Could not parse Range "^1.0.0": Could not parse comparator "^" in "^1.0.0""#,
                ),
            ),
            (
                "1.0.0",
                "1.2",
                Err(
                    r#"Could not parse Range "1.2": Could not parse version "1.2" in "1.2": No Major.Minor.Patch elements found"#,
                ),
            ),
        ];
        for (version, range, expected) in rows {
            let version = parse(version).unwrap_or_default();
            let result = is_in_range(&version, range);
            assert_eq!(
                result.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|text| *text),
                "{range}"
            );
        }
    }
}
