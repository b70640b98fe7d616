//! Semantic versions, as strictly as Kyverno's comparison reads them
//! (docs/spec/conditions.md §3.7): three numbers, no leading zeros, no `v`.

use std::cmp::Ordering;

/// A version; its build metadata was checked, but does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version<'t> {
    numbers: [u64; 3],
    /// The identifiers behind `-`, separated by points.
    prerelease: Option<&'t str>,
}

impl<'t> Version<'t> {
    /// Reads a text that is a version as a whole.
    pub(super) fn parse(text: &'t str) -> Option<Version<'t>> {
        let (rest, build) = match text.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (text, None),
        };
        let (numbers, prerelease) = match rest.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (rest, None),
        };
        let mut parts = numbers.split('.');
        let numbers = [
            number(parts.next()?)?,
            number(parts.next()?)?,
            number(parts.next()?)?,
        ];
        let is_sound = parts.next().is_none()
            && prerelease.is_none_or(|text| text.split('.').all(is_prerelease_identifier))
            && build.is_none_or(|text| text.split('.').all(is_identifier));
        is_sound.then_some(Version {
            numbers,
            prerelease,
        })
    }

    /// Which version precedes the other.
    pub(super) fn compare(&self, other: &Version<'_>) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        numbers.then_with(|| match (self.prerelease, other.prerelease) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => compare_prereleases(left, right),
        })
    }
}

fn compare_prereleases(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => match (number(left), number(right)) {
                (Some(left), Some(right)) => left.cmp(&right),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => left.cmp(right),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Digits without a leading zero that fit 64 bits.
fn number(text: &str) -> Option<u64> {
    let is_plain = is_digits(text) && (text.len() == 1 || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_allowed)
}

fn is_prerelease_identifier(text: &str) -> bool {
    is_identifier(text) && (!is_digits(text) || number(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order that semver.org gives in its item 11.
    #[test]
    fn versions_precede_each_other_as_the_specification_says() {
        let texts = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0",
        ];
        for (left, a) in texts.iter().enumerate() {
            for (right, b) in texts.iter().enumerate() {
                let (a, b) = (Version::parse(a).unwrap(), Version::parse(b).unwrap());
                assert_eq!(a.compare(&b), left.cmp(&right), "{a:?} {b:?}");
            }
        }
        let (plain, built) = (Version::parse("1.0.0"), Version::parse("1.0.0+b.01-x"));
        assert!(plain.unwrap().compare(&built.unwrap()).is_eq());
    }

    #[test]
    fn other_texts_are_no_versions() {
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "01.2.3",
            "1.2.03",
            "1.2.3-",
            "1.2.3-a..b",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3+a_b",
            "1..3",
            "1.2.x",
            " 1.2.3",
            "1.2.-3",
            "18446744073709551616.0.0",
        ] {
            assert!(Version::parse(text).is_none(), "{text:?}");
        }
    }
}
