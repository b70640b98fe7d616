//! What a run found, in the forms that were asked for.
//!
//! A [`Run`] goes in, bytes leave: to the payload stream or to files. `text`, `table`
//! and `markdown` are for people, the others for programs. What is wrong with inputs
//! is told on the other stream as well, whatever the form.

pub mod entry;
pub mod exception;
pub mod excerpt;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod policy_report;
pub mod sarif;
pub mod structured;
pub mod table;
pub mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use crate::explain;
use crate::output::write_file;
use crate::policies::Policies;
use crate::problem::Problem;
use crate::resources::Resources;
use crate::scan::Scan;
use crate::text::clean_json;

/// Everything that a report may speak of.
#[derive(Debug, Clone, Copy)]
pub struct Run<'r> {
    /// What was found.
    pub scan: &'r Scan,
    /// The objects and their texts.
    pub resources: &'r Resources,
    /// The policies and their texts; `None` where there is only a bundle.
    pub policies: Option<&'r Policies>,
    /// Seconds since 1970, for reports that carry the time.
    pub now: u64,
    /// Whether rules that were skipped are shown to people.
    pub verbose: bool,
    /// Whether the table has a column for messages.
    pub detailed: bool,
    /// How long generated exceptions hold, in nanoseconds; for ever where it is not above 0.
    pub exception_ttl: i64,
}

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: what failed, grouped by rule
    #[default]
    Text,
    /// Kyverno's table: one row for each result
    Table,
    /// One JSON object with every result
    Json,
    /// The same as YAML
    Yaml,
    /// wgpolicyk8s.io/v1alpha2 reports as YAML, one for each namespace
    #[value(name = "policyreport")]
    PolicyReport,
    /// openreports.io/v1alpha1 reports as YAML, one for each namespace
    #[value(name = "openreports")]
    OpenReports,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, for CI systems
    Junit,
    /// Workflow commands: GitHub shows them beside the lines
    Github,
    /// Tables in Markdown, for job summaries and comments
    Markdown,
    /// A PolicyException for each failure, as YAML
    Exceptions,
    /// The same as JSON
    #[value(skip)]
    ExceptionsJson,
    /// What `kyverno apply --policy-report` prints, as YAML
    #[value(skip)]
    KyvernoReport,
    /// The same as JSON
    #[value(skip)]
    KyvernoReportJson,
}

impl Format {
    /// Whether it is read on a terminal, so that a heading belongs before it.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Text | Format::Table)
    }

    /// The form of traces (`--explain`); `None` where there is none.
    pub fn of_traces(self) -> Option<explain::Format> {
        match self {
            Format::Text => Some(explain::Format::Text),
            Format::Json => Some(explain::Format::Json),
            Format::Yaml => Some(explain::Format::Yaml),
            _ => None,
        }
    }

    /// Whether passed rules are listed, and not only counted.
    pub fn lists_passes(self) -> bool {
        match self {
            Format::Text
            | Format::Sarif
            | Format::Github
            | Format::Markdown
            | Format::Exceptions
            | Format::ExceptionsJson => false,
            Format::Table
            | Format::Json
            | Format::Yaml
            | Format::PolicyReport
            | Format::OpenReports
            | Format::Junit
            | Format::KyvernoReport
            | Format::KyvernoReportJson => true,
        }
    }
}

/// A report that goes to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its form.
    pub format: Format,
    /// The file, which is replaced.
    pub file: PathBuf,
}

impl FromStr for FileReport {
    type Err = String;

    /// `FORMAT=FILE`
    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text
            .split_once('=')
            .filter(|(_, file)| !file.is_empty())
            .ok_or("expected FORMAT=FILE")?;
        let format = <Format as clap::ValueEnum>::from_str(format, false).map_err(|_| {
            let known: Vec<String> = <Format as clap::ValueEnum>::value_variants()
                .iter()
                .filter_map(clap::ValueEnum::to_possible_value)
                .map(|value| value.get_name().to_owned())
                .collect();
            format!("`{format}` is not one of {}", known.join(", "))
        })?;
        Ok(Self {
            format,
            file: file.into(),
        })
    }
}

impl FileReport {
    /// Writes the report into its file, without colours.
    ///
    /// # Errors
    /// Those of the system, with the name of the file.
    pub fn write(&self, run: &Run<'_>) -> io::Result<()> {
        let written = write_file(&self.file, |out| {
            write(self.format, run, &mut anstream::StripStream::new(out))
        });
        written.map_err(|error| crate::output::with_name(&self.file, &error))
    }
}

/// Writes a report.
///
/// # Errors
/// Those of the writer.
pub fn write(format: Format, run: &Run<'_>, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => text::write(run, out),
        Format::Table => table::write(&table::rows(run), run.detailed, out),
        Format::Json => write_json(&structured::document(run), out),
        Format::Yaml => write_yaml(&structured::document(run), out),
        Format::PolicyReport => write_documents(
            &policy_report::reports(run, policy_report::Group::WgPolicy),
            out,
        ),
        Format::OpenReports => write_documents(
            &policy_report::reports(run, policy_report::Group::OpenReports),
            out,
        ),
        Format::Sarif => write_json(&sarif::log(&entry::entries(run)), out),
        Format::Junit => junit::write(&entry::entries(run), out),
        Format::Github => github::write(&entry::entries(run), out),
        Format::Markdown => markdown::write(&entry::entries(run), out),
        Format::Exceptions => write_documents(&exception::exceptions(run), out),
        Format::ExceptionsJson => write_json_documents(&exception::exceptions(run), out),
        Format::KyvernoReport => write_documents(&policy_report::kyverno(run), out),
        Format::KyvernoReportJson => write_json_documents(&policy_report::kyverno(run), out),
    }
}

/// Writes one JSON document, indented.
///
/// # Errors
/// Those of the writer.
pub fn write_json<T: serde::Serialize>(document: &T, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    writeln!(out, "{}", clean_json(&text))
}

/// Writes YAML documents with a line `---` between them.
fn write_documents<T: serde::Serialize>(documents: &[T], out: &mut dyn Write) -> io::Result<()> {
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            writeln!(out, "---")?;
        }
        write_yaml(document, out)?;
    }
    Ok(())
}

/// As [`write_documents`], each document as JSON on one line.
fn write_json_documents<T: serde::Serialize>(
    documents: &[T],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            writeln!(out, "---")?;
        }
        writeln!(out, "{}", clean_json(&serde_json::to_string(document)?))?;
    }
    Ok(())
}

/// Writes one YAML document.
///
/// # Errors
/// Those of the writer.
pub fn write_yaml<T: serde::Serialize>(document: &T, out: &mut dyn io::Write) -> io::Result<()> {
    let text = serde_saphyr::to_string(document).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') {
        Ok(())
    } else {
        writeln!(out)
    }
}

/// The problems with their places, for reports.
fn problems(resources: &Resources) -> impl Iterator<Item = (&str, Option<(u32, u32)>, &str)> {
    resources.problems.iter().map(|problem| match problem {
        Problem::Unreadable(unreadable) => {
            (unreadable.name.as_str(), None, unreadable.reason.as_str())
        }
        Problem::InText(diagnostic) => {
            let location = diagnostic.location;
            let place = resources.line_column(location.source, location.span);
            let file = &resources.sources.file(location.source).name;
            (
                file.as_str(),
                Some((place.line, place.column)),
                diagnostic.message.as_str(),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kpvm::limits::Limits;
    use kpvm::yaml::{DuplicateKeys, Options, read_all};

    /// Our reader takes YAML as Kubernetes does (sheet 08, section 8.3), where many
    /// plain texts are something else than text. Whatever is written comes back.
    #[test]
    fn yaml_is_read_back_as_it_was_written() {
        let texts = [
            "",
            " ",
            "yes",
            "No",
            "on",
            "off",
            "y",
            "N",
            "true",
            "null",
            "~",
            "Null",
            "0644",
            "0o17",
            "0x1F",
            "0b1",
            "1_000",
            "08",
            "1e3",
            ".5",
            "1.",
            "+1",
            "-0",
            ".inf",
            ".NaN",
            "1:30",
            "2024-01-31",
            "<<",
            "=",
            "a: b",
            "a #b",
            "- a",
            "? a",
            "[a",
            "{a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "%a",
            "@a",
            "`a",
            "'a'",
            "\"a\"",
            "---",
            "...",
            "a\nb",
            "a\n",
            "\na",
            "  a\n b\n",
            "a\r\nb",
            "\ttab",
            "trailing ",
            "\u{7}bell",
            "\u{1b}[2J",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "é",
            "🎈",
            "key:",
            ":",
            ",",
            "a,b",
            "]]>",
            "\\",
            "a\\nb",
            "\u{0}",
            "\u{fffe}",
            "\u{e000}",
        ];
        let long = "word ".repeat(200);
        let long = [long.as_str(), &"x".repeat(500)];
        let options = Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &Limits::DEFAULT,
        };
        for text in texts.into_iter().chain(long) {
            #[derive(serde::Serialize)]
            struct Entry<'t> {
                text: &'t str,
                list: [&'t str; 1],
                map: structured::Pairs<'t>,
                last: u32,
            }
            let pairs = [(text.to_owned(), text.to_owned())];
            let entry = Entry {
                text,
                list: [text],
                map: structured::Pairs(&pairs),
                last: 1,
            };
            let mut out = Vec::new();
            write_yaml(&entry, &mut out).unwrap();
            let written = String::from_utf8(out).unwrap();
            let mut documents = read_all(&written, options);
            let tree = match documents.pop() {
                Some(Ok(tree)) if documents.is_empty() => tree,
                other => panic!("{text:?} became {written:?}: {other:?}"),
            };
            let found = tree.get("text").and_then(kpvm::tree::Tree::as_str);
            assert_eq!(found, Some(text), "{written}");
            let item = tree
                .get("list")
                .and_then(|list| list.as_list()?.first()?.as_str());
            assert_eq!(item, Some(text), "{written}");
            let member = tree.get("map").and_then(|map| map.as_map()?.first());
            let member = member.map(|member| (&*member.key, member.value.as_str()));
            assert_eq!(member, Some((text, Some(text))), "{written}");
        }
    }
}
