//! Compares stored plans with derived ones.
use kpvm_format::Tables;
use kpvm_format::plan::{END, PlanView, ProjectionPlace, Reading};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use super::{Demand, Plan, Spot};
use crate::machine::Ending;

fn name(tables: &Tables<'_>, key: Option<u32>) -> String {
    key.map_or("/*".into(), |key| format!("/{}", tables.symbols.text(SymbolId(key))))
}

pub(crate) fn derived(plan: &Plan, tables: &Tables<'_>) -> Vec<String> {
    let mut owner = std::collections::BTreeMap::new();
    let mut lines = Vec::new();
    for body in &plan.bodies {
        let is_pass = body.endings == [Ending::Pass];
        lines.push(format!("body {} {} {is_pass}", body.block, body.endings.len()));
        for index in 0..body.endings.len() {
            owner.insert(body.first as usize + index, (body.block, index));
        }
    }
    lines.push(format!("{} {}", plan.longest, plan.total));
    fn go(plan: &Plan, spot: Spot, path: &str, tables: &Tables<'_>, lines: &mut Vec<String>, owner: &std::collections::BTreeMap<usize, (u32, usize)>) {
        let Some(step) = plan.step(spot) else { return };
        let list = |breaks: &[u16]| {
            let mut all: Vec<_> = breaks.iter().map(|n| owner.get(&(*n as usize))).collect();
            all.sort();
            format!("{all:?}")
        };
        for test in &step.tests {
            let demand = match test.demand {
                Demand::Map => "Map 0".into(),
                Demand::List => "List 0".into(),
                Demand::Some => "Some 0".into(),
                Demand::Nothing => "Nothing 0".into(),
                Demand::Leaf(n) => format!("Leaf {n}"),
                Demand::ItemLeaf(n) => format!("ItemLeaf {n}"),
                Demand::Tags(n) => format!("Tags {n}"),
            };
            lines.push(format!("{path}: {demand} {}", list(&test.breaks)));
        }
        for (bit, breaks) in &step.requirements {
            for (key, below) in plan.below(spot) {
                if plan.step(below).is_some_and(|below| below.bit == *bit) {
                    lines.push(format!("{path}{}: required {}", name(tables, key.map(|k| k.0)), list(breaks)));
                }
            }
        }
        for (key, below) in plan.below(spot) {
            go(plan, below, &format!("{path}{}", name(tables, key.map(|k| k.0))), tables, lines, owner);
        }
    }
    go(plan, Spot::ROOT, "", tables, &mut lines, &owner);
    lines.sort();
    lines
}

pub(crate) fn stored(number: u32, tables: &Tables<'_>) -> (Vec<String>, Vec<String>) {
    let Some(plan) = PlanView::new(tables, number) else { return (Vec::new(), Vec::new()) };
    let mut owner = std::collections::BTreeMap::new();
    let mut lines = Vec::new();
    for body in plan.bodies() {
        let count = body.alternatives.get().max(1) as usize;
        lines.push(format!("body {} {count} {}", body.block.get(), body.alternatives.get() == 0));
        for index in 0..count {
            owner.insert(body.first.get() as usize + index, (body.block.get(), index));
        }
    }
    lines.push(format!("{} {}", plan.record().longest.get(), plan.record().total.get()));
    let mut paths = vec![String::new()];
    let mut number = 0;
    while let Some(spot) = plan.spot(number) {
        let path = paths[number as usize].clone();
        let list = |breaks: u32| {
            let mut all: Vec<_> = plan.breaks(breaks).map(|n| owner.get(&(n as usize))).collect();
            all.sort();
            format!("{all:?}")
        };
        for test in plan.tests(spot) {
            let kind = kpvm_format::plan::DemandKind::ALL[test.demand as usize];
            lines.push(format!("{path}: {kind:?} {} {}", test.operand.get(), list(test.breaks.get())));
        }
        if spot.missing.get() != NONE {
            lines.push(format!("{path}: required {}", list(spot.missing.get())));
        }
        for child in 0..u32::from(spot.keys) {
            let child = plan.spot(u32::from(spot.children.get()) + child).expect("child");
            let key = SymbolId(child.key.get());
            assert_eq!(plan.child(number, key).map(|c| c.1), Some(1 << child.bit));
            paths.push(format!("{path}{}", name(tables, Some(key.0))));
        }
        if spot.items.get() != 0 {
            paths.push(format!("{path}/*"));
        }
        number += 1;
    }
    lines.sort();
    (lines, paths)
}

pub(crate) fn derived_spots(plan: &Plan, tables: &Tables<'_>) -> Vec<String> {
    let mut paths = vec![String::new(); plan.steps.len()];
    fn go(plan: &Plan, spot: Spot, path: &str, tables: &Tables<'_>, paths: &mut Vec<String>) {
        paths[spot.0 as usize] = path.into();
        for (key, below) in plan.below(spot) {
            go(plan, below, &format!("{path}{}", name(tables, key.map(|k| k.0))), tables, paths);
        }
    }
    go(plan, Spot::ROOT, "", tables, &mut paths);
    paths
}

pub(crate) fn stored_projection(places: Option<&[ProjectionPlace]>, spots: &[String], tables: &Tables<'_>) -> Option<Vec<String>> {
    let places = places?;
    let mut paths = vec![String::new()];
    let mut lines = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let path = paths[number].clone();
        let spot = match place.spot.get() {
            END => None,
            spot => spots.get(spot as usize),
        };
        lines.push(format!("{path}: {:?} {spot:?}", Reading::ALL[place.reading as usize]));
        for child in 0..place.keys.get() {
            let child = places[(place.children.get() + child) as usize];
            paths.push(format!("{path}{}", name(tables, Some(child.key.get()))));
        }
        if place.items.get() != 0 {
            paths.push(format!("{path}/*"));
        }
    }
    lines.sort();
    Some(lines)
}
