//! Errors of YAML text, phrased to help fix it.
//!
//! Texts name keys, tags and characters, never values: a value may be a secret.

use crate::tree::Span;

/// An error of one document, with its location.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct YamlError {
    /// What is wrong.
    pub kind: YamlErrorKind,
    /// Byte range in the text of the whole file.
    pub span: Span,
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in that line, from 1.
    pub column: usize,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum YamlErrorKind {
    /// The text does not follow YAML's grammar.
    #[error("this is not valid YAML: {0}")]
    Syntax(String),
    /// A tab where only spaces are allowed.
    #[error("a tab cannot be used for indentation; use spaces")]
    Tab,
    /// More bytes than [`kpvm_semantics::limits::Limits::document_bytes`].
    #[error("the document, with its aliases expanded, is larger than {limit} bytes")]
    TooLarge {
        /// The limit in force.
        limit: usize,
    },
    /// Deeper than [`kpvm_semantics::limits::Limits::document_depth`].
    #[error("maps and lists are nested deeper than {limit} levels")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// More values than [`kpvm_semantics::limits::Limits::document_nodes`].
    #[error("the document, with its aliases expanded, has more than {limit} values")]
    TooManyNodes {
        /// The limit in force.
        limit: usize,
    },
    /// go-yaml's bound on the share of values that come from aliases.
    #[error("almost all of the document comes from aliases (excessive aliasing)")]
    ExcessiveAliases,
    /// A line begins with `---` and continues with other text.
    #[error(
        "a line that begins with --- must hold nothing else but a comment; \
         put the document's text on the next line"
    )]
    InvalidSeparator,
    /// Text after the end of the document (`...`).
    #[error(
        "text after the end of the document would be ignored; separate documents with a line ---"
    )]
    TrailingContent,
    /// A character that YAML text must not contain.
    #[error(
        "the character U+{0:04X} is not allowed in YAML text; write it as an escape in double quotes"
    )]
    ControlCharacter(u32),
    /// A character that is a line end in YAML 1.1 but not in YAML 1.2.
    #[error(
        "the character U+{0:04X} is a line end to some YAML readers and not to others; \
         write it as an escape in double quotes"
    )]
    AmbiguousLineEnd(u32),
    /// `%YAML` or `%TAG`.
    #[error("YAML directives (lines that begin with %) are not supported")]
    Directive,
    /// A duplicate key in a map.
    #[error("the key \"{key}\" is already set in this map, on line {first_line}")]
    DuplicateKey {
        /// The key, truncated if long.
        key: String,
        /// Line of its first occurrence.
        first_line: usize,
    },
    /// A key is null.
    #[error("a map key is empty or null; expected text, a number or a boolean")]
    NullKey,
    /// A key is a map or a list.
    #[error("a map key is a map or a list; expected text, a number or a boolean")]
    CollectionKey,
    /// A key is an integer above the signed 64-bit range.
    #[error("a map key is a number above 9223372036854775807; quote it to make it text")]
    KeyOutOfRange,
    /// An alias before its anchor, or without one.
    #[error("this alias names an anchor that does not stand before it in the document")]
    UnknownAlias,
    /// An alias inside the value that its anchor names.
    #[error("this alias stands inside the value that it names")]
    SelfAlias,
    /// An anchor name with characters that go-yaml rejects.
    #[error("an anchor's name may hold only letters, digits, _ and -")]
    AnchorName,
    /// `<<` with a value that cannot be merged.
    #[error("the merge key << needs a map or a list of maps, found {found}")]
    MergeValue {
        /// What was found instead.
        found: &'static str,
    },
    /// A value that does not match its tag.
    #[error("the value cannot be read as {tag}")]
    TagMismatch {
        /// The tag.
        tag: &'static str,
    },
    /// An unknown tag.
    #[error("the tag {tag} is not supported {place}")]
    UnsupportedTag {
        /// The tag, truncated if long.
        tag: String,
        /// Kind of value with the tag.
        place: &'static str,
    },
    /// `!!binary` with invalid base64.
    #[error("the value of a !!binary tag is not valid base64")]
    InvalidBase64,
    /// `.inf` or `.nan`.
    #[error("infinity and not-a-number cannot be expressed in JSON; quote it to make it text")]
    NotFinite,
    /// A number beyond a 64-bit float.
    #[error("the number is too large for a 64-bit float; quote it to make it text")]
    NumberOutOfRange,
    /// Plain text in a flow collection that YAML 1.1 and 1.2 interpret differently.
    #[error(
        "inside [ ] or {{ }} this plain text means different things to different YAML readers; \
         quote it, or put a space after the colon"
    )]
    AmbiguousFlowText,
    /// A block scalar that is the whole document, with text at column 0.
    #[error("the text of a block scalar (| or >) must be indented")]
    UnindentedBlock,
}

/// Line and column (in characters) of a byte offset, both from 1.
///
/// An offset outside the text, or inside a character, counts as the nearest character
/// boundary before it.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let offset = (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (lines + 1, column + 1)
}

/// A key or tag for a message, truncated to 64 characters.
pub(super) fn clip(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_column_count_from_one_and_in_characters() {
        for (text, offset, expected) in [
            ("", 0, (1, 1)),
            ("ab\ncd", 4, (2, 2)),
            ("ä: b", 3, (1, 3)),
            ("ä: b", 1, (1, 1)),
            ("a\n", 99, (2, 1)),
        ] {
            assert_eq!(line_column(text, offset), expected, "{text:?} at {offset}");
        }
    }

    #[test]
    fn long_keys_are_cut() {
        assert_eq!(clip(&"ä".repeat(70)), format!("{}...", "ä".repeat(64)));
        assert_eq!(clip("short"), "short");
    }
}
