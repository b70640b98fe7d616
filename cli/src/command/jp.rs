//! `kpc jp`: evaluates, shows and explains JMESPath expressions (docs/spec/cli.md §11).

use std::io;
use std::path::{Path, PathBuf};

use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_format::signature::{self, Accepted, Arguments as Signature, Function};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::jmespath;
use kpvm_syntax::manifest;
use kpvm_syntax::yaml::{self, DuplicateKeys};
use serde_json::Value;

use crate::diagnostics::{self, show_error, show_note};
use crate::expression;
use crate::go_json;
use crate::input::read_inputs;
use crate::problem::show_unreadable;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::text::{clean, clean_lines};

/// Arguments of `kpc jp`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands of `kpc jp`.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Evaluate expressions over YAML or JSON
    Query(QueryArguments),
    /// Show how expressions are parsed, and their code
    Parse(ParseArguments),
    /// Describe functions
    Function(FunctionArguments),
}

/// Arguments of `kpc jp query`.
#[derive(Debug, clap::Args)]
pub struct QueryArguments {
    /// Expressions
    #[arg(value_name = "EXPRESSION")]
    pub expressions: Vec<String>,
    /// A file that contains an expression
    #[arg(short, long, value_name = "FILE")]
    pub query: Vec<PathBuf>,
    /// YAML or JSON to evaluate over, its first document; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Print results on one line
    #[arg(short, long)]
    pub compact: bool,
    /// Print texts without quotes
    #[arg(short, long)]
    pub unquoted: bool,
}

/// Arguments of `kpc jp parse`.
#[derive(Debug, clap::Args)]
pub struct ParseArguments {
    /// Expressions
    #[arg(value_name = "EXPRESSION", required_unless_present = "file")]
    pub expressions: Vec<String>,
    /// A file that contains an expression; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
}

/// Arguments of `kpc jp function`.
#[derive(Debug, clap::Args)]
pub struct FunctionArguments {
    /// Only these functions
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Runs a subcommand of `kpc jp`.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    match &arguments.command {
        Command::Query(arguments) => query(arguments, streams),
        Command::Parse(arguments) => parse(arguments, streams),
        Command::Function(arguments) => function(arguments, streams),
    }
}

/// Expressions, each its own source.
#[derive(Default)]
struct Expressions {
    sources: Sources,
    numbers: Vec<SourceId>,
}

impl Expressions {
    fn add(&mut self, name: &str, text: &str) {
        self.numbers.push(self.sources.add(name, text));
    }

    /// Adds the content of the files; reports those that cannot be read.
    fn add_files(&mut self, paths: &[PathBuf], streams: &mut Streams<'_>) -> io::Result<bool> {
        let inputs = read_inputs(paths, &mut io::stdin());
        for file in &inputs.files {
            self.add(&file.name, file.text.trim());
        }
        for unreadable in &inputs.unreadable {
            show_unreadable(unreadable, streams)?;
        }
        Ok(inputs.unreadable.is_empty())
    }

    /// Shows diagnostics about the expressions.
    fn show(&self, found: &[Diagnostic], streams: &mut Streams<'_>) -> io::Result<()> {
        found
            .iter()
            .try_for_each(|one| diagnostics::show(one, &self.sources, streams.err))
    }
}

fn query(arguments: &QueryArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let mut expressions = Expressions::default();
    for text in &arguments.expressions {
        expressions.add("<expression>", text);
    }
    let stdin = PathBuf::from("-");
    let mut files = arguments.query.clone();
    let no_query = arguments.expressions.is_empty() && files.is_empty();
    if no_query && arguments.input.is_none() {
        show_error(
            "at least one query or input object is required",
            streams.err,
        )?;
        return Ok(EXIT_BAD_INPUT);
    }
    if no_query {
        files.push(stdin.clone());
    }
    let input = arguments.input.as_ref().unwrap_or(&stdin);
    if files.contains(&stdin) && *input == stdin {
        let message = "standard input can be either a query or the input, not both";
        show_error(message, streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    if no_query || arguments.input.is_none() {
        let what = if no_query {
            "an expression"
        } else {
            "the input"
        };
        show_note(&format!("reading {what} from standard input"), streams.err)?;
        streams.err.flush()?;
    }
    if !expressions.add_files(&files, streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let Some(input) = read_input(input, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    let mut code = EXIT_OK;
    for &source in &expressions.numbers {
        if !answer(&expressions, source, &input, arguments, streams)? {
            code = EXIT_FAILED;
        }
    }
    Ok(code)
}

/// First document of a file; reports why there is none.
fn read_input(path: &Path, streams: &mut Streams<'_>) -> io::Result<Option<Value>> {
    let inputs = read_inputs(&[path.to_owned()], &mut io::stdin());
    for unreadable in &inputs.unreadable {
        show_unreadable(unreadable, streams)?;
    }
    let Some(file) = inputs.files.first() else {
        return Ok(None);
    };
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    match manifest::read_all(&file.text, options).into_iter().next() {
        None => Ok(Some(Value::Null)),
        Some(Ok(tree)) => Ok(Some(expression::to_json(&tree))),
        Some(Err(error)) => {
            let mut sources = Sources::new();
            let source = sources.add(file.name.as_str(), file.text.as_str());
            let location = Location {
                source,
                span: error.span,
            };
            let diagnostic = Diagnostic::error("yaml", error.kind.to_string(), location);
            diagnostics::show(&diagnostic, &sources, streams.err)?;
            Ok(None)
        }
    }
}

/// Prints the value of one expression; returns whether there is one.
fn answer(
    expressions: &Expressions,
    source: SourceId,
    input: &Value,
    arguments: &QueryArguments,
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    let text = &expressions.sources.file(source).text;
    writeln!(streams.out, "# {}", clean_lines(text, "# "))?;
    let parsed = match jmespath::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let problem = expression::syntax_problem(&error, text, source);
            expressions.show(&[problem], streams)?;
            return Ok(false);
        }
    };
    let result = expression::evaluate(text, input);
    let severity = match result {
        Ok(_) => Severity::Warning,
        Err(_) => Severity::Error,
    };
    let problems = expression::call_problems(&parsed, source, severity);
    expressions.show(&problems, streams)?;
    match result {
        Ok(Value::String(text)) if arguments.unquoted => writeln!(streams.out, "{text}")?,
        Ok(value) => {
            go_json::write(&value, arguments.compact, streams.out)?;
            writeln!(streams.out)?;
        }
        Err(reason) => {
            show_error(&clean(&reason), streams.err)?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn parse(arguments: &ParseArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let mut expressions = Expressions::default();
    for text in &arguments.expressions {
        expressions.add("<expression>", text);
    }
    if !expressions.add_files(&arguments.file, streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let mut code = EXIT_OK;
    for &source in &expressions.numbers {
        if !describe(&expressions, source, streams)? {
            code = EXIT_FAILED;
        }
    }
    Ok(code)
}

/// Prints tree and code of one expression; returns whether it is valid.
fn describe(
    expressions: &Expressions,
    source: SourceId,
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    let text = &expressions.sources.file(source).text;
    writeln!(streams.out, "# {}", clean_lines(text, "# "))?;
    let parsed = match jmespath::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let problem = expression::syntax_problem(&error, text, source);
            expressions.show(&[problem], streams)?;
            return Ok(false);
        }
    };
    let problems = expression::call_problems(&parsed, source, Severity::Warning);
    expressions.show(&problems, streams)?;
    let mut tree = String::new();
    expression::write_tree(&parsed, 0, &mut tree);
    writeln!(streams.out, "{}\n", clean_lines(&tree, ""))?;
    match expression::disassemble(text) {
        Ok(code) => writeln!(streams.out, "{}\n", clean_lines(&code, ""))?,
        Err(reason) => {
            show_error(&clean(&reason), streams.err)?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn function(arguments: &FunctionArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    if arguments.names.is_empty() {
        for function in signature::iter() {
            describe_function(function, streams)?;
        }
        return Ok(EXIT_OK);
    }
    let mut code = EXIT_OK;
    for name in &arguments.names {
        match signature::lookup(name) {
            Some(function) => describe_function(function, streams)?,
            None => {
                let near = signature::nearest(name);
                let hint = near.map(|near| format!("; did you mean `{}`?", near.name));
                let hint = hint.unwrap_or_default();
                show_error(
                    &format!("there is no function `{}`{hint}", clean(name)),
                    streams.err,
                )?;
                code = EXIT_BAD_INPUT;
            }
        }
    }
    Ok(code)
}

fn describe_function(function: &Function, streams: &mut Streams<'_>) -> io::Result<()> {
    writeln!(streams.out, "Name: {}", function.name)?;
    writeln!(streams.out, "  Signature: {}", signature(function))?;
    writeln!(streams.out, "  Result:    {}", function.description)?;
    if !function.note.is_empty() {
        writeln!(streams.out, "  Note:      {}", function.note)?;
    }
    writeln!(streams.out)
}

/// `join(string, array[string])`
fn signature(function: &Function) -> String {
    let one = |accepted: &Accepted| {
        let names: Vec<_> = accepted.iter().map(|accepted| accepted.name()).collect();
        names.join("|")
    };
    let arguments = match function.arguments {
        Signature::Exactly(accepted) | Signature::AtLeast { accepted, .. } => {
            accepted.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Signature::OneOrMore(accepted) => format!("{}...", one(&accepted)),
        Signature::Ignored => String::new(),
    };
    format!("{}({arguments})", function.name)
}
