//! Quantities: the order is total and that of exact numbers, and printing is faithful.

use std::cmp::Ordering;

use kpvm_semantics::Quantity;
use kpvm_semantics::exact_quantity;

use crate::target::Target;
use crate::text::{lines, texts};

/// The target.
pub const TARGET: Target = Target {
    name: "quantity",
    run,
    seeds,
    words: &[
        "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3",
        "E-9", ".", "-", "+", "\n",
    ],
    max_bytes: 256,
};

/// Three quantities, one per line.
pub fn run(input: &[u8]) {
    let Some(texts) = lines::<3>(input) else {
        return;
    };
    let parsed = texts.map(Quantity::parse);
    for (text, quantity) in texts.iter().zip(&parsed) {
        if let Some(quantity) = quantity {
            check_one(text, quantity);
        } else {
            assert!(matches!(exact_quantity::Quantity::parse(text), Ok(None)));
        }
    }
    let [Some(a), Some(b), Some(c)] = &parsed else {
        return;
    };
    assert_eq!(a.cmp(b), b.cmp(a).reverse());
    assert_eq!(a == b, a.cmp(b) == Ordering::Equal);
    if a <= b && b <= c {
        assert!(a <= c, "the order is not transitive");
    }
    compare_exact(&texts, a, b);
}

fn check_one(text: &str, quantity: &Quantity) {
    if let Some(nano) = quantity.as_nano() {
        assert_eq!(*quantity, Quantity::from_nano(nano));
    }
    let Ok(Some(exact)) = exact_quantity::Quantity::parse(text) else {
        return;
    };
    // From 1e21 on there is no suffix, and Kubernetes drops it (docs/spec/jmespath.md §8.3).
    let has_suffix = |nano: i128| nano.unsigned_abs() < 10u128.pow(30);
    if !quantity.as_nano().is_some_and(has_suffix) {
        return;
    }
    let canonical = exact.canonical();
    let again = Quantity::parse(&canonical);
    assert_eq!(again.as_ref(), Some(quantity), "{text} is {canonical}");
    if let Ok(again) = exact_quantity::Quantity::parse(&canonical) {
        assert_eq!(again.expect("a quantity").canonical(), canonical);
    }
}

/// The sign of the exact difference is the order.
fn compare_exact(texts: &[&str], a: &Quantity, b: &Quantity) {
    let exact = |text| exact_quantity::Quantity::parse(text).ok().flatten();
    let (Some(one), Some(other)) = (exact(texts[0]), exact(texts[1])) else {
        return;
    };
    if let Ok(difference) = one.add(&other.negated()) {
        let difference = difference.canonical();
        let order = match difference.as_str() {
            "0" => Ordering::Equal,
            text if text.starts_with('-') => Ordering::Less,
            _ => Ordering::Greater,
        };
        assert_eq!(a.cmp(b), order, "the difference is {difference}");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "1\n1000m\n0.001k",
        "1Ki\n1024\n1.5Gi",
        "1e3\n1k\n1E3",
        "-5\n+5\n0",
        "100n\n1u\n.5",
        "9223372036854775807\n8Ei\n1e30",
        "0.0000000001\n1e-9\n5.",
        "12345678901234567890123456789012345678901234567890\n1e99\n-1Ei",
    ])
}
