//! `kpvm eval` and `kpvm apply`

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use kpvm::engine::{Bundle, Operation};
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::source::Sources;

use crate::command::{explain, load_bundle};
use crate::diagnostics::{show_error, show_note, show_warning};
use crate::evaluation::Circumstances;
use crate::explain::ExplainArguments;
use crate::host::{ProcessHost, since_epoch};
use crate::omitted;
use crate::policies::{self, Exceptions, Policies, PolicyPaths};
use crate::report::{self, Format};
use crate::resources::{Resources, read_resources};
use crate::scan::{Scan, Settings, scan};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::{clean, count};
use crate::user_info::read_user;
use crate::values::Labels;

/// Arguments of `kpvm eval`.
#[derive(Debug, clap::Args)]
pub struct EvalArguments {
    /// The bundle, as written by kpc compile
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Resource files, directories (read with all below them), or - for standard input
    #[arg(required = true, value_name = "RESOURCE")]
    pub resources: Vec<PathBuf>,
    /// How to evaluate and report.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Arguments of `kpvm apply`.
#[derive(Debug, clap::Args)]
pub struct ApplyArguments {
    /// Policy files, directories (read with all below them), or - for standard input
    #[arg(required = true, value_name = "POLICIES")]
    pub policies: Vec<PathBuf>,
    /// Resource files, directories, or - for standard input
    #[arg(short, long = "resource", visible_alias = "resources", required = true, num_args = 1.., value_name = "RESOURCE")]
    pub resources: Vec<PathBuf>,
    /// Leave out rules that are not supported yet, and say which
    #[arg(long)]
    pub skip_unsupported: bool,
    /// How to evaluate and report.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// How to evaluate and report.
#[derive(Debug, clap::Args)]
pub struct CommonArguments {
    /// The form of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// What is done to the resources; UPDATE takes them for old and new, DELETE for old
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    pub operation: OperationName,
    /// Labels of a namespace; give the option once for each namespace
    #[arg(long, value_name = "NAMESPACE=KEY=VALUE,...", value_parser = parse_labels)]
    pub namespace_labels: Vec<NamespaceLabels>,
    /// Who makes the request: a file of the kind UserInfo
    #[arg(short, long, value_name = "FILE")]
    pub userinfo: Option<PathBuf>,
    /// Exceptions, added to those of a bundle: files or directories of the kind PolicyException
    #[arg(
        short,
        long = "exception",
        visible_alias = "exceptions",
        value_name = "FILE"
    )]
    pub exceptions: Vec<PathBuf>,
    /// Count failures of policies that only audit as warnings
    #[arg(long)]
    pub audit_warn: bool,
    /// Exit with this code when there are warnings but neither failures nor errors
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub warn_exit_code: u8,
    /// Exit with the code of --warn-exit-code when nothing passed
    #[arg(long)]
    pub warn_no_pass: bool,
    /// Exit with 1 when no rule applied to any resource
    #[arg(long)]
    pub fail_on_empty: bool,
    /// What to explain.
    #[command(flatten)]
    pub explain: ExplainArguments,
}

/// What is done to the resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum OperationName {
    /// They are created
    #[default]
    Create,
    /// They replace themselves
    Update,
    /// They are deleted
    Delete,
}

/// The labels of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceLabels {
    namespace: String,
    labels: Vec<(String, String)>,
}

/// `NAMESPACE=KEY=VALUE,KEY=VALUE`
fn parse_labels(text: &str) -> Result<NamespaceLabels, String> {
    let expected = || "expected NAMESPACE=KEY=VALUE,KEY=VALUE".to_owned();
    let (namespace, labels) = text.split_once('=').ok_or_else(expected)?;
    let labels: Option<Vec<_>> = labels
        .split(',')
        .map(|label| {
            label
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let labels = labels.ok_or_else(expected)?;
    if namespace.is_empty() || labels.iter().any(|(key, _)| key.is_empty()) {
        return Err(expected());
    }
    Ok(NamespaceLabels {
        namespace: namespace.to_owned(),
        labels,
    })
}

/// Evaluates resources with a bundle.
///
/// # Errors
/// Those of the writers.
pub fn eval(arguments: &EvalArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let Some(bundle) = load_bundle(&arguments.bundle, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    omitted::show(&bundle.meta().omitted, streams)?;
    let Some(bundle) = with_exceptions(bundle, &arguments.common.exceptions, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    evaluate(&bundle, &arguments.resources, &arguments.common, streams)
}

/// The bundle with more exceptions; says what is wrong and gives `None` when they
/// cannot be added.
fn with_exceptions(
    bundle: Bundle<'static>,
    paths: &[PathBuf],
    streams: &mut Streams<'_>,
) -> io::Result<Option<Bundle<'static>>> {
    if paths.is_empty() {
        return Ok(Some(bundle));
    }
    let options = Options::default();
    let Exceptions {
        mut read,
        documents,
    } = policies::load_exceptions(paths, &mut io::stdin(), &options);
    let found = std::mem::take(&mut read.compilation.diagnostics);
    let mut compilation =
        compile::add_exceptions(&bundle, &documents, &read.sources, &options, found);
    let bytes = compilation.bundle.take();
    // The bundle's own omitted rules are shown already.
    compilation.omitted.clear();
    read.compilation = compilation;
    read.show(streams)?;
    match bytes.map(Bundle::load) {
        Some(Ok(bundle)) if read.unreadable.is_empty() => Ok(Some(bundle)),
        Some(Err(error)) => {
            let message = format!("the exceptions cannot be added: {error}");
            show_error(&message, streams.err)?;
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Compiles policies in memory and evaluates resources with them.
///
/// # Errors
/// Those of the writers.
pub fn apply(arguments: &ApplyArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let is_stdin = |paths: &[PathBuf]| paths.iter().any(|path| path.as_os_str() == "-");
    if is_stdin(&arguments.policies) && is_stdin(&arguments.resources) {
        show_error(
            "standard input can be either policies or resources, not both",
            streams.err,
        )?;
        return Ok(EXIT_BAD_INPUT);
    }
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ..Options::default()
    };
    let paths = PolicyPaths {
        policies: &arguments.policies,
        exceptions: &arguments.common.exceptions,
        exceptions_within_policies: false,
    };
    let policies = policies::load(&paths, &mut io::stdin(), &options);
    policies.show(streams)?;
    if let Some(reason) = why_not_applied(&policies) {
        show_error(reason, streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    let loaded = policies.compilation.bundle.as_deref().map(Bundle::load);
    match loaded {
        Some(Ok(bundle)) => {
            let code = evaluate(&bundle, &arguments.resources, &arguments.common, streams)?;
            say_omitted(&policies, streams)?;
            Ok(code)
        }
        Some(Err(error)) => {
            show_error(
                &format!("the compiled policies cannot be loaded: {error}"),
                streams.err,
            )?;
            Ok(EXIT_BAD_INPUT)
        }
        None => Ok(EXIT_BAD_INPUT),
    }
}

/// Half of the policies would give a report that looks better than it should.
fn why_not_applied(policies: &Policies) -> Option<&'static str> {
    if policies.has_errors() {
        Some("nothing was evaluated, because of the errors in the policies")
    } else if policies.is_empty() {
        Some("there is no policy in the inputs")
    } else {
        None
    }
}

/// Once more at the end, where it cannot be overlooked.
fn say_omitted(policies: &Policies, streams: &mut Streams<'_>) -> io::Result<()> {
    let rules = omitted::group(&policies.compilation.omitted);
    let generated: usize = rules.iter().map(|rule| rule.generated).sum();
    let parts = [
        (rules.len(), "rule"),
        (generated, "generated rule"),
        (policies.omitted_policies.len(), "whole policy"),
    ];
    let parts = parts.into_iter().filter(|&(number, _)| number > 0);
    let parts: Vec<String> = parts.map(|(number, noun)| count(number, noun)).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let message = format!("left out because not supported yet: {}", parts.join(", "));
    show_warning(&message, streams.err)
}

fn evaluate(
    bundle: &Bundle<'_>,
    paths: &[PathBuf],
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<u8> {
    let mut settings = settings(arguments);
    if let Some(path) = &arguments.userinfo {
        let mut sources = Sources::new();
        match read_user(path, &mut sources) {
            Ok(user) => {
                if !user.is_typed {
                    let name = path.display().to_string();
                    show_warning(
                        &format!("{} lacks apiVersion or kind", clean(&name)),
                        streams.err,
                    )?;
                }
                settings.circumstances.user = Some(user);
            }
            Err(problems) => {
                for problem in problems {
                    problem.show(&sources, streams)?;
                }
                return Ok(EXIT_BAD_INPUT);
            }
        }
    }
    let mut resources = read_resources(paths, &mut io::stdin());
    if let Some(rule) = &arguments.explain.explain {
        let Some(format) = arguments.output.of_traces() else {
            let message = "--explain gives text, json or yaml, and no other form of output";
            show_error(message, streams.err)?;
            return Ok(EXIT_BAD_INPUT);
        };
        return explain::run(
            rule,
            &arguments.explain,
            format,
            bundle,
            &mut resources,
            &settings.circumstances,
            streams,
        );
    }
    let scan = scan(bundle, &mut resources, &settings, &mut ProcessHost);
    for problem in &resources.problems {
        problem.show(&resources.sources, streams)?;
    }
    streams.err.flush()?;
    report::write(
        arguments.output,
        &scan,
        &resources,
        since_epoch().as_secs(),
        streams,
    )?;
    streams.out.flush()?;
    say_what_is_missing(&scan, &resources, streams)?;
    Ok(exit_code(&scan, &resources, arguments))
}

fn settings(arguments: &CommonArguments) -> Settings {
    let mut namespaces: BTreeMap<String, Labels> = BTreeMap::new();
    for entry in &arguments.namespace_labels {
        let labels = namespaces.entry(entry.namespace.clone()).or_default();
        labels.extend(entry.labels.iter().cloned());
    }
    Settings {
        circumstances: Circumstances {
            operation: match arguments.operation {
                OperationName::Create => Operation::Create,
                OperationName::Update => Operation::Update,
                OperationName::Delete => Operation::Delete,
            },
            namespaces,
            ..Circumstances::default()
        },
        audit_warn: arguments.audit_warn,
        keep_passes: arguments.output.lists_passes(),
    }
}

/// Silence must not look like success.
fn say_what_is_missing(
    scan: &Scan,
    resources: &Resources,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    if resources.empty_lists > 0 {
        show_note(
            &format!("{} held no items", count(resources.empty_lists, "list")),
            streams.err,
        )?;
    }
    if scan.objects.is_empty() && resources.problems.is_empty() {
        show_warning("there is no resource in the inputs", streams.err)?;
    } else if scan.summary.total() == 0 {
        let (rules, objects) = (
            count(scan.rules, "rule"),
            count(scan.objects.len(), "resource"),
        );
        show_warning(
            &format!("no rule applied to any resource ({rules}, {objects})"),
            streams.err,
        )?;
    }
    if !resources.problems.is_empty() {
        let message = format!(
            "{} could not be used; the others were evaluated",
            count(resources.problems.len(), "input")
        );
        show_error(&message, streams.err)?;
    }
    Ok(())
}

/// Sheet 08, section 9.9; inputs that could not be used come first.
fn exit_code(scan: &Scan, resources: &Resources, arguments: &CommonArguments) -> u8 {
    let summary = scan.summary;
    if !resources.problems.is_empty() {
        EXIT_BAD_INPUT
    } else if summary.fail > 0
        || summary.error > 0
        || arguments.fail_on_empty && summary.total() == 0
    {
        EXIT_FAILED
    } else if summary.warn > 0 && arguments.warn_exit_code != 0
        || summary.pass == 0 && arguments.warn_no_pass
    {
        arguments.warn_exit_code
    } else {
        EXIT_OK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_labels() {
        let labels = parse_labels("prod=env=live,team=a=b,x=").unwrap();
        assert_eq!(labels.namespace, "prod");
        let pairs: Vec<_> = labels
            .labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("env", "live"), ("team", "a=b"), ("x", "")]);
        for bad in ["", "prod", "prod=", "prod=env", "=env=live", "prod==live"] {
            assert!(parse_labels(bad).is_err(), "{bad}");
        }
    }
}
