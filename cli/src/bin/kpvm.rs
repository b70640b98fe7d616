//! `kpvm`: evaluates Kubernetes resources against Kyverno policies.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kpvm_cli::command::{apply, completion, eval, flags, limits, man, test, version};
use kpvm_cli::stream;

/// Evaluate Kubernetes resources against Kyverno policies.
#[derive(Debug, Parser)]
#[command(name = "kpvm", version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  kpvm apply policies/ --resource manifests/
  helm template . | kpvm apply policies/ --resource -
  kpvm eval policies.kpb manifests/ -o json
  kpvm apply policies/ -r manifests/ --report sarif=kpvm.sarif --report junit=kpvm.xml

Exit codes:
  0  no rule failed
  1  a rule failed or could not be evaluated, or a policy is invalid (the others are
     still evaluated)
  2  wrong usage, policies that cannot be read or are not supported yet (nothing is
     evaluated), an unusable resource (the others are evaluated), or output that cannot
     be written
Warnings (failures of policies that are not scored, or with --audit-warn of policies
that only audit) exit with 0, or with the code given by --warn-exit-code.";

const EVAL_HELP: &str = "\
Examples:
  kpvm eval policies.kpb deployment.yaml
  kubectl get pods -A -o json | kpvm eval policies.kpb -
  kpvm eval policies.kpb manifests/ -o policyreport
  pods | kpvm eval policies.kpb -                   NDJSON, YAML or a list, of any length

Exit codes: 0 no rule failed, 1 a rule failed or could not be evaluated, 2 wrong usage or
bad input.";

const APPLY_HELP: &str = "\
Examples:
  kpvm apply policies/ --resource manifests/,more.yaml
  kpvm apply policies/ -r manifests/ -f values.yaml -e exceptions/
  helm template . | kpvm apply policies/ --resource -
  kpvm apply policies/ -r deployment.yaml --namespace-labels prod=env=live,team=blue
  kpvm apply policies/ -r manifests/ --operation UPDATE --userinfo user.yaml
  kpvm apply policies/ -r manifests/ -o github --report sarif=kpvm.sarif
  kpvm apply policies/ -r pod.yaml --explain require-labels/check-labels

Exit codes: 0 no rule failed, 1 a rule failed or could not be evaluated or a policy is
invalid, 2 wrong usage, bad input or policies that are not supported yet. Warnings exit
with the code given by --warn-exit-code.";

const TEST_HELP: &str = "\
Examples:
  kpvm test .
  kpvm test policies/ --fail-only
  kpvm test policies/ -t policy=require-labels -v
  kpvm test policies/ -o json --output-file results.json
  kpvm test policies/ --coverage
  kpvm test policies/ --coverage=lcov --coverage-file lcov.info --coverage-fail-under 80
  kpvm test policies/ --explain require-labels/check-labels --explain-resource Pod/web

A suite is a kyverno-test.yaml as read by `kyverno test`. Rows that need unsupported features
are listed as unsupported and do not fail the run by themselves.

Exit codes: 0 all rows agree, 1 a row disagrees (or a condition of --require-tests or a
--fail-on option holds), 2 wrong usage or a suite that cannot be run; the other suites are
still run.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate resources against a compiled bundle
    #[command(after_help = EVAL_HELP)]
    Eval(Box<eval::EvalArguments>),
    /// Compile policies in memory and evaluate resources against them
    #[command(after_help = APPLY_HELP)]
    Apply(Box<apply::ApplyArguments>),
    /// Run suites: policies, resources and their expected results
    #[command(after_help = TEST_HELP)]
    Test(test::TestArguments),
    /// Print the limits under which inputs are read and rules are evaluated
    Limits,
    /// Print completions for a shell
    #[command(after_help = completion::HELP)]
    Completion(completion::Arguments),
    /// Print the manual page, or write all of them into a directory
    #[command(after_help = man::HELP)]
    Man(man::Arguments),
    /// Print the version and the commit it was built from
    Version(version::Arguments),
}

impl Command {
    fn removes_color(&self) -> bool {
        match self {
            Command::Eval(arguments) => arguments.common.remove_color,
            Command::Apply(arguments) => arguments.common.remove_color,
            Command::Test(arguments) => arguments.remove_color,
            Command::Limits | Command::Completion(_) | Command::Man(_) | Command::Version(_) => {
                false
            }
        }
    }
}

/// Help shows the plain command, in which flags take no values.
fn parse() -> Arguments {
    let of_kyverno = ["eval", "apply", "test"];
    let with_values =
        |command: clap::Command, name| command.mut_subcommand(name, flags::with_values);
    let command = of_kyverno
        .into_iter()
        .fold(Arguments::command(), with_values);
    let matches = command
        .try_get_matches()
        .unwrap_or_else(|error| match error.kind() {
            ErrorKind::DisplayHelp => Arguments::command().get_matches(),
            _ => error.exit(),
        });
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let arguments = parse();
    if arguments.command.removes_color() {
        anstream::ColorChoice::Never.write_global();
    }
    stream::run(|streams| match &arguments.command {
        Command::Eval(arguments) => eval::eval(arguments, streams),
        Command::Apply(arguments) => apply::apply(arguments, streams),
        Command::Test(arguments) => test::run(arguments, streams),
        Command::Limits => limits::run(streams),
        Command::Completion(arguments) => completion::run(arguments, Arguments::command(), streams),
        Command::Man(arguments) => man::run(arguments, Arguments::command(), streams),
        Command::Version(arguments) => version::run(arguments, streams),
    })
}
