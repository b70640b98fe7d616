//! `kpvm apply`: takes the options of `kyverno apply` with the same meaning.

use std::io;
use std::path::{Path, PathBuf};

use kpvm::engine::Engine;
use kpvm_compiler::compile::Options;

use crate::command::evaluate::{CommonArguments, Given, Inputs, evaluate};
use crate::command::later::LaterArguments;
use crate::diagnostics::{show_error, show_note, show_warning};
use crate::omitted;
use crate::policies::{self, Policies, PolicyPaths};
use crate::resources::read_resources;
use crate::stream::{EXIT_BAD_INPUT, Streams};
use crate::suite::document::is_url;
use crate::text::{clean, count};

/// Arguments of `kpvm apply`.
#[derive(Debug, clap::Args)]
pub struct ApplyArguments {
    /// Policy files, directories (searched recursively), or - for standard input
    #[arg(value_name = "POLICIES")]
    pub policies: Vec<PathBuf>,
    /// Resource files, directories, or - for standard input, separated by commas; repeat
    /// the option for more
    #[arg(
        short,
        long = "resource",
        visible_alias = "resources",
        value_delimiter = ',',
        value_name = "RESOURCE,..."
    )]
    pub resources: Vec<PathBuf>,
    /// Payloads that are not Kubernetes objects, for policies in JSON mode, instead of
    /// resources
    #[arg(long, value_delimiter = ',', value_name = "FILE,...")]
    pub json: Vec<PathBuf>,
    /// Also apply the exceptions among the policies
    #[arg(long)]
    pub exceptions_within_policies: bool,
    /// Omit rules that are not supported yet, and list them
    #[arg(long)]
    pub skip_unsupported: bool,
    /// Print no heading
    #[arg(short = 'i', long)]
    pub stdin: bool,
    /// How to evaluate and report.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Options that are not supported yet.
    #[command(flatten)]
    pub later: LaterArguments,
}

/// Compiles policies in memory and evaluates resources against them.
///
/// # Errors
/// Fails if the writer fails.
pub fn apply(arguments: &ApplyArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    if !arguments.check(streams)? || !arguments.common.check(streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let Some(circumstances) = arguments.common.circumstances.read(streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let among = arguments.common.exceptions_with_resources;
    let mut whole = None;
    if among || !arguments.json.is_empty() {
        let mut resources = read_resources(&arguments.resources, &mut io::stdin());
        for path in &arguments.json {
            resources.add_payload_at(path);
        }
        whole = Some(Box::new(resources));
    }
    let options = Options {
        skip_unsupported: arguments.skip_unsupported,
        ..Options::default()
    };
    let paths = PolicyPaths {
        policies: &arguments.policies,
        exceptions: arguments.common.exceptions(),
        exceptions_within_policies: arguments.exceptions_within_policies,
        exceptions_among: whole.as_deref().filter(|_| among),
    };
    let mut policies = policies::load_valid(&paths, &mut io::stdin(), &options);
    policies.show(streams)?;
    if let Some(reason) = why_not_applied(&policies) {
        show_error(reason, streams.err)?;
        let mut all = policies.compilation.diagnostics.iter();
        if all.any(|one| one.code == "not-a-policy") {
            let note = "every path that is not behind --resource is a policy: repeat the option for more resources, or put commas between them";
            show_note(note, streams.err)?;
        }
        return Ok(EXIT_BAD_INPUT);
    }
    let Some(bytes) = policies.compilation.bundle.take() else {
        return Ok(EXIT_BAD_INPUT);
    };
    match Engine::load(bytes) {
        Ok(engine) => {
            let common = &arguments.common;
            let resources = match whole {
                Some(resources) => Given::Whole(resources),
                None => Given::new(
                    &arguments.resources,
                    engine.bundle(),
                    common,
                    &circumstances,
                ),
            };
            let inputs = Inputs {
                engine: &engine,
                policies: Some(&policies),
                exceptions: policies.compilation.exceptions,
                resources,
                circumstances,
                has_heading: !arguments.stdin,
            };
            let code = evaluate(inputs, common, streams)?;
            say_what_is_left_out(&policies, streams)?;
            Ok(code)
        }
        Err(error) => {
            let message = format!("the compiled policies cannot be loaded: {error}");
            show_error(&message, streams.err)?;
            Ok(EXIT_BAD_INPUT)
        }
    }
}

impl ApplyArguments {
    /// Whether the options can be used together (docs/spec/cli.md §9.2). Reports conflicts,
    /// in Kyverno's words where it has some.
    fn check(&self, streams: &mut Streams<'_>) -> io::Result<bool> {
        for (option, reason) in self.later.unused() {
            show_note(&format!("{option} changes nothing: {reason}"), streams.err)?;
        }
        if let Some(message) = self.wrong_usage() {
            show_error(message, streams.err)?;
            return Ok(false);
        }
        let refused = self.later.refused();
        for (option, advice) in &refused {
            let message = format!("{option} is not supported yet: {advice}");
            show_error(&message, streams.err)?;
        }
        let paths = [&self.policies, &self.resources, &self.common.exceptions];
        let is_url = |path: &&&PathBuf| is_url(&path.to_string_lossy());
        let urls: Vec<&PathBuf> = paths
            .into_iter()
            .flatten()
            .filter(|path| is_url(&path))
            .collect();
        for url in &urls {
            let shown = url.display().to_string();
            let message = format!(
                "{} would have to be fetched, which is not supported yet: download it and give the file",
                clean(&shown)
            );
            show_error(&message, streams.err)?;
        }
        Ok(refused.is_empty() && urls.is_empty())
    }

    fn wrong_usage(&self) -> Option<&'static str> {
        let later = &self.later;
        let has_payload = !self.json.is_empty()
            || !later.http_payload.is_empty()
            || !later.envoy_payload.is_empty();
        let readers = [&self.policies, &self.resources, &self.common.exceptions];
        let readers = readers
            .into_iter()
            .filter(|paths| paths.iter().any(|path| is_stdin(path)));
        if self.policies.is_empty() {
            Some("require policy: name the files or directories of the policies")
        } else if self.policies.iter().any(|path| is_stdin(path))
            && self.resources.iter().any(|path| is_stdin(path))
        {
            Some("a stdin pipe can be used for either policies or resources, not both")
        } else if readers.count() > 1 {
            Some("standard input can be read only once")
        } else if !self.resources.is_empty() && !self.json.is_empty() {
            Some("both resource and json files can not be used together, use one or the other")
        } else if self.resources.is_empty() && !later.cluster && !has_payload {
            Some(
                "resource file(s) or cluster required: name the files of the resources behind --resource",
            )
        } else if !self.common.crd_paths.is_empty() && later.kubeconfig.is_some() {
            Some(
                "crd-paths and kubeconfig flags are mutually exclusive, please use only one of them",
            )
        } else {
            None
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Evaluating only some of the policies would make the report look better than it is.
fn why_not_applied(policies: &Policies) -> Option<&'static str> {
    if policies.has_errors() {
        Some("nothing was evaluated, because of the errors in the policies")
    } else if policies.is_empty() {
        Some("there is no policy in the inputs")
    } else {
        None
    }
}

/// Repeats the omissions at the end, where they cannot be overlooked.
fn say_what_is_left_out(policies: &Policies, streams: &mut Streams<'_>) -> io::Result<()> {
    let rules = omitted::group(&policies.compilation.omitted);
    let generated: usize = rules.iter().map(|rule| rule.generated).sum();
    let parts = [
        (rules.len(), "rule"),
        (generated, "generated rule"),
        (policies.omitted_policies.len(), "whole policy"),
    ];
    let parts = parts.into_iter().filter(|&(number, _)| number > 0);
    let parts: Vec<String> = parts.map(|(number, noun)| count(number, noun)).collect();
    if !parts.is_empty() {
        let message = format!("left out because not supported yet: {}", parts.join(", "));
        show_warning(&message, streams.err)?;
    }
    let names: Vec<_> = policies
        .invalid
        .iter()
        .map(|policy| clean(&policy.name))
        .collect();
    if !names.is_empty() {
        let message = format!(
            "skipped because invalid, each counted as an error: {}",
            names.join(", ")
        );
        show_error(&message, streams.err)?;
    }
    Ok(())
}
