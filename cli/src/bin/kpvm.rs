//! `kpvm`: evaluates Kubernetes resources with Kyverno policies.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kpvm_cli::command::{evaluate, limits, test};
use kpvm_cli::stream;

/// Evaluate Kubernetes resources with Kyverno policies.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  kpvm apply policies/ --resource manifests/
  helm template . | kpvm apply policies/ --resource -
  kpvm eval policies.kpb manifests/ -o json

Exit codes:
  0  no rule failed
  1  a rule failed or could not be evaluated
  2  wrong usage, an input that cannot be used (the others are evaluated all the same),
     policies with errors, or output that cannot be written
Warnings (failures of policies that are not scored, or with --audit-warn of policies
that only audit) exit with 0, or with what --warn-exit-code says.";

const EVAL_HELP: &str = "\
Examples:
  kpvm eval policies.kpb deployment.yaml
  kubectl get pods -A -o json | kpvm eval policies.kpb -
  kpvm eval policies.kpb manifests/ -o policyreport

Exit codes: 0 no rule failed, 1 a rule failed or could not be evaluated, 2 wrong usage or
bad input.";

const APPLY_HELP: &str = "\
Examples:
  kpvm apply policies/ --resource manifests/ more.yaml
  helm template . | kpvm apply policies/ --resource -
  kpvm apply policies/ -r deployment.yaml --namespace-labels prod=env=live,team=blue
  kpvm apply policies/ -r manifests/ --operation UPDATE --userinfo user.yaml
  kpvm apply policies/ -r pod.yaml --explain require-labels/check-labels

Exit codes: 0 no rule failed, 1 a rule failed or could not be evaluated, 2 wrong usage,
bad input or policies with errors.";

const TEST_HELP: &str = "\
Examples:
  kpvm test .
  kpvm test policies/ --fail-only
  kpvm test policies/ -t policy=require-labels -v
  kpvm test policies/ -o json --output-file results.json
  kpvm test policies/ --coverage
  kpvm test policies/ --coverage=lcov --coverage-file lcov.info --coverage-fail-under 80
  kpvm test policies/ --explain require-labels/check-labels --explain-resource Pod/web

A suite is a kyverno-test.yaml as `kyverno test` reads it. Rows that need what is not
supported yet are listed as unsupported and do not fail the run by themselves.

Exit codes: 0 all rows agree, 1 a row disagrees (or what the --fail-on options and
--require-tests ask for), 2 wrong usage or a suite that cannot be used as it stands; the
others are run all the same.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate resources with a compiled bundle
    #[command(after_help = EVAL_HELP)]
    Eval(evaluate::EvalArguments),
    /// Compile policies in memory and evaluate resources with them
    #[command(after_help = APPLY_HELP)]
    Apply(evaluate::ApplyArguments),
    /// Run suites: policies, resources and the results expected of them
    #[command(after_help = TEST_HELP)]
    Test(test::TestArguments),
    /// Print the limits under which inputs are read and rules are evaluated
    Limits,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Command::Test(arguments) = &arguments.command
        && arguments.remove_color
    {
        anstream::ColorChoice::Never.write_global();
    }
    stream::run(|streams| match &arguments.command {
        Command::Eval(arguments) => evaluate::eval(arguments, streams),
        Command::Apply(arguments) => evaluate::apply(arguments, streams),
        Command::Test(arguments) => test::run(arguments, streams),
        Command::Limits => limits::run(streams),
    })
}
