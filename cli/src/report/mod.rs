//! Reports of a run, in the requested formats.
//!
//! Each chunk of the input produces a [`Run`]; the worker that evaluated it renders the
//! chunk's share of the report ([`Part`]), and a [`Report`] joins the parts in input order,
//! on standard output or in files. `text`, `table` and `markdown` are for people, the
//! others for programs. Problems of inputs are also written to standard error in every
//! format.

pub mod entry;
pub mod exception;
pub mod excerpt;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod policy_report;
pub mod sarif;
pub mod section;
pub mod set;
pub mod structured;
pub mod table;
pub mod text;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::explain;
use crate::output::write_file;
use crate::policies::Policies;
use crate::problem::Problem;
use crate::report::section::{Key, Section, Sections};
use crate::resources::Resources;
use crate::scan::{Scan, Summary};
use crate::serialised::{documents, json_documents};

/// Findings of one chunk of the input, which may be all of it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'r> {
    /// The findings.
    pub scan: &'r Scan<'r>,
    /// The objects and their texts.
    pub resources: &'r Resources,
    /// The policies and their texts; `None` if only a bundle is available.
    pub policies: Option<&'r Policies>,
    /// Seconds since 1970, for reports that contain the time.
    pub now: u64,
    /// Whether skipped rules are shown in reports for people.
    pub verbose: bool,
    /// Lifetime of generated exceptions, in nanoseconds; unlimited if not above 0.
    pub exception_ttl: i64,
}

/// Totals over all chunks.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'r> {
    /// The counts; findings are in the parts.
    pub scan: &'r Scan<'r>,
    /// Inputs that could not be used.
    pub problems: &'r [Note],
    /// The policies and their texts; `None` if only a bundle is available.
    pub policies: Option<&'r Policies>,
    /// Whether the table has a column for messages.
    pub detailed: bool,
}

/// An unusable input, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: String,
    /// Line and character, from 1, if known.
    pub position: Option<(u32, u32)>,
    /// What is wrong.
    pub message: String,
}

/// Report formats.
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
    /// Whether it is read on a terminal, so that it gets a heading.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Text | Format::Table)
    }

    /// Format of traces (`--explain`); `None` if there is none.
    pub fn of_traces(self) -> Option<explain::Format> {
        match self {
            Format::Text => Some(explain::Format::Text),
            Format::Json => Some(explain::Format::Json),
            Format::Yaml => Some(explain::Format::Yaml),
            _ => None,
        }
    }

    /// Whether it explains why policies matched nothing.
    pub fn tells_unmatched(self) -> bool {
        matches!(self, Format::Json | Format::Yaml)
    }

    /// Whether passed rules are listed instead of only counted.
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

/// A report written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its format.
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

/// Share of one chunk of the input in a report.
#[derive(Debug)]
pub enum Part {
    /// For the text for people.
    Text(text::Groups),
    /// For a SARIF document.
    Sarif(sarif::Part),
    /// For sections of any other format.
    Sections(Vec<Section>),
}

impl Part {
    /// Renders a part in this format.
    ///
    /// # Errors
    /// Fails if a serialiser fails.
    pub fn new(format: Format, run: &Run<'_>) -> io::Result<Self> {
        let one = |section| Self::Sections(vec![section]);
        let of_text = |(text, items): (String, usize)| {
            one(Section {
                key: Key::All,
                text: text.into_bytes(),
                items,
                summary: Summary::default(),
            })
        };
        Ok(match format {
            Format::Text => Self::Text(text::Groups::of(run)),
            Format::Table => one(table::section(run)?),
            Format::Json => one(structured::section(run, true)?),
            Format::Yaml => one(structured::section(run, false)?),
            Format::Sarif => {
                let policies = run.scan.facts.policies.iter();
                let rules = policies.flat_map(entry::rules);
                Self::Sarif(sarif::part(&entry::entries(run), rules)?)
            }
            Format::Junit => Self::Sections(junit::sections(&entry::entries(run))?),
            Format::Github => of_text((github::lines(&entry::entries(run)), 1)),
            Format::Markdown => one(markdown::section(&entry::entries(run))),
            Format::Exceptions => of_text(documents(&exception::exceptions(run))?),
            Format::ExceptionsJson => of_text(json_documents(&exception::exceptions(run))?),
            Format::PolicyReport
            | Format::OpenReports
            | Format::KyvernoReport
            | Format::KyvernoReportJson => {
                let (form, is_json) = policy_report_form(format);
                Self::Sections(policy_report::sections(run, form, is_json)?)
            }
        })
    }
}

fn policy_report_form(format: Format) -> (policy_report::Form, bool) {
    use policy_report::{Form, Group};
    match format {
        Format::PolicyReport => (Form::ByNamespace(Group::WgPolicy), false),
        Format::OpenReports => (Form::ByNamespace(Group::OpenReports), false),
        Format::KyvernoReportJson => (Form::Kyverno, true),
        _ => (Form::Kyverno, false),
    }
}

/// A report that grows chunk by chunk.
#[derive(Debug)]
pub struct Report {
    format: Format,
    groups: text::Groups,
    results: sarif::AllResults,
    sections: Sections,
}

impl Report {
    /// An empty report.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            groups: text::Groups::default(),
            results: sarif::AllResults::default(),
            sections: Sections::default(),
        }
    }

    /// Adds a part. If `out` is given and much text for people is waiting, writes some of
    /// it.
    ///
    /// # Errors
    /// Fails if the temporary file or the writer fails.
    pub fn add(&mut self, part: Part, out: Option<&mut dyn Write>) -> io::Result<()> {
        match part {
            Part::Text(groups) => self.groups.add(groups),
            Part::Sarif(results) => self.results.add(results)?,
            Part::Sections(sections) => {
                let separator = match self.format {
                    Format::Json => ",\n",
                    Format::KyvernoReportJson => ",",
                    Format::Exceptions | Format::ExceptionsJson => "---\n",
                    _ => "",
                };
                for section in sections {
                    self.sections.add(section, separator)?;
                }
            }
        }
        if self.groups.are_many() {
            match out {
                Some(out) => self.groups.write(out)?,
                None => self.set_groups_aside()?,
            }
        }
        Ok(())
    }

    fn set_groups_aside(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        self.groups.write(&mut text)?;
        let section = Section {
            key: Key::All,
            text,
            items: 1,
            summary: Summary::default(),
        };
        self.sections.add(section, "")
    }

    /// Writes the rest of the report.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn finish(mut self, totals: &Totals<'_>, out: &mut dyn Write) -> io::Result<()> {
        let sections = &mut self.sections;
        match self.format {
            Format::Text => {
                sections.copy(0, out)?;
                self.groups.write(out)?;
                text::write_summary(totals.scan.summary, out)
            }
            Format::Table => table::write_sections(sections, totals.detailed, out),
            Format::Json => structured::write(totals, true, sections, out),
            Format::Yaml => structured::write(totals, false, sections, out),
            Format::Sarif => self.results.write(&entry::without_entries(totals), out),
            Format::Junit => {
                let notices = entry::without_entries(totals).notices;
                junit::write_suites(&notices, sections, out)
            }
            Format::Github => {
                github::write_notices(&entry::without_entries(totals).notices, out)?;
                sections.copy(0, out)
            }
            Format::Markdown => markdown::write(&entry::without_entries(totals), sections, out),
            Format::Exceptions | Format::ExceptionsJson => sections.copy(0, out),
            Format::PolicyReport
            | Format::OpenReports
            | Format::KyvernoReport
            | Format::KyvernoReportJson => {
                let (form, is_json) = policy_report_form(self.format);
                policy_report::write(totals, form, is_json, sections, out)
            }
        }
    }

    /// Writes the report to a file, without colours.
    ///
    /// # Errors
    /// Fails with the system's error and the name of the file.
    pub fn finish_file(self, totals: &Totals<'_>, file: &Path) -> io::Result<()> {
        let written = write_file(file, |out| {
            self.finish(totals, &mut anstream::StripStream::new(out))
        });
        written.map_err(|error| crate::output::with_name(file, &error))
    }
}

/// Problems with their locations, for reports.
pub fn notes(resources: &Resources) -> Vec<Note> {
    let note = |problem: &Problem| match problem {
        Problem::Unreadable(unreadable) => Note {
            file: unreadable.name.clone(),
            position: None,
            message: unreadable.reason.clone(),
        },
        Problem::InText(diagnostic) => {
            let location = diagnostic.location;
            let place = resources.line_column(location.source, location.span);
            Note {
                file: resources.sources.file(location.source).name.clone(),
                position: Some((place.line, place.column)),
                message: diagnostic.message.clone(),
            }
        }
    };
    resources.problems.iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serialised::write_yaml;
    use kpvm_semantics::limits::Limits;
    use kpvm_syntax::yaml::{DuplicateKeys, Options, read_all};

    /// Our reader interprets YAML as Kubernetes does (docs/spec/cli.md §8.3), where many
    /// plain scalars are not text. Whatever is written must read back unchanged.
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
            let found = tree.get("text").and_then(kpvm_syntax::tree::Tree::as_str);
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
