//! The operators of conditions (docs/spec/conditions.md §3.1).
//!
//! The operator's text in a policy comes in, the operation to carry out comes out.
//! Nothing is compared here.

/// What the operator of a condition does.
///
/// Texts that do the same share an operator: `Equal` and `Equals`, and all the
/// misspellings that [`ConditionOperator::Never`] stands for.
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
    /// One of the eight above in other letter case: Kyverno finds the operator, but
    /// then no comparison that it stands for, so the condition is false.
    Never,
}

impl ConditionOperator {
    /// Every operator in the order of its number.
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

    /// The operator that a policy's text names; `None` for any other text, the empty
    /// one included, which Kyverno reports when it evaluates the condition.
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

    /// The operator's usual text.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spellings().first().copied().unwrap_or("Never")
    }

    /// Its texts in the letter case of the documentation, the usual one first.
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

    /// Whether Kyverno compares the operator's text once more, by letter case, to
    /// choose between greater and less.
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

/// Whether a text is `spelling`, which is ASCII, once Go has put both in lower case.
fn equal_in_lower_case(text: &str, spelling: &str) -> bool {
    // Of the letters outside ASCII that Go lowers into ASCII, only this one ends up
    // as a letter that operators are written with.
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
