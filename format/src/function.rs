//! All functions that a compiled expression can call, with their numbers: the built-in
//! functions of Kyverno's JMESPath (docs/spec/jmespath.md §13), a few helpers that only the
//! compiler calls, and the additional functions of assertion trees (docs/spec/assert.md
//! §8).
//!
//! The runtime implements the functions; the front end knows the types of their arguments.

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $min:literal, $max:expr;)*) => {
        /// A function. Its number is part of the bundle format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            /// All functions in the order of their numbers.
            pub const ALL: &'static [Function] = &[$(Function::$variant,)*];

            /// Name in expressions; for a helper, a name that no expression can contain.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }

            /// Minimum and maximum number of arguments; `None` if unlimited
            /// (docs/spec/jmespath.md §5, steps 2 and 3).
            pub const fn argument_counts(self) -> (usize, Option<usize>) {
                match self {
                    $(Function::$variant => ($min, $max),)*
                }
            }
        }
    };
}

functions! {
    /// `abs`: absolute value.
    Abs = "abs", 1, Some(1);
    /// `add`: sum of two numbers, quantities or durations.
    Add = "add", 2, Some(2);
    /// `avg`: mean of a list of numbers.
    Avg = "avg", 1, Some(1);
    /// `base64_decode`: decodes standard, padded base64.
    Base64Decode = "base64_decode", 1, Some(1);
    /// `base64_encode`: encodes as standard, padded base64.
    Base64Encode = "base64_encode", 1, Some(1);
    /// `ceil`: smallest whole number not below.
    Ceil = "ceil", 1, Some(1);
    /// `compare`: -1, 0 or 1 as the first text sorts before, with or after the second.
    Compare = "compare", 2, Some(2);
    /// `contains`: whether a text has a part or a list an item.
    Contains = "contains", 2, Some(2);
    /// `divide`: quotient of two numbers, quantities or durations.
    Divide = "divide", 2, Some(2);
    /// `ends_with`: whether a text ends with another.
    EndsWith = "ends_with", 2, Some(2);
    /// `equal_fold`: whether two texts are equal but for case.
    EqualFold = "equal_fold", 2, Some(2);
    /// `floor`: largest whole number not above.
    Floor = "floor", 1, Some(1);
    /// `image_normalize`: an image name with registry and tag filled in.
    ImageNormalize = "image_normalize", 1, Some(1);
    /// `is_external_url`: whether a URL's host is neither loopback nor private.
    IsExternalUrl = "is_external_url", 1, Some(1);
    /// `items`: a list of maps, one per entry, with key and value under the given names.
    Items = "items", 3, Some(3);
    /// `join`: the texts of a list with a separator between.
    Join = "join", 2, Some(2);
    /// `keys`: the keys of a map.
    Keys = "keys", 1, Some(1);
    /// `label_match`: whether every entry of the first map is in the second.
    LabelMatch = "label_match", 2, Some(2);
    /// `length`: number of characters, items or entries.
    Length = "length", 1, Some(1);
    /// `lookup`: the value under a key or index, null if there is none.
    Lookup = "lookup", 2, Some(2);
    /// `map`: an expression evaluated on each item, nulls kept.
    Map = "map", 2, Some(2);
    /// `max`: largest item of a list of numbers or of texts.
    Max = "max", 1, Some(1);
    /// `max_by`: item with the largest key.
    MaxBy = "max_by", 2, Some(2);
    /// `md5`: MD5 in lower-case hex.
    Md5 = "md5", 1, Some(1);
    /// `merge`: merges maps; later entries win.
    Merge = "merge", 1, None;
    /// `min`: smallest item of a list of numbers or of texts.
    Min = "min", 1, Some(1);
    /// `min_by`: item with the smallest key.
    MinBy = "min_by", 2, Some(2);
    /// `modulo`: remainder of two numbers, quantities or durations.
    Modulo = "modulo", 2, Some(2);
    /// `multiply`: product of a number and a number, quantity or duration.
    Multiply = "multiply", 2, Some(2);
    /// `not_null`: the first argument that is not null.
    NotNull = "not_null", 1, None;
    /// `object_from_lists`: a map from a list of keys and a list of values.
    ObjectFromLists = "object_from_lists", 2, Some(2);
    /// `parse_json`: the value of a JSON text.
    ParseJson = "parse_json", 1, Some(1);
    /// `parse_yaml`: the value of a YAML text.
    ParseYaml = "parse_yaml", 1, Some(1);
    /// `path_canonicalize`: a file path without `.`, `..` and double slashes.
    PathCanonicalize = "path_canonicalize", 1, Some(1);
    /// `pattern_match`: whether a text matches a pattern with `*` and `?`.
    PatternMatch = "pattern_match", 2, Some(2);
    /// `random`: a random text that matches a regular expression.
    Random = "random", 1, Some(1);
    /// `regex_match`: whether a regular expression is found in a text.
    RegexMatch = "regex_match", 2, Some(2);
    /// `regex_replace_all`: every match replaced by a template.
    RegexReplaceAll = "regex_replace_all", 3, Some(3);
    /// `regex_replace_all_literal`: every match replaced by a text.
    RegexReplaceAllLiteral = "regex_replace_all_literal", 3, Some(3);
    /// `replace`: replaces the first occurrences of a text, up to a number.
    Replace = "replace", 4, Some(4);
    /// `replace_all`: all occurrences of a text replaced.
    ReplaceAll = "replace_all", 3, Some(3);
    /// `reverse`: a list or text in reverse.
    Reverse = "reverse", 1, Some(1);
    /// `round`: rounds a number to a number of decimals.
    Round = "round", 2, Some(2);
    /// `semver_compare`: whether a version is in a range.
    SemverCompare = "semver_compare", 2, Some(2);
    /// `sha1`: SHA-1 in lower-case hex.
    Sha1 = "sha1", 1, Some(1);
    /// `sha256`: SHA-256 in lower-case hex.
    Sha256 = "sha256", 1, Some(1);
    /// `sort`: a list of texts or of numbers, sorted.
    Sort = "sort", 1, Some(1);
    /// `sort_by`: a list sorted by a key of each item.
    SortBy = "sort_by", 2, Some(2);
    /// `split`: the parts of a text between separators.
    Split = "split", 2, Some(2);
    /// `starts_with`: whether a text begins with another.
    StartsWith = "starts_with", 2, Some(2);
    /// `subtract`: difference of two numbers, quantities or durations.
    Subtract = "subtract", 2, Some(2);
    /// `sum`: sum of a list of numbers, quantities or durations.
    Sum = "sum", 1, Some(1);
    /// `time_add`: a time plus a duration.
    TimeAdd = "time_add", 2, Some(2);
    /// `time_after`: whether the first time is after the second.
    TimeAfter = "time_after", 2, Some(2);
    /// `time_before`: whether the first time is before the second.
    TimeBefore = "time_before", 2, Some(2);
    /// `time_between`: whether a time is strictly between two others.
    TimeBetween = "time_between", 3, Some(3);
    /// `time_diff`: duration from the first time to the second.
    TimeDiff = "time_diff", 2, Some(2);
    /// `time_now`: the current time in the local zone.
    TimeNow = "time_now", 0, None;
    /// `time_now_utc`: the current time in UTC.
    TimeNowUtc = "time_now_utc", 0, None;
    /// `time_parse`: a time in a Go layout as RFC 3339.
    TimeParse = "time_parse", 2, Some(2);
    /// `time_since`: duration from one time to another, or to now.
    TimeSince = "time_since", 3, Some(3);
    /// `time_to_cron`: a time as a cron schedule.
    TimeToCron = "time_to_cron", 1, Some(1);
    /// `time_truncate`: a time rounded down to a multiple of a duration.
    TimeTruncate = "time_truncate", 2, Some(2);
    /// `time_utc`: a time in UTC.
    TimeUtc = "time_utc", 1, Some(1);
    /// `to_array`: the list itself, or a list of the one value.
    ToArray = "to_array", 1, Some(1);
    /// `to_boolean`: the boolean that a text spells.
    ToBoolean = "to_boolean", 1, Some(1);
    /// `to_lower`: a text in lower case.
    ToLower = "to_lower", 1, Some(1);
    /// `to_number`: the number that a text spells, null if none.
    ToNumber = "to_number", 1, Some(1);
    /// `to_string`: a text itself, any other value as JSON.
    ToString = "to_string", 1, Some(1);
    /// `to_upper`: a text in upper case.
    ToUpper = "to_upper", 1, Some(1);
    /// `trim`: a text without certain characters at both ends.
    Trim = "trim", 2, Some(2);
    /// `trim_prefix`: a text without a prefix.
    TrimPrefix = "trim_prefix", 2, Some(2);
    /// `truncate`: the first characters of a text, up to a number.
    Truncate = "truncate", 2, Some(2);
    /// `type`: name of a value's type.
    Type = "type", 1, Some(1);
    /// `values`: the values of a map.
    Values = "values", 1, Some(1);
    /// `x509_decode`: the fields of a PEM certificate or request.
    X509Decode = "x509_decode", 1, Some(1);
    /// `sort_by` with precomputed keys: the list and the list of its items' keys, null for
    /// a key that could not be computed.
    SortByKeys = "sort_by#keys", 2, Some(2);
    /// `max_by` with precomputed keys.
    MaxByKeys = "max_by#keys", 2, Some(2);
    /// `min_by` with precomputed keys.
    MinByKeys = "min_by#keys", 2, Some(2);
    /// `map` with precomputed results: the list and the results.
    MapResults = "map#results", 2, Some(2);
    /// `group_by` with precomputed keys.
    GroupByKeys = "group_by#keys", 2, Some(2);
    /// `at`: the item of a list at an index, which must exist.
    At = "at", 2, Some(2);
    /// `concat`: concatenates two texts.
    Concat = "concat", 2, Some(2);
    /// `find_first`: where a part of a text first begins, in bytes.
    FindFirst = "find_first", 2, Some(4);
    /// `find_last`: where a part of a text last begins, in bytes.
    FindLast = "find_last", 2, Some(4);
    /// `from_items`: a map from a list of pairs.
    FromItems = "from_items", 1, Some(1);
    /// `group_by`: a map of the lists of items with the same key.
    GroupBy = "group_by", 2, Some(2);
    /// `pad_left`: pads a text at the start.
    PadLeft = "pad_left", 2, Some(3);
    /// `pad_right`: pads a text at the end.
    PadRight = "pad_right", 2, Some(3);
    /// `trim_left`: removes characters at the start of a text.
    TrimLeft = "trim_left", 1, Some(2);
    /// `trim_right`: removes characters at the end of a text.
    TrimRight = "trim_right", 1, Some(2);
    /// `zip`: lists of the first items of all lists, of the second items, and so on.
    Zip = "zip", 1, None;
}

impl Function {
    /// The function with this number.
    pub fn decode(number: u8) -> Option<Function> {
        Function::ALL.get(usize::from(number)).copied()
    }

    /// The number in bundles.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether only the compiler calls it, so expressions cannot name it.
    pub const fn is_helper(self) -> bool {
        matches!(
            self,
            Function::SortByKeys
                | Function::MaxByKeys
                | Function::MinByKeys
                | Function::MapResults
                | Function::GroupByKeys
        )
    }

    /// Whether only expressions of assertion trees can name it.
    pub const fn is_of_assertions(self) -> bool {
        self.number() >= Function::At.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_functions_belong_together() {
        for (number, function) in (0u8..).zip(Function::ALL) {
            assert_eq!(function.number(), number);
            assert_eq!(Function::decode(number), Some(*function));
            let (min, max) = function.argument_counts();
            assert!(max.is_none_or(|max| max >= min), "{function:?}");
            // docs/spec/jmespath.md §2: no identifier contains this character.
            assert_eq!(function.name().contains('#'), function.is_helper());
        }
        assert_eq!(Function::decode(Function::ALL.len() as u8), None);
        assert_eq!(Function::decode(u8::MAX), None);
    }
}
