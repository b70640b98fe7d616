//! Verification of what the compiler derived: plans, projections and demands.
//!
//! Guaranteed afterwards: every reference is in range; children follow their parents, so a walk
//! down ends; a lookup in a hash table ends. Whether a plan agrees with the code is not checked
//! here: the compiler can derive it again and compare.

use super::{Verified, bits, ensure, number, optional, range};
use crate::Tables;
use crate::outside::OutsideKind;
use crate::plan::*;
use crate::table::{NONE, Range};

/// Checks all plans and projections.
pub(super) fn verify(tables: &Tables<'_>) -> Verified {
    verify_outside(tables)?;
    verify_topics(tables)?;
    verify_tests(tables)?;
    let mut ends = [0; 3];
    for plan in tables.plans {
        let [spots, slots, bodies] = &mut ends;
        follows("spots", plan.spots, spots, tables.plan_spots.len())?;
        follows("slots", plan.slots, slots, tables.plan_slots.len())?;
        follows("bodies", plan.bodies, bodies, tables.plan_bodies.len())?;
        verify_plan(tables, plan)?;
    }
    let mut end = 0;
    for &projection in tables.projections {
        follows(
            "places",
            projection,
            &mut end,
            tables.projection_places.len(),
        )?;
        verify_projection(tables, Tables::range(tables.projection_places, projection))?;
    }
    Ok(())
}

/// Ranges that follow one another are looked at once each, so verification stays linear.
fn follows(what: &str, part: Range, end: &mut u32, count: usize) -> Verified {
    ensure(part.start.get() == *end, || {
        format!("{what} that do not begin where those before end")
    })?;
    range(what, part, count)?;
    *end += part.length.get();
    Ok(())
}

fn verify_outside(tables: &Tables<'_>) -> Verified {
    let demands = tables.outside_demands;
    let fields = tables.outside_fields;
    for demand in demands {
        number("rule", demand.rule.get(), tables.rules.len())?;
        number("kind of demand", demand.kind.into(), OutsideKind::ALL.len())?;
        range("fields", demand.fields, fields.len())?;
    }
    ensure(demands.is_sorted_by_key(|demand| demand.rule.get()), || {
        "demands out of order".into()
    })?;
    for field in fields {
        for text in [field.name, field.value] {
            let range_of_bytes = Range {
                start: text.offset,
                length: text.length,
            };
            range("text", range_of_bytes, tables.outside_text.len())?;
        }
        bits("flag of a field", field.computed, 1)?;
    }
    Ok(())
}

fn verify_topics(tables: &Tables<'_>) -> Verified {
    let key = |topic: &Topic| (topic.kind.get(), topic.resource.get());
    for topic in tables.topics {
        optional("symbol", topic.kind.get(), tables.symbols.len())?;
        optional("symbol", topic.resource.get(), tables.symbols.len())?;
        for kind_plan in topic.operations {
            number("kind plan", kind_plan.get(), tables.kind_plans.len())?;
        }
    }
    ensure(tables.topics.is_sorted_by(|a, b| key(a) < key(b)), || {
        "topics out of order".into()
    })?;
    let last = tables.topics.last().map(key);
    ensure(last.is_none_or(|last| last == (NONE, NONE)), || {
        "no topic for the kinds that no rule names".into()
    })?;
    for kind_plan in tables.kind_plans {
        optional("plan", kind_plan.plan.get(), tables.plans.len())?;
        range("plain rules", kind_plan.plain, tables.plain_rules.len())?;
        for projection in [kind_plan.slim, kind_plan.full] {
            optional("projection", projection.get(), tables.projections.len())?;
        }
    }
    for rule in tables.plain_rules {
        number("rule", rule.rule.get(), tables.rules.len())?;
        number("kinds", rule.kinds.get(), tables.kind_lists.len())?;
    }
    Ok(())
}

fn verify_tests(tables: &Tables<'_>) -> Verified {
    for test in tables.plan_tests {
        let operand = test.operand.get();
        match DemandKind::ALL.get(usize::from(test.demand)) {
            None => number("demand", u32::from(test.demand), DemandKind::ALL.len())?,
            Some(DemandKind::Leaf | DemandKind::ItemLeaf) => {
                number("leaf", operand, tables.leaves.len())?;
            }
            Some(DemandKind::Tags) => number("tag pattern", operand, tables.tag_patterns.len())?,
            Some(DemandKind::Map | DemandKind::List | DemandKind::Some | DemandKind::Nothing) => {
                ensure(operand == 0, || "a demand with an operand".into())?
            }
        }
        number("list", test.breaks.get(), tables.plan_breaks.len())?;
    }
    Ok(())
}

fn verify_plan(tables: &Tables<'_>, plan: &Plan) -> Verified {
    let spots = Tables::range(tables.plan_spots, plan.spots);
    let slots = Tables::range(tables.plan_slots, plan.slots);
    ensure((1..=MAX_SPOTS).contains(&spots.len()), || {
        format!("a plan of {} spots", spots.len())
    })?;
    let mut depths = vec![0u8; spots.len()];
    for (position, spot) in spots.iter().enumerate() {
        if position > 0 {
            let parent = usize::from(spot.parent.get());
            number("spot above", spot.parent.get().into(), position)?;
            let depth = depths.get(parent).map_or(0, |depth| depth + 1);
            ensure(depth <= MAX_SPOT_DEPTH, || "a spot that is too deep".into())?;
            if let Some(own) = depths.get_mut(position) {
                *own = depth;
            }
        }
        optional("symbol", spot.key.get(), tables.symbols.len())?;
        ensure(usize::from(spot.keys) <= MAX_SPOT_KEYS, || {
            format!("a spot with {} keys", spot.keys)
        })?;
        ensure(spot.required <= spot.keys, || {
            "a key that is not there".into()
        })?;
        below(
            "keys",
            spot.children.get(),
            spot.keys.into(),
            position,
            spots.len(),
        )?;
        let items = u16::from(spot.items.get() != 0);
        below("items", spot.items.get(), items, position, spots.len())?;
        let tests = Range {
            start: spot.tests,
            length: u32::from(spot.test_count.get()).into(),
        };
        range("tests", tests, tables.plan_tests.len())?;
        optional("list", spot.missing.get(), tables.plan_breaks.len())?;
    }
    ensure(slots.len().is_power_of_two(), || {
        format!("a plan with {} slots", slots.len())
    })?;
    for slot in slots {
        number("spot", slot.get().into(), spots.len())?;
    }
    ensure(slots.iter().any(|slot| slot.get() == 0), || {
        "a plan without an empty slot".into()
    })?;
    let alternatives = plan.alternatives.get() as usize;
    ensure(alternatives <= MAX_ALTERNATIVES, || {
        format!("a plan of {alternatives} alternatives")
    })?;
    let bodies = Tables::range(tables.plan_bodies, plan.bodies);
    for body in bodies {
        number("block", body.block.get(), tables.blocks.len())?;
        let count = usize::from(body.alternatives.get()).max(1);
        ensure(
            usize::from(body.first.get()) + count <= alternatives,
            || "a body with alternatives that are not there".into(),
        )?;
    }
    ensure(bodies.len() <= MAX_ALTERNATIVES, || {
        "a plan of too many bodies".into()
    })?;
    ensure(
        bodies.is_sorted_by(|a, b| a.block.get() < b.block.get()),
        || "bodies out of order".into(),
    )
}

/// References to the nodes below one of a tree: in range, and after it.
fn below(what: &str, first: u16, count: u16, position: usize, all: usize) -> Verified {
    let (first, count) = (usize::from(first), usize::from(count));
    let holds = count == 0 || first > position && first + count <= all;
    ensure(holds, || format!("{what} {first} of {position}"))
}

fn verify_projection(tables: &Tables<'_>, places: &[ProjectionPlace]) -> Verified {
    ensure((1..=MAX_PLACES).contains(&places.len()), || {
        format!("a projection of {} places", places.len())
    })?;
    for (position, place) in places.iter().enumerate() {
        optional("symbol", place.key.get(), tables.symbols.len())?;
        number("reading", place.reading.into(), Reading::ALL.len())?;
        let (first, keys) = (place.children.get(), place.keys.get());
        below("places", first, keys, position, places.len())?;
        let items = u16::from(place.items.get() != 0);
        below("items", place.items.get(), items, position, places.len())?;
    }
    // A place that is not found is not read, so the order of keys needs no check.
    Ok(())
}
