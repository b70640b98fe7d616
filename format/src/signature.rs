//! Signatures of all functions of the dialect (docs/spec/jmespath.md §5 to §13).
//!
//! Maps a name to the function's arguments and to what a compiler may assume about it. The
//! additional functions of assertion trees are in a separate table (docs/spec/assert.md
//! §8).

use crate::function::Function as Id;

/// A type required of an argument (docs/spec/jmespath.md §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentType {
    /// A float; Kyverno's integer types do not count.
    Number,
    /// Text.
    String,
    /// A list of anything.
    Array,
    /// A map.
    Object,
    /// A list of floats.
    ArrayNumber,
    /// A list of texts.
    ArrayString,
    /// `&expression`.
    Reference,
    /// Any value.
    Any,
}

impl ArgumentType {
    /// The name in Kyverno's error texts.
    pub fn name(self) -> &'static str {
        match self {
            ArgumentType::Number => "number",
            ArgumentType::String => "string",
            ArgumentType::Array => "array",
            ArgumentType::Object => "object",
            ArgumentType::ArrayNumber => "array[number]",
            ArgumentType::ArrayString => "array[string]",
            ArgumentType::Reference => "expref",
            ArgumentType::Any => "any",
        }
    }
}

/// The accepted types of one argument, in the order of Kyverno's error text.
pub type Accepted = &'static [ArgumentType];

/// The arguments of a function (docs/spec/jmespath.md §5, steps 2 to 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// Exactly these; each is checked before the call.
    Exactly(&'static [Accepted]),
    /// At least the first `required` of these.
    AtLeast {
        /// Number of required arguments.
        required: usize,
        /// Accepted types of each.
        accepted: &'static [Accepted],
    },
    /// One or more of these; not checked.
    OneOrMore(Accepted),
    /// Any number of arguments, all ignored.
    Ignored,
}

/// Whether equal arguments give equal results (docs/spec/jmespath.md §5, last
/// paragraph).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purity {
    /// Always: the call may be computed at compile time.
    Pure,
    /// Reads the clock.
    Clock,
    /// Reads the clock if its third argument is empty, otherwise pure.
    ClockIfThirdEmpty,
    /// Uses random numbers.
    Random,
    /// May resolve a host name over the network.
    Network,
    /// Depends on the configured default image registry.
    Configuration,
    /// The result has the order of a map, which is random in Kyverno.
    KeyOrder,
}

/// Growth of the work with the size of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// Constant.
    Constant,
    /// Linear.
    Linear,
    /// As for sorting.
    Sorting,
    /// One evaluation of an expression per element, and sorting in `sort_by`.
    PerElement,
    /// A pattern or document is compiled or decoded at each call, unless it is a literal.
    Compiling,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Its number.
    pub id: Id,
    /// Its name.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: Arguments,
    /// Whether it may be computed ahead of time.
    pub purity: Purity,
    /// Its cost.
    pub cost: Cost,
    /// What it does, in one line.
    pub description: &'static str,
    /// Surprising behaviour; empty if none.
    pub note: &'static str,
}

/// All functions, sorted by name.
pub fn iter() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter()
}

/// The function of that name.
pub fn lookup(name: &str) -> Option<&'static Function> {
    let index = FUNCTIONS
        .binary_search_by_key(&name, |function| function.name)
        .ok()?;
    FUNCTIONS.get(index)
}

/// The function of that name in an assertion tree.
pub fn lookup_in_assertion(name: &str) -> Option<&'static Function> {
    let addition = || {
        ASSERTION_FUNCTIONS
            .iter()
            .find(|function| function.name == name)
    };
    // If both have a function of that name, Kyverno's takes precedence.
    lookup(name).or_else(addition)
}

/// The function with that number; `None` for a helper that expressions cannot name.
pub fn of(id: Id) -> Option<&'static Function> {
    let is_it = |function: &&Function| function.id == id && id.is_of_assertions();
    FUNCTIONS
        .get(usize::from(id.number()))
        .or_else(|| ASSERTION_FUNCTIONS.iter().find(is_it))
}

/// The function probably meant by an unknown name.
pub fn nearest(name: &str) -> Option<&'static Function> {
    // Longer than any name plus any distance accepted below.
    if name.len() > 40 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if let Some((_, known)) = OTHER_NAMES.iter().find(|(other, _)| *other == lower) {
        return lookup(known);
    }
    let (distance, function) = iter()
        .map(|function| (distance(&lower, function.name), function))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().div_ceil(4)).then_some(function)
}

/// Names from other dialects and from Go, with their equivalents here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("b64dec", "base64_decode"),
    ("b64enc", "base64_encode"),
    ("concat", "join"),
    ("count", "length"),
    ("from_items", "object_from_lists"),
    ("from_json", "parse_json"),
    ("from_yaml", "parse_yaml"),
    ("has_prefix", "starts_with"),
    ("has_suffix", "ends_with"),
    ("len", "length"),
    ("lower", "to_lower"),
    ("match", "regex_match"),
    ("mod", "modulo"),
    ("now", "time_now_utc"),
    ("size", "length"),
    ("trim_left", "trim_prefix"),
    ("upper", "to_upper"),
    ("wildcard", "pattern_match"),
    ("zip", "object_from_lists"),
];

/// Edit distance: insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let at = |cells: &[usize], column: usize| cells.get(column).copied();
            let replaced = at(&row, j).map_or(usize::MAX, |cost| cost + usize::from(a != b));
            let deleted = at(&row, j + 1).map_or(usize::MAX, |cost| cost + 1);
            let inserted = at(&next, j).map_or(usize::MAX, |cost| cost + 1);
            let swapped = match (i.checked_sub(1), j.checked_sub(1)) {
                (Some(i), Some(j)) if left.get(i) == Some(b) && right.get(j) == Some(a) => {
                    at(&before, j).map_or(usize::MAX, |cost| cost + 1)
                }
                _ => usize::MAX,
            };
            next.push(replaced.min(deleted).min(inserted).min(swapped));
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(left.len())
}

const N: Accepted = &[ArgumentType::Number];
const S: Accepted = &[ArgumentType::String];
const A: Accepted = &[ArgumentType::Array];
const O: Accepted = &[ArgumentType::Object];
const X: Accepted = &[ArgumentType::Any];
const REF: Accepted = &[ArgumentType::Reference];
const NUMBERS: Accepted = &[ArgumentType::ArrayNumber];
const STRINGS: Accepted = &[ArgumentType::ArrayString];
const S_N: Accepted = &[ArgumentType::String, ArgumentType::Number];
const A_S: Accepted = &[ArgumentType::Array, ArgumentType::String];
const O_A: Accepted = &[ArgumentType::Object, ArgumentType::Array];
const S_A_O: Accepted = &[
    ArgumentType::String,
    ArgumentType::Array,
    ArgumentType::Object,
];
const NUMBERS_STRINGS: Accepted = &[ArgumentType::ArrayNumber, ArgumentType::ArrayString];
const STRINGS_NUMBERS: Accepted = &[ArgumentType::ArrayString, ArgumentType::ArrayNumber];

/// A row for a function with fixed arguments.
const fn row(
    id: Id,
    arguments: &'static [Accepted],
    purity: Purity,
    cost: Cost,
    description: &'static str,
    note: &'static str,
) -> Function {
    Function {
        id,
        name: id.name(),
        arguments: Arguments::Exactly(arguments),
        purity,
        cost,
        description,
        note,
    }
}

/// A row for a function with uncounted or unchecked arguments.
const fn open(
    id: Id,
    arguments: Arguments,
    purity: Purity,
    description: &'static str,
    note: &'static str,
) -> Function {
    Function {
        id,
        name: id.name(),
        arguments,
        purity,
        cost: Cost::Linear,
        description,
        note,
    }
}

/// A row for a function with optional arguments.
const fn optional(
    id: Id,
    required: usize,
    accepted: &'static [Accepted],
    description: &'static str,
) -> Function {
    let arguments = Arguments::AtLeast { required, accepted };
    open(id, arguments, Purity::Pure, description, "")
}

/// A row for an alias of a function.
const fn renamed(name: &'static str, id: Id, arguments: &'static [Accepted]) -> Function {
    let function = row(
        id,
        arguments,
        Purity::Pure,
        Cost::Linear,
        "another name",
        "",
    );
    Function { name, ..function }
}

use Cost::{Compiling, Constant, Linear, PerElement, Sorting};
use Purity::{Clock, ClockIfThirdEmpty, Configuration, KeyOrder, Network, Pure, Random};

const ARITHMETIC: &str = "text is tried as a quantity first, then as a duration: '5m' is five \
    thousandths; the result of two texts is text";
const ITEMS_LIST: &str = "write `[]` after items() before passing its result here";
const RFC3339: &str = "times are RFC 3339; results have no fractional seconds";

/// The table, sorted by name for the lookup.
#[rustfmt::skip]
static FUNCTIONS: &[Function] = &[
    row(Id::Abs, &[N], Pure, Constant, "absolute value", ""),
    row(Id::Add, &[X, X], Pure, Constant, "sum of two numbers, quantities or durations", ARITHMETIC),
    row(Id::Avg, &[NUMBERS], Pure, Linear, "mean of a list of numbers", "an empty list gives NaN, which no text can show"),
    row(Id::Base64Decode, &[S], Pure, Linear, "decodes standard, padded base64", "the result may be no valid UTF-8"),
    row(Id::Base64Encode, &[S], Pure, Linear, "encodes as standard, padded base64", ""),
    row(Id::Ceil, &[N], Pure, Constant, "smallest whole number not below", ""),
    row(Id::Compare, &[S, S], Pure, Linear, "-1, 0 or 1 as the first text sorts before, with or after the second", "the result is an integer, which equals no number literal"),
    row(Id::Contains, &[A_S, X], Pure, Linear, "whether a text has a part or a list an item", "a map or list as the item sought can crash Kyverno"),
    row(Id::Divide, &[X, X], Pure, Constant, "quotient of two numbers, quantities or durations", "a quantity divided by a number is cut at the decimals of the operands"),
    row(Id::EndsWith, &[S, S], Pure, Linear, "whether a text ends with another", ""),
    row(Id::EqualFold, &[S, S], Pure, Linear, "whether two texts are equal but for case", "simple Unicode folding: the sharp s equals no SS"),
    row(Id::Floor, &[N], Pure, Constant, "largest whole number not above", ""),
    row(Id::ImageNormalize, &[S], Configuration, Linear, "an image name with registry and tag filled in", "a digest drops the tag"),
    row(Id::IsExternalUrl, &[S], Network, Linear, "whether a URL's host is neither loopback nor private", "a host name is looked up; a URL without scheme is an error"),
    row(Id::Items, &[O_A, S, S], Pure, Sorting, "a list of maps, one per entry, with key and value under the given names", "the result is no ordinary list: write `[]` after it before map, sort_by, contains or to_array"),
    row(Id::Join, &[S, STRINGS], Pure, Linear, "the texts of a list with a separator between", "the separator comes first"),
    row(Id::Keys, &[O], KeyOrder, Linear, "the keys of a map", "the order is left to chance in Kyverno"),
    row(Id::LabelMatch, &[O, O], Pure, Linear, "whether every entry of the first map is in the second", ""),
    row(Id::Length, &[S_A_O], Pure, Linear, "number of characters, items or entries", ""),
    row(Id::Lookup, &[O_A, S_N], Pure, Constant, "the value under a key or index, null if there is none", "never fails for a missing key; a list wants a whole number, a map a text"),
    row(Id::Map, &[REF, A], Pure, PerElement, "an expression evaluated on each item, nulls kept", ITEMS_LIST),
    row(Id::Max, &[NUMBERS_STRINGS], Pure, Linear, "largest item of a list of numbers or of texts", "an empty list gives null"),
    row(Id::MaxBy, &[A, REF], Pure, PerElement, "item with the largest key", "with one item the expression is not evaluated"),
    row(Id::Md5, &[S], Pure, Linear, "MD5 in lower-case hex", ""),
    open(Id::Merge, Arguments::OneOrMore(O), Pure, "maps put together, later entries win", "a null argument crashes Kyverno: write `|| `{}``"),
    row(Id::Min, &[NUMBERS_STRINGS], Pure, Linear, "smallest item of a list of numbers or of texts", "an empty list gives null"),
    row(Id::MinBy, &[A, REF], Pure, PerElement, "item with the smallest key", "with one item the expression is not evaluated"),
    row(Id::Modulo, &[X, X], Pure, Constant, "remainder of two numbers, quantities or durations", "operands must be whole; the sign is that of the first"),
    row(Id::Multiply, &[X, X], Pure, Constant, "product of a number and a number, quantity or duration", ARITHMETIC),
    open(Id::NotNull, Arguments::OneOrMore(X), Pure, "the first argument that is not null", "all arguments are evaluated, and an error in any fails the call"),
    row(Id::ObjectFromLists, &[A, A], Pure, Linear, "a map from a list of keys and a list of values", "missing values are null; of equal keys the last wins"),
    row(Id::ParseJson, &[S], Pure, Compiling, "the value of a JSON text", ""),
    row(Id::ParseYaml, &[S], Pure, Compiling, "the value of a YAML text", "YAML 1.1: yes and on are booleans; only the first document is read"),
    row(Id::PathCanonicalize, &[S], Pure, Linear, "a file path without `.`, `..` and double slashes", "wildcards mean nothing here"),
    row(Id::PatternMatch, &[S, S_N], Pure, Linear, "whether a text matches a pattern with `*` and `?`", "the pattern comes first; there is no escape"),
    row(Id::Random, &[S], Random, Compiling, "a random text that matches a regular expression", "an empty pattern is an error"),
    row(Id::RegexMatch, &[S, S_N], Pure, Compiling, "whether a regular expression is found in a text", "not anchored; the pattern comes first"),
    row(Id::RegexReplaceAll, &[S, S_N, S_N], Pure, Compiling, "every match replaced by a template", "`$1x` means a group named 1x: write `${1}x`"),
    row(Id::RegexReplaceAllLiteral, &[S, S_N, S_N], Pure, Compiling, "every match replaced by a text", "`$` in the replacement means itself"),
    row(Id::Replace, &[S, S, S, N], Pure, Linear, "the first so many occurrences of a text replaced", "a negative number replaces all"),
    row(Id::ReplaceAll, &[S, S, S], Pure, Linear, "all occurrences of a text replaced", ""),
    row(Id::Reverse, &[A_S], Pure, Linear, "a list or text in reverse", ITEMS_LIST),
    row(Id::Round, &[N, N], Pure, Constant, "a number with so many decimals", "halves go away from zero; negative decimals are an error"),
    row(Id::SemverCompare, &[S, S], Pure, Compiling, "whether a version is in a range", "a bad version, also one with a leading v, counts as 0.0.0; there is no ^ and no ~"),
    row(Id::Sha1, &[S], Pure, Linear, "SHA-1 in lower-case hex", ""),
    row(Id::Sha256, &[S], Pure, Linear, "SHA-256 in lower-case hex", ""),
    row(Id::Sort, &[STRINGS_NUMBERS], Pure, Sorting, "a list of texts or of numbers, sorted", ""),
    row(Id::SortBy, &[A, REF], Pure, PerElement, "a list sorted by a key of each item", "sorts the list where it stands: later readers of that list see it sorted"),
    row(Id::Split, &[S, S], Pure, Linear, "the parts of a text between separators", "an empty separator gives the characters"),
    row(Id::StartsWith, &[S, S], Pure, Linear, "whether a text begins with another", ""),
    row(Id::Subtract, &[X, X], Pure, Constant, "difference of two numbers, quantities or durations", ARITHMETIC),
    row(Id::Sum, &[A], Pure, Linear, "sum of a list of numbers, quantities or durations", "an empty list is an error; a single item is returned unchecked"),
    row(Id::TimeAdd, &[S, S], Pure, Linear, "a time plus a duration", RFC3339),
    row(Id::TimeAfter, &[S, S], Pure, Linear, "whether the first time is after the second", RFC3339),
    row(Id::TimeBefore, &[S, S], Pure, Linear, "whether the first time is before the second", RFC3339),
    row(Id::TimeBetween, &[S, S, S], Pure, Linear, "whether a time is strictly between two others", RFC3339),
    row(Id::TimeDiff, &[S, S], Pure, Linear, "duration from the first time to the second", RFC3339),
    open(Id::TimeNow, Arguments::Ignored, Clock, "the current time in the local zone", "takes no argument and ignores any"),
    open(Id::TimeNowUtc, Arguments::Ignored, Clock, "the current time in UTC", "takes no argument and ignores any"),
    row(Id::TimeParse, &[S, S], Pure, Linear, "a time in a Go layout as RFC 3339", "a layout that is a whole number means that the time is in Unix seconds"),
    row(Id::TimeSince, &[S, S, S], ClockIfThirdEmpty, Linear, "duration from one time to another, or to now", "the first argument is a Go layout, empty for RFC 3339"),
    row(Id::TimeToCron, &[S], Pure, Linear, "a time as a cron schedule", "seconds are dropped; the offset is the time's own"),
    row(Id::TimeTruncate, &[S, S], Pure, Linear, "a time rounded down to a multiple of a duration", "counted from year 1 in UTC, not from local midnight"),
    row(Id::TimeUtc, &[S], Pure, Linear, "a time in UTC", RFC3339),
    row(Id::ToArray, &[X], Pure, Linear, "the list itself, or a list of the one value", "null gives a list of one null"),
    row(Id::ToBoolean, &[S], Pure, Linear, "the boolean that a text spells", "anything but true and false, in any case, is an error"),
    row(Id::ToLower, &[S], Pure, Linear, "a text in lower case", ""),
    row(Id::ToNumber, &[X], Pure, Linear, "the number that a text spells, null if none", ""),
    row(Id::ToString, &[X], Pure, Linear, "a text itself, any other value as JSON", "`<`, `>` and `&` are escaped"),
    row(Id::ToUpper, &[S], Pure, Linear, "a text in upper case", ""),
    row(Id::Trim, &[S, S], Pure, Linear, "a text without certain characters at both ends", "the second argument is a set of characters"),
    row(Id::TrimPrefix, &[S, S], Pure, Linear, "a text without a certain beginning", "removed once"),
    row(Id::Truncate, &[S, N], Pure, Linear, "the first so many characters of a text", ""),
    row(Id::Type, &[X], Pure, Constant, "name of a value's type", "fails on integers such as elementIndex"),
    row(Id::Values, &[O], KeyOrder, Linear, "the values of a map", "the order is left to chance in Kyverno"),
    row(Id::X509Decode, &[S], Pure, Compiling, "the fields of a PEM certificate or request", "RSA keys only"),
];

/// Functions available only in assertion trees; some are aliases of Kyverno's own.
#[rustfmt::skip]
static ASSERTION_FUNCTIONS: &[Function] = &[
    row(Id::At, &[A, N], Pure, Constant, "the item of a list at an index, which has to be there", ""),
    row(Id::Concat, &[S, S], Pure, Linear, "two texts, one behind the other", ""),
    optional(Id::FindFirst, 2, &[S, S, N, N], "where a part of a text first begins, in bytes"),
    optional(Id::FindLast, 2, &[S, S, N, N], "where a part of a text last begins, in bytes"),
    row(Id::FromItems, &[A], Pure, Linear, "a map from a list of pairs", ""),
    row(Id::GroupBy, &[A, REF], Pure, PerElement, "a map of the lists of items with the same key", ""),
    renamed("json_parse", Id::ParseJson, &[S]),
    renamed("lower", Id::ToLower, &[S]),
    optional(Id::PadLeft, 2, &[S, N, S], "a text filled up in front"),
    optional(Id::PadRight, 2, &[S, N, S], "a text filled up behind"),
    optional(Id::TrimLeft, 1, &[S, S], "a text without certain characters in front"),
    optional(Id::TrimRight, 1, &[S, S], "a text without certain characters behind"),
    renamed("upper", Id::ToUpper, &[S]),
    renamed("wildcard", Id::PatternMatch, &[S, S]),
    open(Id::Zip, Arguments::OneOrMore(A), Pure, "the lists of the first items of all lists, of the second, and so on", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/jmespath.md §13.
    const STANDARD: &str = "abs avg ceil contains ends_with floor join keys length map max max_by \
        merge min min_by not_null reverse sort sort_by starts_with to_array to_number to_string \
        type values";
    const KYVERNO: &str = "compare equal_fold replace replace_all to_upper to_lower trim \
        trim_prefix split regex_replace_all regex_replace_all_literal regex_match pattern_match \
        label_match to_boolean add sum subtract multiply divide modulo round base64_decode \
        base64_encode time_since time_now time_now_utc path_canonicalize truncate semver_compare \
        parse_json parse_yaml lookup items object_from_lists random x509_decode time_to_cron \
        time_add time_parse time_utc time_diff time_before time_after time_between time_truncate \
        image_normalize is_external_url sha256 sha1 md5";

    #[test]
    fn the_table_has_every_function_once_and_sorted() {
        let mut expected: Vec<_> = STANDARD.split(' ').chain(KYVERNO.split(' ')).collect();
        expected.sort_unstable();
        let names: Vec<_> = iter().map(|function| function.name).collect();
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| lookup(name).is_some()));
        assert!(lookup("lower").is_none());
    }

    #[test]
    fn the_table_and_the_numbered_functions_agree() {
        let named = |id: &&Id| !id.is_helper() && !id.is_of_assertions();
        let mut numbered: Vec<_> = Id::ALL.iter().filter(named).collect();
        numbered.sort_by_key(|id| id.name());
        assert!(numbered.into_iter().eq(iter().map(|function| &function.id)));
        let of_assertions = Id::ALL.iter().filter(|id| id.is_of_assertions());
        let additions = of_assertions.filter_map(|id| lookup_in_assertion(id.name()));
        assert_eq!(additions.clone().count(), 11);
        for function in iter().chain(additions) {
            let counts = match function.arguments {
                Arguments::Exactly(accepted) => (accepted.len(), Some(accepted.len())),
                Arguments::AtLeast { required, accepted } => (required, Some(accepted.len())),
                Arguments::OneOrMore(_) => (1, None),
                Arguments::Ignored => (0, None),
            };
            assert_eq!(of(function.id), Some(function));
            assert_eq!(function.id.argument_counts(), counts, "{}", function.name);
        }
    }

    /// docs/spec/assert.md §8.
    #[test]
    fn assertions_have_more_functions() {
        for name in ["at", "zip", "wildcard", "json_parse", "upper", "pad_left"] {
            assert_eq!(lookup(name), None, "{name}");
            assert_eq!(lookup_in_assertion(name).unwrap().name, name);
        }
        let split = lookup_in_assertion("split");
        assert_eq!(split, lookup("split"));
    }

    #[test]
    fn impure_functions_are_marked() {
        // docs/spec/jmespath.md §5, last paragraph.
        let impure: Vec<_> = iter()
            .filter(|function| function.purity != Pure)
            .map(|function| function.name)
            .collect();
        assert_eq!(
            impure,
            [
                "image_normalize",
                "is_external_url",
                "keys",
                "random",
                "time_now",
                "time_now_utc",
                "time_since",
                "values"
            ]
        );
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        for (written, meant) in [
            ("lenght", Some("length")),
            ("Length", Some("length")),
            ("to_uppper", Some("to_upper")),
            ("start_with", Some("starts_with")),
            ("lower", Some("to_lower")),
            ("regexMatch", Some("regex_match")),
            ("xyzzy", None),
            ("", None),
            ("f", None),
        ] {
            assert_eq!(nearest(written).map(|f| f.name), meant, "{written}");
        }
        assert_eq!(nearest(&"x".repeat(100_000)), None);
    }
}
