//! Splits a file into documents, line by line (docs/spec/cli.md §8.2).

/// Text of one document and its location in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentText<'t> {
    /// The text, with the line ends of the file.
    pub text: &'t str,
    /// Offset of its first byte in the file.
    pub offset: usize,
    /// Line of the file where it begins, from 1.
    pub line: usize,
}

impl<'t> DocumentText<'t> {
    /// A whole file, or standalone text, as one document.
    pub fn whole(text: &'t str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// Whether every line is blank or a comment; only such a document counts as empty
    /// (docs/spec/cli.md §8.2). Lines end wherever YAML 1.1 ends them, so that nothing
    /// hides behind a comment.
    pub(super) fn is_blank(&self) -> bool {
        self.text
            .split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
            .map(|line| line.trim_start_matches('\u{FEFF}').trim())
            .all(|line| line.is_empty() || line.starts_with('#'))
    }
}

/// Splits a file into its documents, omitting those of blank lines and comments
/// (docs/spec/cli.md §8.2).
///
/// A separator is a line that begins with `---` and contains nothing else but a comment. It
/// ends the document before it; without one, it becomes the first line of the next
/// document. A UTF-8 byte order mark at the start of the file is skipped.
///
/// Difference from Kyverno: a line such as `--- foo` makes Kyverno silently drop this
/// document and all that follow. Here it stays in the document's text, and
/// [`read`](super::read) rejects that document with the location of the line; later
/// documents are still read.
pub fn split_documents(text: &str) -> Vec<DocumentText<'_>> {
    let mut documents = Vec::new();
    let mut start = if text.starts_with('\u{FEFF}') { 3 } else { 0 };
    let mut start_line = 1;
    let mut at = start;
    let rest = text.get(start..).unwrap_or_default();
    for (index, line) in rest.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if at > start && separator(line) == Some(Separator::Valid) {
            documents.push((start, at, start_line));
            start = end;
            start_line = index + 2;
        }
        at = end;
    }
    documents.push((start, at, start_line));
    documents
        .into_iter()
        .map(|(start, end, line)| DocumentText {
            text: text.get(start..end).unwrap_or_default(),
            offset: start,
            line,
        })
        .filter(|document| !document.is_blank())
        .collect()
}

/// Kind of a line that begins with `---`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Valid,
    Invalid,
}

fn separator(line: &str) -> Option<Separator> {
    let rest = line.strip_prefix("---")?.trim();
    if rest.is_empty() || rest.starts_with('#') {
        Some(Separator::Valid)
    } else {
        Some(Separator::Invalid)
    }
}

/// Location of the first line that begins with `---` and is not a separator.
pub(super) fn find_invalid_separator(text: &str) -> Option<std::ops::Range<usize>> {
    let inner = memchr::memmem::find_iter(text.as_bytes(), b"\n---").map(|at| at + 1);
    std::iter::once(0).chain(inner).find_map(|start| {
        let line = text.get(start..)?.split('\n').next()?;
        (separator(line)? == Separator::Invalid).then(|| start..start + line.trim_end().len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split_documents(text).iter().map(|d| d.text).collect()
    }

    #[test]
    fn documents_are_cut_as_the_splitter_of_kyverno_does() {
        // docs/spec/cli.md §8.2, which writes `a` for the line `a`.
        let rows: [(&str, &[&str]); 17] = [
            ("a\n---\n---\nb", &["a\n", "---\nb"]),
            ("---\n---\n", &["---\n"]),
            ("---\n\n\n---\n", &["---\n\n\n"]),
            ("", &[]),
            ("a", &["a"]),
            ("a\n---\nb\n", &["a\n", "b\n"]),
            // The rest may be blank or a comment, also without a space.
            ("a\n---   \nb", &["a\n", "b"]),
            ("a\n---# x\nb", &["a\n", "b"]),
            ("a\n--- # x\nb", &["a\n", "b"]),
            // Only comments: empty; with a preceding --- they are not.
            ("# x\n\n---\na", &["a"]),
            ("---\n# x\n---\na", &["---\n# x\n", "a"]),
            // `...` is not a separator.
            ("a\n...\nb", &["a\n...\nb"]),
            // A separator inside a block scalar at column 0 splits.
            ("a: |\n---\nb", &["a: |\n", "b"]),
            // An indented one does not.
            ("a: |\n ---\n b", &["a: |\n ---\n b"]),
            // CRLF is fine.
            ("a\r\n---\r\nb\r\n", &["a\r\n", "b\r\n"]),
            // An invalid separator stays in its document.
            ("a\n--- foo\nb\n---\nc", &["a\n--- foo\nb\n", "c"]),
            ("\u{FEFF}a\n---\nb", &["a\n", "b"]),
        ];
        for (text, expected) in rows {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn offsets_and_lines_are_those_of_the_file() {
        let text = "\u{FEFF}# x\n---\na: 1\n---\n---\nb: 2\n";
        for document in split_documents(text) {
            assert_eq!(
                text.get(document.offset..document.offset + document.text.len()),
                Some(document.text)
            );
            assert_eq!(
                super::super::line_column(text, document.offset).0,
                document.line
            );
        }
    }

    #[test]
    fn invalid_separators_are_found_with_their_place() {
        for (text, expected) in [
            ("a\n---\nb", None),
            ("--- foo", Some(0..7)),
            ("a\n---foo \nb", Some(2..8)),
            ("a\n -- x", None),
            ("a\n----\n", Some(2..6)),
        ] {
            assert_eq!(find_invalid_separator(text), expected, "{text:?}");
        }
    }
}
