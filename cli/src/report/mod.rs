//! What a run found, in the form that was asked for.

pub mod policy_report;
pub mod structured;
pub mod text;

use std::io;

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
            let place = resources.sources.line_column(diagnostic.location);
            let file = &resources.sources.file(diagnostic.location.source).name;
            (
                file.as_str(),
                Some((place.line, place.column)),
                diagnostic.message.as_str(),
            )
        }
    })
}
