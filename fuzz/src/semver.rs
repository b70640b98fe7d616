//! Versions: the order is total, a range of one version is its order.

use std::cmp::Ordering;

use kpvm_semantics::semver::{Version, is_in_range};

use crate::target::Target;
use crate::text::{lines, texts};

/// The target.
pub const TARGET: Target = Target {
    name: "semver",
    run,
    seeds,
    words: &[
        "1.2.3", "-alpha", "-1", "+b", ".x", ">=", "<=", "!=", "!", "=", "==", ">", "<", "||", " ",
        "\n",
    ],
    max_bytes: 256,
};

/// Three versions and a range, one per line.
pub fn run(input: &[u8]) {
    let Some([a, b, c, range]) = lines::<4>(input) else {
        return;
    };
    for text in [a, b, c] {
        if let Err(error) = Version::parse(text) {
            assert!(!error.to_string().is_empty());
        }
    }
    if let Ok(version) = Version::parse(a) {
        let found = is_in_range(&version, range);
        assert_eq!(found, is_in_range(&version, range));
        // Another alternative can only add versions.
        if let (Ok(found), Ok(wider)) =
            (found, is_in_range(&version, &format!("{range} || >=0.0.0")))
        {
            assert!(wider || !found, "{range} has {a}, and more has not");
        }
    }
    let (Ok(x), Ok(y)) = (Version::parse(a), Version::parse(b)) else {
        return;
    };
    let order = x.order(&y);
    assert_eq!(order, y.order(&x).reverse());
    assert_eq!(x.order(&x), Ordering::Equal);
    if !b.contains(['+', '-']) {
        for (operator, expected) in [
            ("<", order.is_lt()),
            ("<=", order.is_le()),
            (">", order.is_gt()),
            (">=", order.is_ge()),
            ("==", order.is_eq()),
            ("!=", order.is_ne()),
        ] {
            assert_eq!(
                is_in_range(&x, &format!("{operator}{b}")),
                Ok(expected),
                "{a} {operator} {b}"
            );
        }
    }
    if let Ok(z) = Version::parse(c)
        && order.is_le()
        && y.order(&z).is_le()
    {
        assert!(x.order(&z).is_le(), "the order is not transitive");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "1.2.3\n1.2.4\n2.0.0\n>=1.0.0 <2.0.0",
        "1.0.0-alpha.1\n1.0.0-alpha.beta\n1.0.0\n1.x || 2.3.x",
        "0.0.0\n0.0.1+build.5\n0.1.0\n!1.2.3 !1.2.4",
        "18446744073709551615.0.0\n1.0.0--\n1.0.0-0a\n=4.x.x",
        "v1.2.3\n1.2\n01.2.3\n|| 1.0.0",
    ])
}
