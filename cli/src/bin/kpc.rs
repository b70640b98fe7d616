//! `kpc`: compiles Kyverno policies and inspects bundles.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use kpvm_cli::command::{
    check, compile, completion, disassemble, inspect, jp, man, vap, verify, version, webhooks,
};
use kpvm_cli::stream;

/// Compile Kyverno policies into bundles for kpvm.
#[derive(Debug, Parser)]
#[command(name = "kpc", version, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  kpc compile policies/ -o policies.kpb     compile a directory
  kpc check policies/                       only look for errors
  kpc inspect policies.kpb                  show the content of a bundle
  kpc jp query -i pod.yaml 'metadata.name'  try an expression

Exit codes:
  0  success
  1  a policy or an expression has errors or uses an unsupported feature
  2  wrong usage, unreadable input, or output that cannot be written";

const COMPILE_HELP: &str = "\
Examples:
  kpc compile policies/ -o policies.kpb
  kpc compile a.yaml b.yaml -o ab.kpb --skip-unsupported
  kustomize build . | kpc compile - -o policies.kpb
  kpc compile policy.yaml --emit optimised

Files may contain several YAML documents, JSON, or a List. A file given by name must contain
policies; in a directory, documents of other kinds are counted and ignored.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile policies into one bundle
    #[command(after_help = COMPILE_HELP)]
    Compile(compile::Arguments),
    /// Check policies without writing anything
    #[command(after_help = "Examples:\n  kpc check policies/\n  kpc check - < policy.yaml")]
    Check(check::Arguments),
    /// Show the code of a bundle
    #[command(
        after_help = "Examples:\n  kpc disasm policies.kpb\n  kpc disasm policies.kpb --rule my-policy/my-rule"
    )]
    Disasm(disassemble::Arguments),
    /// Show the content of a bundle: policies, rules, the paths they read, sizes
    #[command(
        after_help = "Examples:\n  kpc inspect policies.kpb\n  kpc inspect policies.kpb -o json"
    )]
    Inspect(inspect::Arguments),
    /// Check that the plans and projections of a bundle are those of its rules
    #[command(
        after_help = "Loading a bundle proves that it is safe to run. This derives what the compiler stored beside\nthe code again and compares it, for bundles of unknown origin.\n\nExamples:\n  kpc verify policies.kpb"
    )]
    Verify(verify::Arguments),
    /// Try out JMESPath expressions of Kyverno's dialect
    #[command(
        after_help = "Examples:\n  kpc jp query -i pod.yaml 'spec.containers[].image'\n  kpc jp parse \"to_upper(a || 'b')\"\n  kpc jp function regex_match"
    )]
    Jp(jp::Arguments),
    /// Print the webhook configuration that policies need in an API server
    #[command(after_help = webhooks::HELP)]
    Webhooks(webhooks::Arguments),
    /// Generate ValidatingAdmissionPolicies with their bindings from policies
    #[command(after_help = vap::HELP)]
    Vap(vap::Arguments),
    /// Print completions for a shell
    #[command(after_help = completion::HELP)]
    Completion(completion::Arguments),
    /// Print the manual page, or write all of them into a directory
    #[command(after_help = man::HELP)]
    Man(man::Arguments),
    /// Print the version and the commit it was built from
    Version(version::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    stream::run(|streams| match &arguments.command {
        Command::Compile(arguments) => compile::run(arguments, streams),
        Command::Check(arguments) => check::run(arguments, streams),
        Command::Disasm(arguments) => disassemble::run(arguments, streams),
        Command::Verify(arguments) => verify::run(arguments, streams),
        Command::Inspect(arguments) => inspect::run(arguments, streams),
        Command::Jp(arguments) => jp::run(arguments, streams),
        Command::Webhooks(arguments) => webhooks::run(arguments, streams),
        Command::Vap(arguments) => vap::run(arguments, streams),
        Command::Completion(arguments) => completion::run(arguments, Arguments::command(), streams),
        Command::Man(arguments) => man::run(arguments, Arguments::command(), streams),
        Command::Version(arguments) => version::run(arguments, streams),
    })
}
