//! Operators of conditions (docs/spec/conditions.md §3.1).
//!
//! Maps the operator's text in a policy to an operation. Nothing is compared here.

/// Operator of a condition.
///
/// Equivalent texts share an operator: `Equal` and `Equals`, and all the misspellings that
/// [`ConditionOperator::Never`] represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ConditionOperator {
    /// `Equals`, `Equal`
    Equals,
    /// `NotEquals`, `NotEqual`
    NotEquals,
    /// `In`
    In,
    /// `AnyIn`
    AnyIn,
    /// `AllIn`
    AllIn,
    /// `NotIn`
    NotIn,
    /// `AnyNotIn`
    AnyNotIn,
    /// `AllNotIn`
    AllNotIn,
    /// `GreaterThan`
    GreaterThan,
    /// `GreaterThanOrEquals`
    GreaterThanOrEquals,
    /// `LessThan`
    LessThan,
    /// `LessThanOrEquals`
    LessThanOrEquals,
    /// `DurationGreaterThan`
    DurationGreaterThan,
    /// `DurationGreaterThanOrEquals`
    DurationGreaterThanOrEquals,
    /// `DurationLessThan`
    DurationLessThan,
    /// `DurationLessThanOrEquals`
    DurationLessThanOrEquals,
    /// One of the eight above in another letter case: Kyverno accepts the operator but
    /// finds no matching comparison, so the condition is false.
    Never,
}

impl ConditionOperator {
    /// All operators in the order of their numbers.
    pub const ALL: [ConditionOperator; 17] = [
        ConditionOperator::Equals,
        ConditionOperator::NotEquals,
        ConditionOperator::In,
        ConditionOperator::AnyIn,
        ConditionOperator::AllIn,
        ConditionOperator::NotIn,
        ConditionOperator::AnyNotIn,
        ConditionOperator::AllNotIn,
        ConditionOperator::GreaterThan,
        ConditionOperator::GreaterThanOrEquals,
        ConditionOperator::LessThan,
        ConditionOperator::LessThanOrEquals,
        ConditionOperator::DurationGreaterThan,
        ConditionOperator::DurationGreaterThanOrEquals,
        ConditionOperator::DurationLessThan,
        ConditionOperator::DurationLessThanOrEquals,
        ConditionOperator::Never,
    ];

    /// The operator with a text; `None` for any other text, including the empty one, which
    /// Kyverno reports when it evaluates the condition.
    #[must_use]
    pub fn parse(text: &str) -> Option<ConditionOperator> {
        let mut texts = Self::ALL.into_iter().flat_map(|operator| {
            operator
                .spellings()
                .iter()
                .map(move |&text| (operator, text))
        });
        let (operator, spelling) =
            texts.find(|(_, spelling)| equal_in_lower_case(text, spelling))?;
        Some(if operator.compares_order() && text != spelling {
            ConditionOperator::Never
        } else {
            operator
        })
    }

    /// The operator with this number.
    #[must_use]
    pub fn decode(number: u8) -> Option<ConditionOperator> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The operator's canonical text.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spellings().first().copied().unwrap_or("Never")
    }

    /// Its texts in the letter case of the documentation, the canonical one first.
    fn spellings(self) -> &'static [&'static str] {
        match self {
            ConditionOperator::Equals => &["Equals", "Equal"],
            ConditionOperator::NotEquals => &["NotEquals", "NotEqual"],
            ConditionOperator::In => &["In"],
            ConditionOperator::AnyIn => &["AnyIn"],
            ConditionOperator::AllIn => &["AllIn"],
            ConditionOperator::NotIn => &["NotIn"],
            ConditionOperator::AnyNotIn => &["AnyNotIn"],
            ConditionOperator::AllNotIn => &["AllNotIn"],
            ConditionOperator::GreaterThan => &["GreaterThan"],
            ConditionOperator::GreaterThanOrEquals => &["GreaterThanOrEquals"],
            ConditionOperator::LessThan => &["LessThan"],
            ConditionOperator::LessThanOrEquals => &["LessThanOrEquals"],
            ConditionOperator::DurationGreaterThan => &["DurationGreaterThan"],
            ConditionOperator::DurationGreaterThanOrEquals => &["DurationGreaterThanOrEquals"],
            ConditionOperator::DurationLessThan => &["DurationLessThan"],
            ConditionOperator::DurationLessThanOrEquals => &["DurationLessThanOrEquals"],
            ConditionOperator::Never => &[],
        }
    }

    /// Whether Kyverno compares the operator's text once more, case-sensitively, to choose
    /// between greater and less.
    fn compares_order(self) -> bool {
        match self {
            ConditionOperator::Equals
            | ConditionOperator::NotEquals
            | ConditionOperator::In
            | ConditionOperator::AnyIn
            | ConditionOperator::AllIn
            | ConditionOperator::NotIn
            | ConditionOperator::AnyNotIn
            | ConditionOperator::AllNotIn => false,
            ConditionOperator::GreaterThan
            | ConditionOperator::GreaterThanOrEquals
            | ConditionOperator::LessThan
            | ConditionOperator::LessThanOrEquals
            | ConditionOperator::DurationGreaterThan
            | ConditionOperator::DurationGreaterThanOrEquals
            | ConditionOperator::DurationLessThan
            | ConditionOperator::DurationLessThanOrEquals
            | ConditionOperator::Never => true,
        }
    }
}

/// Whether a text equals `spelling`, which is ASCII, after Go's lower-casing of both.
fn equal_in_lower_case(text: &str, spelling: &str) -> bool {
    // The only letter outside ASCII that Go lower-cases to a letter used in operators.
    let lower = |letter: char| match letter {
        'İ' => 'i',
        other => other.to_ascii_lowercase(),
    };
    text.chars()
        .map(lower)
        .eq(spelling.chars().map(|letter| letter.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_decodes_to_the_operator_that_has_it() {
        for operator in ConditionOperator::ALL {
            assert_eq!(ConditionOperator::decode(operator as u8), Some(operator));
        }
        assert_eq!(ConditionOperator::decode(17), None);
        assert_eq!(ConditionOperator::decode(255), None);
    }

    #[test]
    fn names_are_parsed_as_section_3_1_says() {
        for operator in ConditionOperator::ALL {
            for text in operator.spellings() {
                assert_eq!(ConditionOperator::parse(text), Some(operator), "{text}");
            }
        }
        let rows = [
            ("Equal", Some(ConditionOperator::Equals)),
            ("NotEqual", Some(ConditionOperator::NotEquals)),
            ("EQUALS", Some(ConditionOperator::Equals)),
            ("equals", Some(ConditionOperator::Equals)),
            ("anyin", Some(ConditionOperator::AnyIn)),
            ("allNOTin", Some(ConditionOperator::AllNotIn)),
            ("greaterthan", Some(ConditionOperator::Never)),
            ("LESSTHANOREQUALS", Some(ConditionOperator::Never)),
            ("durationLessThan", Some(ConditionOperator::Never)),
            ("GreaterThanOrEqual", None),
            ("Foo", None),
            ("", None),
            (" In", None),
            ("Never", None),
        ];
        for (text, expected) in rows {
            assert_eq!(ConditionOperator::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_name_is_the_text_that_is_parsed() {
        for operator in ConditionOperator::ALL {
            let expected = (operator != ConditionOperator::Never).then_some(operator);
            assert_eq!(ConditionOperator::parse(operator.name()), expected);
        }
    }
}
