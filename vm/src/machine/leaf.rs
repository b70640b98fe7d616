//! Leaf predicates over nodes (docs/spec/patterns.md §3.1 and §5), from the records of a
//! bundle: only the value is parsed here.

use kpvm_format::Tables;
use kpvm_format::table::{self, ComparisonFlags, Join, LeafKind};
use kpvm_semantics::{Operator, WildcardClass};

use super::Scene;
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::number::{float_to_i64_amd64, parse_go_float, parse_go_int};
use kpvm_semantics::pattern_string::{Comparison, Scalar, ScalarOperand};
use kpvm_semantics::quantity::Quantity;
use kpvm_semantics::wildcard;

/// Whether the value satisfies the predicate; for a list, whether every item does.
pub(super) fn holds(leaf: u32, value: NodeId, scene: &Scene<'_>) -> bool {
    leaf_holds(leaf, value, &scene.view, scene.tables)
}

/// Like [`holds`], outside of a run.
pub(crate) fn leaf_holds(leaf: u32, value: NodeId, view: &View<'_>, tables: &Tables<'_>) -> bool {
    let holds = |value| {
        scalar_of(value, view).is_some_and(|value| leaf_of_scalar_holds(leaf, value, tables))
    };
    if view.kind(value) == Some(Kind::List) {
        return view.children(value).all(holds);
    }
    holds(value)
}

/// Whether a scalar satisfies the predicate; a missing value counts as null.
pub(crate) fn leaf_of_scalar_holds(leaf: u32, value: Scalar<'_>, tables: &Tables<'_>) -> bool {
    let Some(leaf) = tables.leaves.get(leaf as usize) else {
        return false;
    };
    let bits = leaf.value.get();
    match LeafKind::ALL.get(usize::from(leaf.kind)) {
        Some(LeafKind::Null) => matches!(
            value,
            Scalar::Null
                | Scalar::Bool(false)
                | Scalar::Int(0)
                | Scalar::Float(0.0)
                | Scalar::String("")
        ),
        Some(LeafKind::Bool) => value == Scalar::Bool(bits != 0),
        Some(LeafKind::Int) => int_holds(bits as i64, value),
        Some(LeafKind::Float) => float_holds(f64::from_bits(bits), value),
        Some(LeafKind::String) => string_holds(leaf, value, tables),
        None => false,
    }
}

/// The value as a scalar; `None` for maps and lists.
pub(crate) fn scalar_of<'v>(value: NodeId, view: &View<'v>) -> Option<Scalar<'v>> {
    Some(match view.kind(value) {
        None | Some(Kind::Null) => Scalar::Null,
        Some(Kind::False) => Scalar::Bool(false),
        Some(Kind::True) => Scalar::Bool(true),
        Some(Kind::Int) => Scalar::Int(view.int(value)?),
        Some(Kind::Float) => Scalar::Float(view.float(value)?),
        Some(Kind::String) => Scalar::String(view.str(value)),
        Some(Kind::List | Kind::Map) => return None,
    })
}

fn int_holds(pattern: i64, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Int(value) => value == pattern,
        Scalar::Float(value) => value == value.trunc() && float_to_i64_amd64(value) == pattern,
        Scalar::String(value) => parse_go_int(value) == Some(pattern),
        Scalar::Null | Scalar::Bool(_) => false,
    }
}

fn float_holds(pattern: f64, value: Scalar<'_>) -> bool {
    match value {
        Scalar::Int(value) => pattern == pattern.trunc() && float_to_i64_amd64(pattern) == value,
        Scalar::Float(value) => value == pattern,
        Scalar::String(value) => parse_go_float(value) == Some(pattern),
        Scalar::Null | Scalar::Bool(_) => false,
    }
}

/// docs/spec/patterns.md §6: identity, then alternatives of conjunctions.
fn string_holds(leaf: &table::Leaf, value: Scalar<'_>, tables: &Tables<'_>) -> bool {
    if matches!(value, Scalar::String(text) if text == tables.text(leaf.text)) {
        return true;
    }
    let operand = ScalarOperand::new(value);
    Tables::range(tables.alternatives, leaf.alternatives)
        .iter()
        .any(|&alternative| {
            conjunction_holds(
                Tables::range(tables.comparisons, alternative),
                &operand,
                tables,
            )
        })
}

fn conjunction_holds(
    comparisons: &[table::Comparison],
    value: &ScalarOperand<'_>,
    tables: &Tables<'_>,
) -> bool {
    // `either` carries the result of the first half of an outside range to the second.
    let mut either = false;
    for comparison in comparisons {
        let holds = either || comparison_holds(comparison, value, tables);
        either = false;
        if comparison.join == Join::Either as u8 {
            either = holds;
        } else if !holds {
            return false;
        }
    }
    true
}

fn comparison_holds(
    record: &table::Comparison,
    value: &ScalarOperand<'_>,
    tables: &Tables<'_>,
) -> bool {
    let operand = tables.text(record.operand);
    let (Some(&operator), Some(&class)) = (
        Operator::ALL.get(usize::from(record.operator)),
        WildcardClass::ALL.get(usize::from(record.class)),
    ) else {
        return false;
    };
    // The usual case, text against text, needs nothing else.
    if record.flags == 0
        && let Scalar::String(text) = value.value()
    {
        return match operator {
            Operator::Equal => wildcard::matches_class(class, operand, text),
            Operator::NotEqual => !wildcard::matches_class(class, operand, text),
            Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::Less
            | Operator::LessOrEqual => false,
        };
    }
    let duration = (record.flags & ComparisonFlags::DURATION != 0).then(|| record.duration.get());
    let quantity = if record.flags & ComparisonFlags::QUANTITY != 0 {
        Some(Quantity::from_nano(record.quantity.get() as i128))
    } else if record.flags & ComparisonFlags::BIG_QUANTITY != 0 {
        Quantity::parse(operand)
    } else {
        None
    };
    Comparison::from_parts(operator, operand, duration, quantity, class).matches(value)
}
