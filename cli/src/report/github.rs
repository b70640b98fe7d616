//! GitHub annotations: workflow commands that a job prints and GitHub shows next to the
//! lines of a pull request.
//!
//! Failures and errors are errors, warnings are warnings; passed and skipped results are
//! not written.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::place::Place;
use crate::report::entry::{Entries, Entry, Level, Notice};
use crate::scan::Outcome;
use crate::text::{clean, clean_text};

/// One annotation.
#[derive(Debug, Clone, Copy)]
struct Annotation<'a> {
    /// `error` or `warning`.
    command: &'static str,
    /// Empty if the annotation concerns no file.
    file: &'a str,
    /// Line and character.
    position: Option<(u32, u32)>,
    end_column: Option<u32>,
    title: &'a str,
    message: &'a str,
}

/// Writes one line for each annotation.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_notices(&entries.notices, out)?;
    out.write_all(lines(&entries.entries).as_bytes())
}

/// Writes one line for each notice; notices precede the other annotations.
pub fn write_notices(notices: &[Notice<'_>], out: &mut dyn Write) -> io::Result<()> {
    for notice in notices {
        writeln!(out, "{}", of_notice(notice))?;
    }
    Ok(())
}

/// The lines of entries.
pub fn lines(entries: &[Entry<'_>]) -> String {
    entries
        .iter()
        .filter_map(of_entry)
        .map(|line| line + "\n")
        .collect()
}

fn of_entry(entry: &Entry<'_>) -> Option<String> {
    let command = match entry.outcome {
        Outcome::Fail | Outcome::Error => "error",
        Outcome::Warn => "warning",
        Outcome::Pass | Outcome::Skip => return None,
    };
    let severity = match entry.severity {
        Some(severity) => format!(" [{severity}]"),
        None => String::new(),
    };
    let place: Option<&Place> = entry.place;
    let annotation = Annotation {
        command,
        file: place.map_or("", |place| &place.file),
        position: place.map(|place| (place.line, place.column)),
        end_column: place.and_then(|place| place.end_column),
        title: &format!("{}: {}{severity}", entry.outcome.as_str(), entry.rule),
        message: &format!("{}: {}", entry.object, entry.full_message()),
    };
    Some(annotation.line())
}

fn of_notice(notice: &Notice<'_>) -> String {
    let (command, title) = match notice.level {
        Level::Error => ("error", "input not used"),
        Level::Warning => ("warning", "left out"),
    };
    let annotation = Annotation {
        command,
        file: &notice.file,
        position: notice.position,
        end_column: None,
        title,
        message: &notice.message,
    };
    annotation.line()
}

impl Annotation<'_> {
    /// `::error file=a.yaml,line=1,col=2,title=…::message`
    fn line(&self) -> String {
        let mut line = format!("::{} ", self.command);
        if !self.file.is_empty() {
            let _ = write!(line, "file={},", property(self.file));
        }
        if let Some((number, column)) = self.position {
            let _ = write!(line, "line={number},col={column},");
        }
        if let Some(column) = self.end_column {
            let _ = write!(line, "endColumn={column},");
        }
        let _ = write!(
            line,
            "title={}::{}",
            property(self.title),
            data(self.message)
        );
        line
    }
}

/// Escapes a message: characters that would end the command.
fn data(text: &str) -> String {
    escaped(&clean_text(text))
}

/// Escapes a property: also characters that would end the property. Keeps white space at its end,
/// which can be part of a file's name.
fn property(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<_> = text.split('\n').map(clean).collect();
    escaped(&lines.join("\n"))
        .replace(':', "%3A")
        .replace(',', "%2C")
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Same escaping as the runner's toolkit: `%`, CR and LF everywhere, `:` and `,` in
    /// properties too.
    #[test]
    fn escapes() {
        for (text, expected_data, expected_property) in [
            ("plain", "plain", "plain"),
            ("100%", "100%25", "100%25"),
            ("%0A", "%250A", "%250A"),
            ("a\nb\r\nc", "a%0Ab%0Ac", "a%0Ab%0Ac"),
            ("a\rb", "a\\rb", "a\\rb"),
            ("a: b, c", "a: b, c", "a%3A b%2C c"),
            (
                "x\n::set-output::y",
                "x%0A::set-output::y",
                "x%0A%3A%3Aset-output%3A%3Ay",
            ),
            ("<b>&\"'é🎈", "<b>&\"'é🎈", "<b>&\"'é🎈"),
            ("\u{1b}[31m", "\\u{1b}[31m", "\\u{1b}[31m"),
            // Found by fuzzing: the name of a file was empty.
            ("\u{b}", "", "\\u{b}"),
            ("\r", "", "\\r"),
            ("a ", "a", "a "),
        ] {
            assert_eq!(data(text), expected_data, "{text:?}");
            assert_eq!(property(text), expected_property, "{text:?}");
        }
    }

    #[test]
    fn an_annotation_is_one_line_whatever_is_in_it() {
        let annotation = Annotation {
            command: "error",
            file: "a,b:c.yaml",
            position: Some((3, 7)),
            end_column: Some(9),
            title: "fail: p/r",
            message: "one\n::warning::two",
        };
        assert_eq!(
            annotation.line(),
            "::error file=a%2Cb%3Ac.yaml,line=3,col=7,endColumn=9,title=fail%3A p/r::one%0A::warning::two"
        );
        let nowhere = Annotation {
            file: "",
            position: None,
            end_column: None,
            ..annotation
        };
        assert!(nowhere.line().starts_with("::error title=fail%3A p/r::"));
    }
}
