//! Context of functions: the buffer with its texts, the host, limits and fuel.

use kpvm_format::symbol::SymbolTable;

use super::regex::RegexCache;
use crate::document::{BufferFull, DocumentBuffer, Kind, Label, NodeId, Numbers, Texts, View};
use crate::host::Host;
use kpvm_semantics::FunctionError;
use kpvm_semantics::limits::Limits;

/// Values of one evaluation and everything else a function may use.
pub struct Values<'v> {
    /// Buffer of arguments and results.
    pub buffer: &'v mut DocumentBuffer,
    /// Texts that the buffer's values point into.
    pub texts: Texts<'v>,
    /// Keys with symbol numbers.
    pub symbols: SymbolTable<'v>,
    /// Answers what cannot be computed.
    pub host: &'v mut dyn Host,
    /// Limits of results.
    pub limits: Limits,
    /// Remaining steps; a step is about one value or 64 bytes of text.
    pub fuel: &'v mut u64,
    /// Cache of compiled regular expressions.
    pub regexes: &'v mut RegexCache,
}

impl From<BufferFull> for FunctionError {
    fn from(full: BufferFull) -> Self {
        FunctionError::refused(full.to_string())
    }
}

impl Values<'_> {
    /// Bytes of text per step.
    pub(crate) const BYTES_PER_STEP: u64 = 64;

    /// View of the values.
    pub fn view(&self) -> View<'_> {
        self.buffer.view(self.texts, self.symbols)
    }

    /// Charges for work before it is done.
    ///
    /// # Errors
    /// [`FunctionError::Refused`] if there is not enough fuel; the rest is then used up.
    pub fn charge(&mut self, steps: u64) -> Result<(), FunctionError> {
        spend(self.fuel, steps)
    }

    /// Charges for reading or writing this much text.
    pub(crate) fn charge_bytes(&mut self, bytes: usize) -> Result<(), FunctionError> {
        self.charge(bytes as u64 / Self::BYTES_PER_STEP)
    }

    /// Text of a string; empty for other kinds.
    pub(super) fn str(&self, id: NodeId) -> &str {
        self.view().str(id)
    }

    /// Value of a Float; NaN for other kinds.
    pub(super) fn number(&self, id: NodeId) -> f64 {
        self.view().float(id).unwrap_or(f64::NAN)
    }

    pub(crate) fn new_null(&mut self) -> Result<NodeId, FunctionError> {
        self.buffer.push_null(Label::ITEM);
        Ok(self.buffer.take()?)
    }

    pub(crate) fn new_bool(&mut self, value: bool) -> Result<NodeId, FunctionError> {
        self.buffer.push_bool(Label::ITEM, value);
        Ok(self.buffer.take()?)
    }

    pub(crate) fn new_int(&mut self, value: i64) -> Result<NodeId, FunctionError> {
        self.buffer.push_int(Label::ITEM, value);
        Ok(self.buffer.take()?)
    }

    pub(crate) fn new_float(&mut self, value: f64) -> Result<NodeId, FunctionError> {
        self.buffer.push_float(Label::ITEM, value);
        Ok(self.buffer.take()?)
    }

    /// Creates a text, within the limit of texts.
    pub(crate) fn new_text(&mut self, text: &str) -> Result<NodeId, FunctionError> {
        self.check_text(text.len())?;
        self.charge_bytes(text.len())?;
        let text = self.buffer.copy_text(text.as_bytes())?;
        self.buffer.push_text(Label::ITEM, text);
        Ok(self.buffer.take()?)
    }

    /// Copies a value from outside; integers stay integers.
    pub(crate) fn new_value(&mut self, value: &serde_json::Value) -> Result<NodeId, FunctionError> {
        let before = self.buffer.text_bytes();
        let symbols = self.symbols;
        let node = self.buffer.push_value(value, &symbols, Numbers::Exact)?;
        self.charge(1 + self.view().len(node) as u64)?;
        self.charge_bytes(self.buffer.text_bytes() - before)?;
        Ok(node)
    }

    /// Rejects a text that would be too long; to be called before building it.
    pub(crate) fn check_text(&self, bytes: usize) -> Result<(), FunctionError> {
        if bytes > self.limits.string_bytes {
            return Err(FunctionError::refused(format!(
                "a text of more than {} bytes (limit string-bytes)",
                self.limits.string_bytes
            )));
        }
        Ok(())
    }

    /// Charges for a list or map, and rejects it if it would have too many members.
    pub(crate) fn charge_members(&mut self, members: usize) -> Result<(), FunctionError> {
        if members > self.limits.list_items {
            return Err(FunctionError::refused(format!(
                "a list of more than {} items (limit list-items)",
                self.limits.list_items
            )));
        }
        self.charge(members as u64)
    }

    /// Creates a list of existing values.
    pub(crate) fn new_list(&mut self, items: &[NodeId]) -> Result<NodeId, FunctionError> {
        self.charge_members(items.len())?;
        self.buffer.begin(Label::ITEM);
        for item in items {
            self.buffer.push_node(Label::ITEM, *item);
        }
        self.buffer.finish_list();
        Ok(self.buffer.take()?)
    }

    /// Creates a map of existing values; of equal keys the last one is kept.
    pub(crate) fn new_map(&mut self, members: &[(Label, NodeId)]) -> Result<NodeId, FunctionError> {
        self.charge_members(members.len())?;
        self.buffer.begin(Label::ITEM);
        for (label, value) in members {
            self.buffer.push_node(*label, *value);
        }
        self.buffer.finish_map(self.texts);
        Ok(self.buffer.take()?)
    }

    /// Label of a key of a new map.
    pub(crate) fn label(&mut self, key: &str) -> Result<Label, FunctionError> {
        self.check_text(key.len())?;
        Ok(self.buffer.label(key, &self.symbols)?)
    }

    /// Members of a map sorted by key: the only order in which maps are traversed; random
    /// in Kyverno (docs/spec/jmespath.md §4, "ValueProjection").
    pub(crate) fn sorted_members(&mut self, map: NodeId) -> Result<Vec<NodeId>, FunctionError> {
        self.charge(sorting_steps(self.view().len(map)))?;
        let view = self.view();
        let mut members: Vec<_> = match view.kind(map) {
            Some(Kind::Map) => view.children(map).collect(),
            _ => Vec::new(),
        };
        members.sort_by_key(|member| view.key_bytes(*member));
        Ok(members)
    }

    /// Whether two values are equal (docs/spec/jmespath.md §4, "Deep equality").
    pub(crate) fn equal(&mut self, left: NodeId, right: NodeId) -> Result<bool, FunctionError> {
        let view = self.buffer.view(self.texts, self.symbols);
        let mut pairs = Vec::new();
        let mut next = Some((left, right));
        while let Some((left, right)) = next.take().or_else(|| pairs.pop()) {
            let bytes = view.text(left).len() as u64;
            spend(self.fuel, 1 + bytes / Self::BYTES_PER_STEP)?;
            let kind = view.kind(left);
            if kind != view.kind(right)
                || view.is_entries(left) != view.is_entries(right)
                || view.is_reference(left) != view.is_reference(right)
            {
                return Ok(false);
            }
            let same = match kind {
                None | Some(Kind::Null | Kind::False | Kind::True) => true,
                Some(Kind::Int) => view.int(left) == view.int(right),
                Some(Kind::Float) => view.float(left) == view.float(right),
                Some(Kind::String) => view.text(left) == view.text(right),
                Some(Kind::List | Kind::Map) if view.len(left) != view.len(right) => false,
                Some(Kind::List) => {
                    pairs.extend(view.children(left).zip(view.children(right)).rev());
                    true
                }
                Some(Kind::Map) => {
                    let mut all_there = true;
                    for member in view.children(left) {
                        let other = match view.key_symbol(member) {
                            Some(symbol) => view.get(right, symbol),
                            None => view.get_text(right, view.key_bytes(member)),
                        };
                        spend(self.fuel, 1 + view.len(right) as u64 / 16)?;
                        all_there &= !other.is_missing();
                        pairs.push((member, other));
                    }
                    all_there
                }
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Takes steps from the fuel.
pub(crate) fn spend(fuel: &mut u64, steps: u64) -> Result<(), FunctionError> {
    match fuel.checked_sub(steps) {
        Some(left) => {
            *fuel = left;
            Ok(())
        }
        None => {
            *fuel = 0;
            Err(FunctionError::refused(
                "the rule needs more steps than it may take (limits rule-fuel and request-fuel)",
            ))
        }
    }
}

/// Cost of sorting this many members.
pub(crate) fn sorting_steps(members: usize) -> u64 {
    let members = members as u64;
    members * u64::from(members.max(1).ilog2().max(1))
}
