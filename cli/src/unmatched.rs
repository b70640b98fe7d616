//! Policies whose rules applied to no object, and the reason.
//!
//! Silence must not look like success: a policy for the kind `Deploymnt` passes everything.

use std::fmt;

/// The number of names listed before the rest is only counted.
const NAMES: usize = 5;

/// A policy that no object matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Index of the policy in the bundle.
    pub policy: usize,
    /// What did not match.
    pub reason: Reason,
}

/// Why no rule of a policy applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has no rules in the bundle.
    NoRules,
    /// No object is of a kind that its rules match.
    Kinds {
        /// The kinds in the written rules.
        wanted: Vec<String>,
        /// A wanted kind and the kind of an object with nearly the same spelling.
        nearest: Option<(String, String)>,
    },
    /// It is a namespaced policy, and no object of its kinds is in its namespace.
    Namespace(String),
    /// There are objects of these kinds, but these filters let none through.
    Filters {
        /// Kinds of such objects.
        kinds: Vec<String>,
        /// What the rules filter by besides kinds, e.g. `namespaces`.
        filters: Vec<&'static str>,
        /// Such an object with what does not match, if that was determined.
        example: Option<Example>,
    },
}

/// An object that a policy could apply to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The object: `Pod default/web`.
    pub object: String,
    /// What does not match, filter by filter.
    pub filters: Vec<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoRules => f.write_str("none of its rules is in the bundle"),
            Reason::Kinds { wanted, nearest } => {
                write!(f, "no resource is of the kind {}", list(wanted, "or"))?;
                match nearest {
                    Some((wanted, present)) => {
                        write!(f, "; is {present} meant instead of {wanted}?")
                    }
                    None => Ok(()),
                }
            }
            Reason::Namespace(namespace) => write!(
                f,
                "it is a policy of the namespace {namespace}, where no resource of its kinds is"
            ),
            Reason::Filters {
                example: Some(Example { object, filters }),
                ..
            } => write!(f, "e.g. {object} is not selected: {}", filters.join("; ")),
            Reason::Filters { kinds, filters, .. } => write!(
                f,
                "there are resources of the kind {}, but its {} select none of them",
                list(kinds, "and"),
                list(filters, "and")
            ),
        }
    }
}

fn list<T: AsRef<str>>(names: &[T], last: &str) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(NAMES);
    match (shown.as_slice(), more) {
        (_, 1..) => format!("{} {last} {more} more", shown.join(", ")),
        ([before @ .., end], 0) if !before.is_empty() => {
            format!("{} {last} {end}", before.join(", "))
        }
        (_, 0) => shown.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sentences() {
        let names: Vec<String> = (1..=7).map(|number| number.to_string()).collect();
        for (length, expected) in [
            (0, ""),
            (1, "1"),
            (2, "1 or 2"),
            (3, "1, 2 or 3"),
            (5, "1, 2, 3, 4 or 5"),
            (7, "1, 2, 3, 4, 5 or 2 more"),
        ] {
            assert_eq!(list(&names[..length], "or"), expected);
        }
    }
}
