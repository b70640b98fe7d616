//! The CEL runtime: semantics of its operators and functions (docs/spec/cel.md §3).
//!
//! Input: values of the evaluation's buffer. Output: a value of the buffer, or an error in
//! cel-go's words. [`crate::machine`] calls functions through [`call`] and, if no value
//! needs to be created, [`predicate`]; neither depends on how an expression is written.
//!
//! Never happens here: recursion over values, work without fuel, access to a file, a clock
//! or random numbers except through the host.

pub(crate) mod access;
mod arithmetic;
mod authorizer;
mod compare;
mod convert;
mod kubernetes;
mod kyverno;
mod list;
mod math;
mod net;
mod opaque;
mod outside;
mod regex;
mod string;
mod text;
mod time;
pub(crate) mod value;
mod value_of;

use kpvm_format::cel::{Function, Library};

use self::compare::{Order, equal, equal_scalars, is_incomparable, order_values};
use self::value::{NO_OVERLOAD, Value, look, no_operator, no_overload};
pub(crate) use self::value_of::push_value;
pub use self::value_of::{CelValue, read_value};
use crate::document::{NodeId, Opaque, View};
use crate::function::{FunctionError, Values};

/// Evaluates a function of two arguments that returns a boolean without creating a value;
/// `None` for every other function, and if the fuel does not suffice.
#[inline]
pub(crate) fn predicate(
    function: Function,
    left: NodeId,
    right: NodeId,
    view: &View<'_>,
    fuel: &mut u64,
) -> Option<Result<bool, FunctionError>> {
    match function {
        Function::Equal | Function::NotEqual => {
            let (mut looked_left, mut looked_right) = (look(view, left), look(view, right));
            while let (Value::Optional(Some(inner_left)), Value::Optional(Some(inner_right))) =
                (&looked_left, &looked_right)
            {
                (looked_left, looked_right) = (look(view, *inner_left), look(view, *inner_right));
            }
            if is_incomparable(&looked_left, &looked_right) {
                return Some(incomparable(function));
            }
            let equal = equal(view, left, right, fuel)?;
            Some(Ok(equal == (function == Function::Equal)))
        }
        Function::In => access::is_in(view, left, right, fuel),
        _ => scalar_predicate(function, &look(view, left), &look(view, right), fuel),
    }
}

/// Evaluates a [`predicate`] of two values of which at most one is a container; excludes
/// `In`.
#[inline]
pub(crate) fn scalar_predicate(
    function: Function,
    left: &Value<'_>,
    right: &Value<'_>,
    fuel: &mut u64,
) -> Option<Result<bool, FunctionError>> {
    Some(Ok(match function {
        Function::Equal | Function::NotEqual if is_incomparable(left, right) => {
            return Some(incomparable(function));
        }
        Function::Equal => equal_scalars(left, right)?,
        Function::NotEqual => !equal_scalars(left, right)?,
        Function::Less | Function::LessOrEqual | Function::Greater | Function::GreaterOrEqual => {
            let ordering = match order_values(left, right) {
                Order::Known(ordering) => ordering,
                // NaN is neither less nor greater than anything.
                Order::Nan => return Some(Ok(false)),
                Order::NoOverload => return Some(Err(no_operator(function, left))),
            };
            match function {
                Function::Less => ordering.is_lt(),
                Function::LessOrEqual => ordering.is_le(),
                Function::Greater => ordering.is_gt(),
                _ => ordering.is_ge(),
            }
        }
        Function::StartsWith | Function::EndsWith | Function::Contains => match (left, right) {
            (Value::String(text), Value::String(part)) => match function {
                Function::StartsWith => text.starts_with(part),
                Function::EndsWith => text.ends_with(part),
                _ => {
                    *fuel = fuel.checked_sub(text.len() as u64 / Values::BYTES_PER_STEP)?;
                    memchr::memmem::find(text, part).is_some()
                }
            },
            _ => return Some(Err(no_overload())),
        },
        _ => return None,
    }))
}

/// `==` or `!=` of values that cannot be compared: cel-go's `!=` is true of all that are not
/// equal.
fn incomparable(function: Function) -> Result<bool, FunctionError> {
    match function {
        Function::Equal => Err(no_overload()),
        _ => Ok(true),
    }
}

/// Calls a function.
///
/// # Errors
/// cel-go's text, or the exceeded limit.
pub(crate) fn call(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    values.charge(1)?;
    let before = values.buffer.text_bytes();
    let result = compute(function, arguments, values)
        .map_err(|error| overload_error(function, arguments, values, error))?;
    // Corresponds to cel-go's cost of creating text.
    let made = values.buffer.text_bytes() - before;
    values.charge(made as u64 / BYTES_MADE_PER_STEP)?;
    Ok(result)
}

/// Bytes of text created per step.
const BYTES_MADE_PER_STEP: u64 = 10;

fn compute(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    match (function, arguments) {
        (Function::Not, [operand]) => match look(&values.view(), *operand) {
            Value::Bool(value) => values.new_bool(!value),
            other => Err(no_operator(function, &other)),
        },
        (Function::Negate, [operand]) => arithmetic::negate(*operand, values),
        (
            Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Modulo,
            [left, right],
        ) => arithmetic::binary(function, *left, *right, values),
        (Function::Index, [operand, index]) => access::index(values, *operand, *index),
        (Function::OptionalIndex, [operand, index]) => {
            access::optional_index(values, *operand, *index)
        }
        (Function::Size, [operand]) => list::size(*operand, values),
        (Function::TypeOf, [operand]) => {
            let name = look(&values.view(), *operand).full_type_name();
            values.new_type(name)
        }
        (
            Function::ToBool
            | Function::ToBytes
            | Function::ToDouble
            | Function::ToDuration
            | Function::ToInt
            | Function::ToString
            | Function::ToTimestamp
            | Function::ToUint,
            [operand, wanted @ ..],
        ) => convert::convert(function, *operand, wanted.first().copied(), values),
        (
            Function::GetFullYear
            | Function::GetMonth
            | Function::GetDayOfYear
            | Function::GetDayOfMonth
            | Function::GetDate
            | Function::GetDayOfWeek
            | Function::GetHours
            | Function::GetMinutes
            | Function::GetSeconds
            | Function::GetMilliseconds,
            arguments,
        ) => time::get(function, arguments, values),
        (Function::OptionalOfNonZero, [operand]) => list::of_non_zero(*operand, values),
        (Function::Join, arguments) => string::join(arguments, values),
        (Function::Format, [template, list]) => text::format(*template, *list, values),
        (Function::IndexOf | Function::LastIndexOf | Function::ReverseString, [receiver, ..])
            if matches!(look(&values.view(), *receiver), Value::String(_)) =>
        {
            string::call(function, arguments, values)
        }
        (
            Function::CharAt
            | Function::LowerAscii
            | Function::UpperAscii
            | Function::Replace
            | Function::Split
            | Function::Substring
            | Function::Trim
            | Function::Quote,
            arguments,
        ) => string::call(function, arguments, values),
        (
            Function::Slice
            | Function::Flatten
            | Function::ListsRange
            | Function::Reverse
            | Function::ReverseString
            | Function::Sort
            | Function::SortByKeys
            | Function::Distinct
            | Function::SetsContains
            | Function::SetsEquivalent
            | Function::SetsIntersects
            | Function::IsSorted
            | Function::Sum
            | Function::Min
            | Function::Max
            | Function::IndexOf
            | Function::LastIndexOf
            | Function::First
            | Function::Last
            | Function::HasValue
            | Function::OptionalValue
            | Function::OptionalUnwrap
            | Function::UnwrapOptional,
            arguments,
        ) => list::call(function, arguments, values),
        (
            Function::MathMin
            | Function::MathMax
            | Function::MathCeil
            | Function::MathFloor
            | Function::MathRound
            | Function::MathTrunc
            | Function::MathAbs
            | Function::MathSign
            | Function::MathSqrt
            | Function::MathIsInf
            | Function::MathIsNaN
            | Function::MathIsFinite
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::BitNot
            | Function::BitShiftLeft
            | Function::BitShiftRight,
            arguments,
        ) => math::call(function, arguments, values),
        (
            Function::Matches
            | Function::Find
            | Function::FindAll
            | Function::RegexReplace
            | Function::RegexExtract
            | Function::RegexExtractAll,
            arguments,
        ) => regex::call(function, arguments, values),
        (Function::Base64Encode | Function::Base64Decode, [operand]) => {
            text::base64(function, *operand, values)
        }
        (
            Function::ToIp
            | Function::CidrIp
            | Function::IsIp
            | Function::IsCanonical
            | Function::Family
            | Function::IsUnspecified
            | Function::IsLoopback
            | Function::IsLinkLocalMulticast
            | Function::IsLinkLocalUnicast
            | Function::IsGlobalUnicast
            | Function::ToCidr
            | Function::IsCidr
            | Function::ContainsIp
            | Function::ContainsCidr
            | Function::PrefixLength
            | Function::Masked,
            arguments,
        ) => net::call(function, arguments, values),
        (
            Function::ToUrl
            | Function::IsUrl
            | Function::GetScheme
            | Function::GetHost
            | Function::GetHostname
            | Function::GetPort
            | Function::GetEscapedPath
            | Function::GetQuery,
            [operand],
        ) => net::url(function, *operand, values),
        (Function::IsGreaterThan | Function::IsLessThan | Function::CompareTo, [receiver, ..])
            if is_opaque(values, *receiver, Opaque::Semver) =>
        {
            kubernetes::semver(function, arguments, values)
        }
        (
            Function::ToQuantity
            | Function::IsQuantity
            | Function::Sign
            | Function::IsGreaterThan
            | Function::IsLessThan
            | Function::CompareTo
            | Function::AsApproximateFloat
            | Function::AsInteger
            | Function::IsInteger
            | Function::QuantityAdd
            | Function::QuantitySub,
            arguments,
        ) => kubernetes::quantity(function, arguments, values),
        (
            Function::ToSemver
            | Function::IsSemver
            | Function::Major
            | Function::Minor
            | Function::Patch,
            arguments,
        ) => kubernetes::semver(function, arguments, values),
        (
            Function::FormatDns1123Label
            | Function::FormatDns1123Subdomain
            | Function::FormatDns1035Label
            | Function::FormatQualifiedName
            | Function::FormatDns1123LabelPrefix
            | Function::FormatDns1123SubdomainPrefix
            | Function::FormatDns1035LabelPrefix
            | Function::FormatLabelValue
            | Function::FormatUri
            | Function::FormatUuid
            | Function::FormatByte
            | Function::FormatDate
            | Function::FormatDatetime
            | Function::FormatNamed
            | Function::Validate,
            arguments,
        ) => kubernetes::format(function, arguments, values),
        (
            Function::AuthorizePath
            | Function::AuthorizeGroup
            | Function::AuthorizeServiceAccount
            | Function::AuthorizeResource
            | Function::AuthorizeSubresource
            | Function::AuthorizeNamespace
            | Function::AuthorizeName
            | Function::AuthorizeFieldSelector
            | Function::AuthorizeLabelSelector
            | Function::AuthorizeCheck
            | Function::IsAllowed
            | Function::DecisionReason
            | Function::IsErrored
            | Function::DecisionError,
            arguments,
        ) => authorizer::call(function, arguments, values),
        (function, arguments)
            if matches!(
                function.library(),
                Library::Kyverno | Library::KyvernoCluster | Library::KyvernoNamespaced
            ) =>
        {
            match outside::call(function, arguments, values) {
                Some(outcome) => outcome,
                None => kyverno::call(function, arguments, values),
            }
        }
        (function, [left, right]) => {
            let view = values.buffer.view(values.texts, values.symbols);
            match predicate(function, *left, *right, &view, values.fuel) {
                Some(result) => values.new_bool(result?),
                None => Err(no_overload()),
            }
        }
        _ => Err(no_overload()),
    }
}

/// Names function and types in the error that no overload fits, where cel-go does.
fn overload_error(
    function: Function,
    arguments: &[NodeId],
    values: &Values<'_>,
    error: FunctionError,
) -> FunctionError {
    if !matches!(&error, FunctionError::Failed(text) if text == NO_OVERLOAD) {
        return error;
    }
    let view = values.view();
    let types: Vec<&str> = arguments
        .iter()
        .map(|id| look(&view, *id).full_type_name())
        .collect();
    let first = types.first().copied().unwrap_or_default();
    let is_plain = match function {
        Function::Matches
        | Function::Contains
        | Function::StartsWith
        | Function::EndsWith
        | Function::In
        | Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessOrEqual
        | Function::Greater
        | Function::GreaterOrEqual
        | Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Modulo
        | Function::Not
        | Function::Negate
        | Function::Size
        | Function::Index
        | Function::JsonUnmarshal
        | Function::OptionalOr => true,
        Function::Find => first != "string",
        Function::FindAll => {
            !matches!(types.as_slice(), ["string", other, ..] if *other != "string")
        }
        Function::ContainsIp => types == ["net.CIDR", "string"],
        Function::IsSorted | Function::Min | Function::Max | Function::Sum => first == "list",
        // These receive any call.
        Function::Sort => matches!(
            first,
            "string" | "google.protobuf.Timestamp" | "google.protobuf.Duration"
        ),
        _ => false,
    };
    let name = function.name();
    FunctionError::Failed(match function {
        _ if is_plain => return error,
        Function::Sort => format!("{NO_OVERLOAD}: {name}"),
        Function::YamlParse => format!("{NO_OVERLOAD}: parse(yaml.Yaml, {first})"),
        Function::Flatten => {
            let (first, rest) = match first {
                "map" => ("map(dyn, dyn)", &types[1..]),
                "optional_type" => ("optional_type(dyn)", &types[1..]),
                first => (first, &types[1..]),
            };
            format!("{NO_OVERLOAD}: {first}.{name}({})", rest.join(", "))
        }
        _ => format!("{NO_OVERLOAD}: {name}({})", types.join(", ")),
    })
}

fn is_opaque(values: &Values<'_>, id: NodeId, wanted: Opaque) -> bool {
    matches!(look(&values.view(), id), Value::Opaque(opaque, _) if opaque == wanted)
}
