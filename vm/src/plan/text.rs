//! Walks over the text of parts that are not built, along the spots of a plan.

use kpvm_format::Tables;
use kpvm_format::symbol::SymbolId;

use super::{Plan, Spot, Step, Survey};
use crate::document::projection::Bystander;
use crate::document::{Kind, Numbers, Skipped, Visitor, walk};
use kpvm_semantics::pattern_string::Scalar;

/// A walk over texts.
pub(crate) struct TextWalk<'w> {
    pub(crate) plan: &'w Plan,
    pub(crate) tables: &'w Tables<'w>,
    pub(crate) numbers: Numbers,
    pub(crate) survey: &'w mut Survey,
}

impl Bystander for TextWalk<'_> {
    fn pass(&mut self, input: &[u8], at: usize, is_map: bool, spot: u32) -> Option<Skipped> {
        let symbols = self.tables.symbols;
        walk(input, at, is_map, spot, &symbols, self)
    }

    fn forget(&mut self) {
        self.survey.begin(self.plan);
    }
}

impl TextWalk<'_> {
    #[inline(always)]
    fn step(&self, spot: u32) -> Option<&'_ Step> {
        self.plan.step(Spot(spot))
    }
}

impl Visitor for TextWalk<'_> {
    #[inline(always)]
    fn under(&self, map: u32, key: SymbolId) -> Option<(u32, u64)> {
        let (spot, bit) = self.plan.child(Spot(map), key)?;
        Some((spot.0, bit))
    }

    #[inline(always)]
    fn item(&mut self, list: u32) -> Option<u32> {
        let items = self.step(list)?.items?;
        self.survey.items += 1;
        Some(items.0)
    }

    #[inline(always)]
    fn scalar(&mut self, spot: u32, value: Scalar<'_>) {
        let value = match (value, self.numbers) {
            (Scalar::Int(value), Numbers::Float) => Scalar::Float(value as f64),
            (value, _) => value,
        };
        if let Some(step) = self.plan.step(Spot(spot)) {
            step.test_scalar(value, self.tables, self.survey);
        }
    }

    #[inline(always)]
    fn begin(&mut self, spot: u32, kind: Kind) -> bool {
        let Some(step) = self.plan.step(Spot(spot)) else {
            return false;
        };
        step.test_container(kind, self.survey);
        step.looks_inside(kind)
    }

    #[inline(always)]
    fn end_map(&mut self, spot: u32, seen: u64) {
        if let Some(step) = self.plan.step(Spot(spot)) {
            step.end_map(seen, self.survey);
        }
    }
}
