//! Walks over the text of parts that are not built, along the spots of a plan.

use kpvm_format::Tables;
use kpvm_format::plan::PlanView;
use kpvm_format::symbol::SymbolId;

use super::{Survey, looks_inside};
use crate::document::projection::Bystander;
use crate::document::{Kind, Numbers, Skipped, Visitor, walk};
use kpvm_semantics::pattern_string::Scalar;

/// A walk over texts.
pub(crate) struct TextWalk<'w> {
    pub(crate) plan: &'w PlanView<'w>,
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

impl Visitor for TextWalk<'_> {
    #[inline(always)]
    fn under(&self, map: u32, key: SymbolId) -> Option<(u32, u64)> {
        self.plan.child(map, key)
    }

    #[inline(always)]
    fn item(&mut self, list: u32) -> Option<u32> {
        let items = self.plan.spot(list)?.items.get();
        self.survey.items += u64::from(items != 0);
        (items != 0).then_some(u32::from(items))
    }

    #[inline(always)]
    fn scalar(&mut self, spot: u32, value: Scalar<'_>) {
        let value = match (value, self.numbers) {
            (Scalar::Int(value), Numbers::Float) => Scalar::Float(value as f64),
            (value, _) => value,
        };
        if let Some(spot) = self.plan.spot(spot) {
            self.survey.test_scalar(self.plan, spot, value, self.tables);
        }
    }

    #[inline(always)]
    fn begin(&mut self, spot: u32, kind: Kind) -> bool {
        let Some(spot) = self.plan.spot(spot) else {
            return false;
        };
        self.survey.test_container(self.plan, spot, kind);
        looks_inside(spot, kind)
    }

    #[inline(always)]
    fn end_map(&mut self, spot: u32, seen: u64) {
        if let Some(spot) = self.plan.spot(spot) {
            self.survey.end_map(self.plan, spot, seen);
        }
    }
}
