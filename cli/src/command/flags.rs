//! Boolean flags as Go programs parse them: `--audit-warn`, but also `--audit-warn=true`.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

/// Words that Go's `strconv.ParseBool` accepts as true and false.
const TRUE: [&str; 6] = ["true", "1", "t", "T", "TRUE", "True"];
const FALSE: [&str; 6] = ["false", "0", "f", "F", "FALSE", "False"];

/// Lets every flag of a command take a value after `=`, as the flags of `kyverno` do.
#[must_use]
pub fn with_values(command: Command) -> Command {
    command.mut_args(|argument| match argument.get_action() {
        ArgAction::SetTrue => with_value(argument),
        _ => argument,
    })
}

fn with_value(argument: Arg) -> Arg {
    argument
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .value_parser(GoBool)
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_name("BOOL")
}

/// Parses a boolean as Go does.
#[derive(Debug, Clone, Copy)]
struct GoBool;

impl clap::builder::TypedValueParser for GoBool {
    type Value = bool;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<bool, clap::Error> {
        match value.to_str() {
            Some(text) if TRUE.contains(&text) => Ok(true),
            Some(text) if FALSE.contains(&text) => Ok(false),
            _ => clap::builder::PossibleValuesParser::new(["true", "false"])
                .parse_ref(command, argument, value)
                .map(|text| text == "true"),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            ["true", "false"].into_iter().map(PossibleValue::new),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Arguments {
        #[arg(short, long)]
        table: bool,
        #[arg(short = 'i', long)]
        stdin: bool,
        #[arg(long)]
        kept: Option<String>,
        paths: Vec<String>,
    }

    fn parse(arguments: &str) -> Result<Arguments, clap::Error> {
        let command = with_values(<Arguments as clap::CommandFactory>::command());
        let words = std::iter::once("x").chain(arguments.split_whitespace());
        let matches = command.try_get_matches_from(words)?;
        <Arguments as clap::FromArgMatches>::from_arg_matches(&matches)
    }

    /// pflag's booleans: no value, or one after `=`; a separate word after them is a path.
    #[test]
    fn flags_take_a_value_behind_an_equals_sign_only() {
        for (arguments, table, stdin, paths) in [
            ("", false, false, 0),
            ("--table", true, false, 0),
            ("--table a b", true, false, 2),
            ("--table=true a", true, false, 1),
            ("--table=false", false, false, 0),
            ("-t=1", true, false, 0),
            ("-t=F", false, false, 0),
            ("-ti a", true, true, 1),
            ("-it=false a", false, true, 1),
            ("--kept x --stdin=T", false, true, 0),
        ] {
            let parsed = parse(arguments).unwrap();
            let found = (parsed.table, parsed.stdin, parsed.paths.len());
            assert_eq!(found, (table, stdin, paths), "{arguments}");
        }
        for wrong in ["--table=yes", "--table=", "--kept"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("--kept x").unwrap().kept.as_deref(), Some("x"));
    }
}
