//! Built-in functions of expressions (docs/spec/jmespath.md §5 to §13).
//!
//! Input: the function and its arguments, values of the buffer. Output: a new value of the
//! buffer, or Kyverno's own error text. Bytecode and the run-time evaluator of expressions
//! both call functions only through [`call`].
//!
//! Never happens here: access to a file, a clock, a thread or random numbers (those come
//! from the host), recursion over values, a result beyond the limits, or work without fuel.

mod arithmetic;
mod collection;
mod community;
mod encoding;
mod go_text;
mod image;
mod random;
mod regex;
mod semver;
mod standard;
mod string;
mod time;
mod url;
mod values;
#[cfg(feature = "x509")]
mod x509;

use kpvm_format::function::Function;

use crate::document::{Kind, NodeId};
use kpvm_format::signature::{self, Accepted, ArgumentType, Arguments};
use kpvm_semantics::go_regex;
use kpvm_semantics::layout;

pub(crate) use encoding::{decode_base64, encode_base64};
pub(crate) use go_text::{go_syntax, json_text};
pub use kpvm_semantics::FunctionError;
pub use regex::RegexCache;
pub(crate) use regex::{Compiled as CompiledRegex, compile_cached as compile_regex, scan_steps};
pub use values::Values;
pub(crate) use values::{sorting_steps, spend};

/// Parses an RFC 3339 time as Go does.
///
/// # Errors
/// Go's text if it is invalid.
pub(crate) fn check_rfc3339(text: &str) -> Result<(), String> {
    if kpvm_semantics::time::is_plain_rfc3339(text.as_bytes()) {
        return Ok(());
    }
    layout::parse(layout::RFC3339, text).map(drop)
}

/// Result of a function.
type Outcome = Result<NodeId, FunctionError>;

/// Calls a function: checks the arguments as Kyverno does, charges fuel, computes the
/// result.
///
/// An argument whose key is unknown must already be null. A function that takes an
/// expression reference cannot be called with a plain value; the caller runs its loop, see
/// [`Function::SortByKeys`] and [`crate::jmespath::evaluate()`].
///
/// # Errors
/// Kyverno's error text, or the exceeded limit.
pub(crate) fn call(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    values.charge(1)?;
    check_arguments(function, arguments, values)?;
    charge_arguments(arguments, values)?;
    compute(function, arguments, values)
}

/// docs/spec/jmespath.md §5, steps 2 to 4.
pub(crate) fn check_arguments(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Result<(), FunctionError> {
    let Some(row) = signature::of(function) else {
        return Ok(());
    };
    match row.arguments {
        Arguments::Ignored => Ok(()),
        Arguments::OneOrMore(_) if arguments.is_empty() => {
            Err(FunctionError::failed("Invalid arity."))
        }
        Arguments::OneOrMore(_) => Ok(()),
        Arguments::Exactly(accepted) if accepted.len() != arguments.len() => {
            Err(FunctionError::failed("incorrect number of args"))
        }
        Arguments::AtLeast { required, accepted }
            if !(required..=accepted.len()).contains(&arguments.len()) =>
        {
            Err(FunctionError::failed("incorrect number of args"))
        }
        Arguments::Exactly(accepted) | Arguments::AtLeast { accepted, .. } => accepted
            .iter()
            .zip(arguments)
            .try_for_each(|(accepted, argument)| check_type(values, *argument, accepted)),
    }
}

/// Error for an argument of the wrong type.
fn check_type(
    values: &mut Values<'_>,
    argument: NodeId,
    accepted: Accepted,
) -> Result<(), FunctionError> {
    for accepted in accepted {
        if has_type(values, argument, *accepted)? {
            return Ok(());
        }
    }
    let names: Vec<_> = accepted
        .iter()
        .map(|accepted| format!("\"{}\"", accepted.name()))
        .collect();
    let value = go_text::go_text(values, argument)?;
    Err(FunctionError::failed(format!(
        "Invalid type for: {value}, expected: []jmespath.JpType{{{}}}",
        names.join(", ")
    )))
}

/// docs/spec/jmespath.md §5, step 5.
fn has_type(
    values: &mut Values<'_>,
    argument: NodeId,
    accepted: ArgumentType,
) -> Result<bool, FunctionError> {
    let view = values.view();
    let kind = view.kind(argument);
    Ok(match accepted {
        ArgumentType::Any => true,
        ArgumentType::Reference => view.is_reference(argument),
        ArgumentType::Number => kind == Some(Kind::Float),
        ArgumentType::String => kind == Some(Kind::String),
        ArgumentType::Array => kind == Some(Kind::List),
        ArgumentType::Object => kind == Some(Kind::Map) && !view.is_reference(argument),
        ArgumentType::ArrayNumber => items_are(values, argument, Kind::Float)?,
        ArgumentType::ArrayString => items_are(values, argument, Kind::String)?,
    })
}

fn items_are(
    values: &mut Values<'_>,
    argument: NodeId,
    wanted: Kind,
) -> Result<bool, FunctionError> {
    values.charge(values.view().len(argument) as u64 / 8)?;
    let view = values.view();
    Ok(view.kind(argument) == Some(Kind::List)
        && !view.is_entries(argument)
        && view
            .children(argument)
            .all(|item| view.kind(item) == Some(wanted)))
}

/// Charges for reading the arguments once, as every function does; functions that do more
/// charge more themselves.
fn charge_arguments(arguments: &[NodeId], values: &mut Values<'_>) -> Result<(), FunctionError> {
    let view = values.view();
    let steps = arguments.iter().map(|argument| {
        let bytes = view.text(*argument).len() as u64;
        bytes / Values::BYTES_PER_STEP + view.len(*argument) as u64 / 8
    });
    let steps = steps.sum();
    values.charge(steps)
}

/// Dispatches to the implementations. The arguments have been checked.
fn compute(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    use Function as F;
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(NodeId::MISSING);
    let (a, b, c, d) = (argument(0), argument(1), argument(2), argument(3));
    match function {
        F::Abs => standard::rounded(values, a, f64::abs),
        F::Ceil => standard::rounded(values, a, f64::ceil),
        F::Floor => standard::rounded(values, a, f64::floor),
        F::Avg => standard::avg(values, a),
        F::Contains => standard::contains(values, a, b),
        F::EndsWith => standard::ends_with(values, a, b),
        F::StartsWith => standard::starts_with(values, a, b),
        F::Join => standard::join(values, a, b),
        F::Keys => standard::keys(values, a),
        F::Values => standard::values_of(values, a),
        F::Length => standard::length(values, a),
        F::Map | F::MaxBy | F::MinBy | F::SortBy | F::GroupBy => Err(FunctionError::failed(
            "an expression reference can only be written where it is used",
        )),
        F::Max => standard::extreme(values, a, standard::Extreme::Max),
        F::Min => standard::extreme(values, a, standard::Extreme::Min),
        F::MaxByKeys => standard::extreme_by_keys(values, a, b, standard::Extreme::Max),
        F::MapResults => standard::map_results(values, a, b),
        F::MinByKeys => standard::extreme_by_keys(values, a, b, standard::Extreme::Min),
        F::Merge => standard::merge(values, arguments),
        F::NotNull => standard::not_null(values, arguments),
        F::Reverse => standard::reverse(values, a),
        F::Sort => standard::sort(values, a),
        F::SortByKeys => standard::sort_by_keys(values, a, b),
        F::ToArray => standard::to_array(values, a),
        F::ToNumber => standard::to_number(values, a),
        F::ToString => standard::to_string(values, a),
        F::Type => standard::type_name(values, a),
        F::Add => arithmetic::add(values, a, b),
        F::Subtract => arithmetic::subtract(values, a, b),
        F::Multiply => arithmetic::multiply(values, a, b),
        F::Divide => arithmetic::divide(values, a, b),
        F::Modulo => arithmetic::modulo(values, a, b),
        F::Sum => arithmetic::sum(values, a),
        F::Round => arithmetic::round(values, a, b),
        F::Compare => string::compare(values, a, b),
        F::EqualFold => string::equal_fold(values, a, b),
        F::Replace => string::replace(values, a, b, c, d),
        F::ReplaceAll => string::replace_all(values, a, b, c),
        F::ToUpper => string::to_upper(values, a),
        F::ToLower => string::to_lower(values, a),
        F::Trim => string::trim(values, a, b),
        F::TrimPrefix => string::trim_prefix(values, a, b),
        F::Split => string::split(values, a, b),
        F::Truncate => string::truncate(values, a, b),
        F::ToBoolean => string::to_boolean(values, a),
        F::PathCanonicalize => string::path_canonicalize(values, a),
        F::PatternMatch => string::pattern_match(values, a, b),
        F::RegexMatch => regex::regex_match(values, a, b),
        F::RegexReplaceAll => regex::replace_all(values, a, b, c),
        F::RegexReplaceAllLiteral => regex::replace_all_literal(values, a, b, c),
        F::LabelMatch => collection::label_match(values, a, b),
        F::Lookup => collection::lookup(values, a, b),
        F::Items => collection::items(values, a, b, c),
        F::ObjectFromLists => collection::object_from_lists(values, a, b),
        F::ParseJson => encoding::parse_json(values, a),
        F::ParseYaml => encoding::parse_yaml(values, a),
        F::Base64Decode => encoding::base64_decode(values, a),
        F::Base64Encode => encoding::base64_encode(values, a),
        #[cfg(feature = "legacy-digests")]
        F::Md5 => encoding::md5(values, a),
        #[cfg(feature = "legacy-digests")]
        F::Sha1 => encoding::sha1(values, a),
        #[cfg(not(feature = "legacy-digests"))]
        F::Md5 | F::Sha1 => Err(FunctionError::refused(format!(
            "{} is not available: kpvm was built without the feature `legacy-digests`",
            function.name()
        ))),
        F::Sha256 => encoding::sha256(values, a),
        #[cfg(feature = "x509")]
        F::X509Decode => x509::x509_decode(values, a),
        #[cfg(not(feature = "x509"))]
        F::X509Decode => Err(FunctionError::refused(
            "x509_decode is not available: kpvm was built without the feature `x509`",
        )),
        F::Random => random::random(values, a),
        F::SemverCompare => semver::semver_compare(values, a, b),
        F::ImageNormalize => image::image_normalize(values, a),
        F::IsExternalUrl => url::is_external_url(values, a),
        F::TimeNow => time::time_now(values),
        F::TimeNowUtc => time::time_now_utc(values),
        F::TimeSince => time::time_since(values, a, b, c),
        F::TimeDiff => time::time_diff(values, a, b),
        F::TimeAdd => time::time_add(values, a, b),
        F::TimeUtc => time::time_utc(values, a),
        F::TimeParse => time::time_parse(values, a, b),
        F::TimeToCron => time::time_to_cron(values, a),
        F::TimeBefore => time::time_before(values, a, b),
        F::TimeAfter => time::time_after(values, a, b),
        F::TimeBetween => time::time_between(values, a, b, c),
        F::TimeTruncate => time::time_truncate(values, a, b),
        F::GroupByKeys => community::group_by_keys(values, a, b),
        F::At => community::at(values, a, b),
        F::Concat => community::concat(values, a, b),
        F::FindFirst => community::find(values, arguments, community::End::First),
        F::FindLast => community::find(values, arguments, community::End::Last),
        F::FromItems => community::from_items(values, a),
        F::PadLeft => community::pad(values, arguments, community::End::First),
        F::PadRight => community::pad(values, arguments, community::End::Last),
        F::TrimLeft => community::trim(values, arguments, community::End::First),
        F::TrimRight => community::trim(values, arguments, community::End::Last),
        F::Zip => community::zip(values, arguments),
    }
}
