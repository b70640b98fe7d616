//! `Equals`, and the deep equality of lists and maps (docs/spec/conditions.md §3.5).

use smallvec::SmallVec;

use super::{ConditionError, Judge};
use crate::document::{Kind, NodeId};
use kpvm_semantics::Quantity;
use kpvm_semantics::number::{float_to_i64_amd64, parse_go_float, parse_go_int};

/// Two values to compare.
type Pair = (NodeId, NodeId);

/// Pairs still to be compared.
type Pairs = SmallVec<[Pair; 32]>;

impl Judge<'_, '_> {
    /// Whether key and value are equal according to the table of docs/spec/conditions.md
    /// §3.5.
    pub(super) fn equal(&mut self, key: NodeId, value: NodeId) -> Result<bool, ConditionError> {
        self.spend(self.view.text(key).len() + self.view.text(value).len())?;
        match self.view.kind(key) {
            None | Some(Kind::Null) => Ok(false),
            Some(Kind::False) => Ok(self.view.bool(value) == Some(false)),
            Some(Kind::True) => Ok(self.view.bool(value) == Some(true)),
            Some(Kind::Int) => Ok(self.int_equals(self.view.int(key), value)),
            Some(Kind::Float) => Ok(self.float_equals(self.view.float(key), value)),
            Some(Kind::String) => self.string_equals(key, value),
            Some(Kind::List | Kind::Map) => self.deeply_equal(key, value),
        }
    }

    fn int_equals(&self, key: Option<i64>, value: NodeId) -> bool {
        match self.view.kind(value) {
            Some(Kind::Int) => self.view.int(value) == key,
            Some(Kind::Float) => self.view.float(value).and_then(without_fraction) == key,
            Some(Kind::String) => {
                parse_go_int(self.view.str(value)).is_some_and(|value| key == Some(value))
            }
            None | Some(Kind::Null | Kind::False | Kind::True | Kind::List | Kind::Map) => false,
        }
    }

    fn float_equals(&self, key: Option<f64>, value: NodeId) -> bool {
        match self.view.kind(value) {
            Some(Kind::Int) => {
                let key = key.and_then(without_fraction);
                key.is_some() && key == self.view.int(value)
            }
            Some(Kind::Float) => self.view.float(value) == key,
            Some(Kind::String) => {
                parse_go_float(self.view.str(value)).is_some_and(|value| key == Some(value))
            }
            None | Some(Kind::Null | Kind::False | Kind::True | Kind::List | Kind::Map) => false,
        }
    }

    /// A string key: compared as seconds if both are durations, otherwise as numbers if the
    /// key is a quantity, otherwise with the value as a wildcard.
    fn string_equals(&mut self, key: NodeId, value: NodeId) -> Result<bool, ConditionError> {
        if let Some((key, value)) = self.duration_seconds(key, value) {
            return Ok(key == value);
        }
        if self.view.kind(value) != Some(Kind::String) {
            return Ok(false);
        }
        if let Some(key) = Quantity::parse(self.view.str(key)) {
            return Ok(Quantity::parse(self.view.str(value)).is_some_and(|value| value == key));
        }
        self.wildcard(self.view.text(value), self.view.text(key))
    }

    /// Go's `reflect.DeepEqual`: int64 and float64 are never equal; the order matters in
    /// lists but not in maps.
    fn deeply_equal(&mut self, left: NodeId, right: NodeId) -> Result<bool, ConditionError> {
        let mut pairs = Pairs::new();
        pairs.push((left, right));
        while let Some((left, right)) = pairs.pop() {
            self.spend(self.view.text(left).len())?;
            let (left_kind, right_kind) = (self.view.kind(left), self.view.kind(right));
            let equal = match left_kind {
                None | Some(Kind::Null) => matches!(right_kind, None | Some(Kind::Null)),
                Some(kind) if right_kind != Some(kind) => false,
                Some(Kind::False | Kind::True) => true,
                Some(Kind::Int) => self.view.int(left) == self.view.int(right),
                Some(Kind::Float) => self.view.float(left) == self.view.float(right),
                Some(Kind::String) => self.view.text(left) == self.view.text(right),
                Some(Kind::List) => self.pair_up_items(left, right, &mut pairs)?,
                Some(Kind::Map) => self.pair_up_members(left, right, &mut pairs)?,
            };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Pairs up the items; false if the lengths differ.
    fn pair_up_items(
        &mut self,
        left: NodeId,
        right: NodeId,
        pairs: &mut Pairs,
    ) -> Result<bool, ConditionError> {
        let (left, right) = (self.view.children(left), self.view.children(right));
        if left.len() != right.len() {
            return Ok(false);
        }
        self.spend_steps(left.len() as u64)?;
        pairs.extend(left.zip(right));
        Ok(true)
    }

    /// Pairs up members with equal keys; false if the keys differ.
    fn pair_up_members(
        &mut self,
        left: NodeId,
        right: NodeId,
        pairs: &mut Pairs,
    ) -> Result<bool, ConditionError> {
        let view = self.view;
        let first = pairs.len();
        if !self.pair_up_items(left, right, pairs)? {
            return Ok(false);
        }
        let is_same_key = |&(left, right): &Pair| view.key_bytes(left) == view.key_bytes(right);
        let members = pairs.get(first..).unwrap_or_default();
        let length: usize = members
            .iter()
            .map(|pair| view.key_bytes(pair.0).len())
            .sum();
        self.spend(length)?;
        if members.iter().all(is_same_key) {
            return Ok(true);
        }
        // Keys in different order: sorting puts equal keys at equal positions.
        let by_key = |&member: &NodeId| view.key_bytes(member);
        let mut on_left: Vec<NodeId> = view.children(left).collect();
        let mut on_right: Vec<NodeId> = view.children(right).collect();
        on_left.sort_unstable_by_key(by_key);
        on_right.sort_unstable_by_key(by_key);
        pairs.truncate(first);
        pairs.extend(on_left.into_iter().zip(on_right));
        Ok(pairs
            .get(first..)
            .unwrap_or_default()
            .iter()
            .all(is_same_key))
    }
}

/// A float as int64, if it has no fraction; values out of range become -2^63.
fn without_fraction(value: f64) -> Option<i64> {
    (value == value.trunc()).then(|| float_to_i64_amd64(value))
}
