//! What a run found, in the form that was asked for.

pub mod policy_report;
pub mod structured;
pub mod text;

use std::io;

use crate::explain;
use crate::problem::Problem;
use crate::resources::Resources;
use crate::scan::Scan;
use crate::stream::Streams;

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: what failed, grouped by rule
    #[default]
    Text,
    /// One JSON object with every result
    Json,
    /// The same as YAML
    Yaml,
    /// wgpolicyk8s.io/v1alpha2 reports as YAML
    #[value(name = "policyreport")]
    PolicyReport,
}

impl Format {
    /// The form of traces (`--explain`); `None` where there is none.
    pub fn of_traces(self) -> Option<explain::Format> {
        match self {
            Format::Text => Some(explain::Format::Text),
            Format::Json => Some(explain::Format::Json),
            Format::Yaml => Some(explain::Format::Yaml),
            Format::PolicyReport => None,
        }
    }

    /// Whether passed rules are listed, and not only counted.
    pub fn lists_passes(self) -> bool {
        self != Format::Text
    }
}

/// Writes the report to the payload stream. `now`: seconds since 1970, for reports
/// that carry the time.
///
/// # Errors
/// Those of the writer.
pub fn write(
    format: Format,
    scan: &Scan,
    resources: &Resources,
    now: u64,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(scan, streams.out),
        Format::Json => {
            serde_json::to_writer_pretty(
                &mut *streams.out,
                &structured::document(scan, resources),
            )?;
            writeln!(streams.out)
        }
        Format::Yaml => write_yaml(&structured::document(scan, resources), streams.out),
        Format::PolicyReport => {
            for (index, report) in policy_report::reports(scan, now).iter().enumerate() {
                if index > 0 {
                    writeln!(streams.out, "---")?;
                }
                write_yaml(report, streams.out)?;
            }
            Ok(())
        }
    }
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
