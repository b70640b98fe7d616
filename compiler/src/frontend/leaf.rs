//! Scalar patterns as leaf predicates of the bundle: parsed once, here, by the same
//! code that parses texts that turn up at run time.

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::table::{self, ComparisonFlags, Join, LeafKind, Range};
use kpvm_semantics::number::format_v_float;
use kpvm_semantics::pattern_string::{Comparison, Conjunct, StringPattern};
use kpvm_syntax::tree::TreeValue;
use zerocopy::little_endian::{I64, U64, U128};

/// Gives equal leaves equal numbers.
#[derive(Debug, Default)]
pub struct Leaves {
    numbers: HashMap<(LeafKind, u64, String), u32>,
}

impl Leaves {
    /// The number of the predicate for a scalar pattern; `None` for maps and lists.
    pub fn intern(&mut self, pattern: &TreeValue, bundle: &mut BundleBuilder) -> Option<u32> {
        let (kind, value, text) = match pattern {
            TreeValue::Null => (LeafKind::Null, 0, "<nil>".to_owned()),
            TreeValue::Bool(value) => (LeafKind::Bool, u64::from(*value), value.to_string()),
            TreeValue::Int(value) => (LeafKind::Int, *value as u64, value.to_string()),
            TreeValue::Float(value) => {
                let mut text = String::new();
                format_v_float(*value, &mut text);
                (LeafKind::Float, value.to_bits(), text)
            }
            TreeValue::String(text) => (LeafKind::String, 0, text.to_string()),
            TreeValue::List(_) | TreeValue::Map(_) => return None,
        };
        let key = (kind, value, text);
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let alternatives = if kind == LeafKind::String {
            write_string_pattern(&key.2, bundle)
        } else {
            Range::EMPTY
        };
        let number = bundle.leaves.len() as u32;
        let text = bundle.text(&key.2);
        bundle.leaves.push(table::Leaf {
            kind: kind as u8,
            value: U64::new(value),
            text,
            alternatives,
        });
        self.numbers.insert(key, number);
        Some(number)
    }
}

fn write_string_pattern(text: &str, bundle: &mut BundleBuilder) -> Range {
    let pattern = StringPattern::parse(text);
    let mut alternatives = Vec::new();
    for conjuncts in pattern.alternatives() {
        let start = bundle.comparisons.len();
        for conjunct in conjuncts {
            match conjunct {
                Conjunct::Compare(comparison) => write_comparison(comparison, Join::And, bundle),
                Conjunct::Inside(low, high) => {
                    write_comparison(low, Join::And, bundle);
                    write_comparison(high, Join::And, bundle);
                }
                Conjunct::Outside(low, high) => {
                    write_comparison(low, Join::Either, bundle);
                    write_comparison(high, Join::And, bundle);
                }
            }
        }
        if let Some(last) = bundle.comparisons.last_mut() {
            last.join = Join::End as u8;
        }
        alternatives.push(Range::new(start, bundle.comparisons.len() - start));
    }
    let start = bundle.alternatives.len();
    bundle.alternatives.extend(&alternatives);
    Range::new(start, alternatives.len())
}

fn write_comparison(comparison: &Comparison<'_>, join: Join, bundle: &mut BundleBuilder) {
    let mut flags = 0;
    let mut quantity = 0;
    if comparison.duration().is_some() {
        flags |= ComparisonFlags::DURATION;
    }
    if let Some(parsed) = comparison.quantity() {
        match parsed.as_nano() {
            Some(nano) => {
                flags |= ComparisonFlags::QUANTITY;
                quantity = nano as u128;
            }
            None => flags |= ComparisonFlags::BIG_QUANTITY,
        }
    }
    let operand = bundle.text(comparison.operand());
    bundle.comparisons.push(table::Comparison {
        operator: comparison.operator() as u8,
        class: comparison.class() as u8,
        flags,
        join: join as u8,
        operand,
        duration: I64::new(comparison.duration().unwrap_or(0)),
        quantity: U128::new(quantity),
    });
}
