//! Decoding into Go's types (docs/spec/pod-security.md §2): whether a value has the shape
//! that a Kubernetes struct demands, the error of Go's `encoding/json` if it does not, and
//! renaming of keys that differ in case from the field's.
//!
//! A value that fits is left as it is: the usual case looks at every value once and
//! allocates nothing. Types nest as deep as shapes do, which the verifier bounds, so
//! walking along them recurses.

use std::fmt::Write;

use kpvm_format::Tables;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, ShapeField, ShapeKind};

use crate::document::{Kind, Label, NodeId, View};
use crate::function::{FunctionError, Values, check_rfc3339};
use kpvm_semantics::Quantity;
use kpvm_semantics::number::format_json_float;

/// Decodes values into the shapes of a bundle's table.
#[derive(Clone, Copy)]
pub(super) struct Decoder<'d> {
    pub(super) tables: &'d Tables<'d>,
    pub(super) view: View<'d>,
}

/// How a value fits a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It fits as it is.
    Exact,
    /// It fits once keys are renamed.
    Renamed,
    /// It does not fit.
    Misfit,
}

impl<'d> Decoder<'d> {
    fn shape(&self, number: u32) -> Option<&'d table::Shape> {
        self.tables.shapes.get(number as usize)
    }

    fn fields(&self, shape: &table::Shape) -> &'d [ShapeField] {
        Tables::range(self.tables.shape_fields, shape.fields)
    }

    fn slots(&self, shape: &table::Shape) -> &'d [u8] {
        Tables::range(self.tables.shape_slots, shape.slots)
    }

    /// How the value fits; `steps` counts the values looked at.
    pub(super) fn fit(&self, value: NodeId, shape: u32, steps: &mut u64) -> Fit {
        let Some(shape) = self.shape(shape) else {
            return Fit::Misfit;
        };
        *steps += 1;
        let Some(kind) = self.view.kind(value) else {
            return Fit::Exact;
        };
        let holds = match (kind_of(shape), kind) {
            (ShapeKind::Any, _) | (_, Kind::Null) | (ShapeKind::Text, Kind::String) => true,
            (ShapeKind::Bool, kind) => matches!(kind, Kind::False | Kind::True),
            (ShapeKind::Struct, Kind::Map) => return self.fit_struct(value, shape, steps),
            (ShapeKind::List, Kind::List) | (ShapeKind::Map, Kind::Map) => {
                return self.fit_items(value, shape.item.get(), steps);
            }
            (ShapeKind::Int32 | ShapeKind::Int64, _) => self.whole_number(value, shape).is_some(),
            (ShapeKind::Quantity | ShapeKind::IntOrText | ShapeKind::Time, _) => {
                self.custom_error(value, shape).is_none()
            }
            _ => false,
        };
        if holds { Fit::Exact } else { Fit::Misfit }
    }

    fn fit_items(&self, list: NodeId, item_shape: u32, steps: &mut u64) -> Fit {
        let mut worst = Fit::Exact;
        for item in self.view.children(list) {
            match self.fit(item, item_shape, steps) {
                Fit::Misfit => return Fit::Misfit,
                fit => worst = worst.max(fit),
            }
        }
        worst
    }

    fn fit_struct(&self, map: NodeId, shape: &table::Shape, steps: &mut u64) -> Fit {
        let (fields, slots) = (self.fields(shape), self.slots(shape));
        let mut worst = Fit::Exact;
        for member in self.view.children(map) {
            let (field, exact) = match self.exact_field(member, fields, slots) {
                Some(field) if self.is_plainly(member, field) => continue,
                Some(field) => (field, Fit::Exact),
                None => match self.folded_field(member, fields) {
                    Some(field) => (field, Fit::Renamed),
                    None => continue,
                },
            };
            match self.fit(member, field.shape.get(), steps) {
                Fit::Misfit => return Fit::Misfit,
                fit => worst = worst.max(fit).max(exact),
            }
        }
        worst
    }

    /// Whether a member is a text or a boolean where one is expected, as most are.
    #[inline]
    fn is_plainly(&self, member: NodeId, field: &ShapeField) -> bool {
        let kind = self.shape(field.shape.get()).map(|shape| shape.kind);
        const TEXT: Option<u8> = Some(ShapeKind::Text as u8);
        const BOOL: Option<u8> = Some(ShapeKind::Bool as u8);
        matches!(
            (kind, self.view.kind(member)),
            (TEXT, Some(Kind::String)) | (BOOL, Some(Kind::False | Kind::True))
        )
    }

    #[inline]
    fn exact_field(
        &self,
        member: NodeId,
        fields: &'d [ShapeField],
        slots: &[u8],
    ) -> Option<&'d ShapeField> {
        table::Shape::field(self.view.key_symbol(member)?.0, fields, slots)
    }

    /// The field that Go uses for a key that names none exactly: the first that differs
    /// only in case.
    #[cold]
    fn folded_field(&self, member: NodeId, fields: &'d [ShapeField]) -> Option<&'d ShapeField> {
        let key = self.view.key_str(member);
        let symbols = &self.tables.symbols;
        fields
            .iter()
            .find(|field| folds_to(key, symbols.text(SymbolId(field.key.get()))))
    }

    fn field_of(&self, member: NodeId, shape: &table::Shape) -> Option<&'d ShapeField> {
        let fields = self.fields(shape);
        self.exact_field(member, fields, self.slots(shape))
            .or_else(|| self.folded_field(member, fields))
    }

    /// The members of a map in the order in which Kyverno serialises the resource again.
    fn sorted_members(&self, map: NodeId) -> Vec<NodeId> {
        let mut members: Vec<NodeId> = self.view.children(map).collect();
        members.sort_by_key(|&member| self.view.key_bytes(member));
        members
    }

    /// The integer that Go reads for a number, if it is integral and in range.
    fn whole_number(&self, value: NodeId, shape: &table::Shape) -> Option<i64> {
        let number = match (self.view.int(value), self.view.float(value)) {
            (Some(number), _) => number,
            (None, Some(number)) => {
                // Beyond these Go writes an exponent, or the digits do not fit.
                let whole = number.trunc() == number && number.abs() < 9_223_372_036_854_775_808.0;
                whole.then_some(number as i64)?
            }
            (None, None) => return None,
        };
        let is_wide = kind_of(shape) == ShapeKind::Int64;
        (is_wide || i32::try_from(number).is_ok()).then_some(number)
    }

    /// The error of the type's own decoder.
    fn custom_error(&self, value: NodeId, shape: &table::Shape) -> Option<Misfit> {
        let kind = self.view.kind(value)?;
        match (kind_of(shape), kind) {
            (_, Kind::Null) | (ShapeKind::IntOrText, Kind::String) => None,
            (ShapeKind::Quantity, Kind::Int | Kind::Float) => None,
            (ShapeKind::Quantity, Kind::String) => {
                let text = self.view.str(value);
                let trimmed = text.trim_matches(|c: char| c.is_whitespace() && !c.is_control());
                Quantity::parse(trimmed)
                    .is_none()
                    .then(|| Misfit::Text(quantity_error(trimmed).into()))
            }
            (ShapeKind::Quantity, _) => Some(Misfit::Text(QUANTITY_FORMAT.into())),
            (ShapeKind::Time, Kind::String) => {
                check_rfc3339(self.view.str(value)).err().map(Misfit::Text)
            }
            (ShapeKind::Time, _) => Some(Misfit::Type { expected: "string" }),
            (ShapeKind::IntOrText, Kind::Int | Kind::Float) => {
                let fits = self
                    .whole_number(value, shape)
                    .is_some_and(|number| i32::try_from(number).is_ok());
                (!fits).then_some(Misfit::Type { expected: "int32" })
            }
            _ => Some(Misfit::Type { expected: "int32" }),
        }
    }

    /// The error that Go reports for a value that does not fit.
    pub(super) fn error(&self, value: NodeId, shape: u32) -> String {
        let mut search = ErrorSearch {
            decoder: *self,
            path: Vec::new(),
            structs: Vec::new(),
            first: None,
        };
        match search.search(value, shape) {
            Err(text) => text,
            Ok(()) => search.first.unwrap_or_default(),
        }
    }
}

/// Why a value does not have the expected type.
enum Misfit {
    /// The type's decoder has an error of its own.
    Text(String),
    /// A value of this type was expected.
    Type {
        /// As Go prints it.
        expected: &'static str,
    },
}

/// The search for the error that Go reports: the first in the order of keys, unless a type
/// with its own decoder fails, which ends the search.
struct ErrorSearch<'d> {
    decoder: Decoder<'d>,
    path: Vec<String>,
    structs: Vec<&'d str>,
    first: Option<String>,
}

impl<'d> ErrorSearch<'d> {
    fn search(&mut self, value: NodeId, number: u32) -> Result<(), String> {
        let decoder = self.decoder;
        let Some(shape) = decoder.shape(number) else {
            return Ok(());
        };
        match (kind_of(shape), decoder.view.kind(value)) {
            (ShapeKind::Any, _) | (_, None | Some(Kind::Null)) => {}
            (ShapeKind::Struct, Some(Kind::Map)) => {
                let name = decoder.tables.text(shape.name);
                let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
                for member in decoder.sorted_members(value) {
                    let Some(field) = decoder.field_of(member, shape) else {
                        continue;
                    };
                    let key = decoder.tables.symbols.text(SymbolId(field.key.get()));
                    let embedded = decoder.tables.text(field.embedded);
                    self.path.push(format!("{embedded}{key}"));
                    self.structs.push(name);
                    self.search(member, field.shape.get())?;
                    self.path.pop();
                    self.structs.pop();
                }
            }
            (ShapeKind::List, Some(Kind::List)) => {
                for item in decoder.view.children(value) {
                    self.search(item, shape.item.get())?;
                }
            }
            (ShapeKind::Map, Some(Kind::Map)) => {
                for member in decoder.sorted_members(value) {
                    self.search(member, shape.item.get())?;
                }
            }
            (ShapeKind::Quantity | ShapeKind::IntOrText | ShapeKind::Time, _) => {
                match decoder.custom_error(value, shape) {
                    None => {}
                    Some(Misfit::Text(text)) => return Err(text),
                    Some(Misfit::Type { expected }) => {
                        let whole = expected == "int32";
                        return Err(self.mismatch(value, whole, expected));
                    }
                }
            }
            _ => {
                if self.first.is_none() && decoder.fit(value, number, &mut 0) == Fit::Misfit {
                    let whole = matches!(kind_of(shape), ShapeKind::Int32 | ShapeKind::Int64);
                    let name = decoder.tables.text(shape.name);
                    self.first = Some(self.mismatch(value, whole, name));
                }
            }
        }
        Ok(())
    }

    fn mismatch(&self, value: NodeId, whole: bool, expected: &str) -> String {
        let view = &self.decoder.view;
        let mut found = String::from(match view.kind(value) {
            Some(Kind::False | Kind::True) => "bool",
            Some(Kind::String) => "string",
            Some(Kind::List) => "array",
            Some(Kind::Map) => "object",
            Some(Kind::Int | Kind::Float) => "number",
            None | Some(Kind::Null) => "null",
        });
        // If an integer is expected, the number found is shown.
        match (view.int(value), view.float(value)) {
            (Some(number), _) if whole => {
                let _ = write!(found, " {number}");
            }
            (None, Some(number)) if whole => {
                found.push(' ');
                format_json_float(number, &mut found);
            }
            _ => {}
        }
        let path = self.path.join(".");
        let name = self.structs.last().copied().unwrap_or_default();
        format!(
            "json: cannot unmarshal {found} into Go struct field {name}.{path} of type {expected}"
        )
    }
}

/// Decodes a value that fits except for the case of its keys.
pub(super) struct Renaming<'d, 'v> {
    pub(super) tables: &'d Tables<'d>,
    pub(super) values: &'d mut Values<'v>,
}

impl Renaming<'_, '_> {
    /// The value with the fields' own keys; of several members for one field, the later in
    /// the order of keys is decoded into the result of the earlier.
    pub(super) fn rename(&mut self, value: NodeId, number: u32) -> Result<NodeId, FunctionError> {
        let tables = self.tables;
        let Some(shape) = tables.shapes.get(number as usize) else {
            return Ok(value);
        };
        let kind = self.values.view().kind(value);
        match (kind_of(shape), kind) {
            (ShapeKind::Struct, Some(Kind::Map)) => self.rename_struct(value, shape),
            (ShapeKind::List, Some(Kind::List)) => {
                let items: Vec<NodeId> = self.values.view().children(value).collect();
                let items = items
                    .into_iter()
                    .map(|item| self.rename(item, shape.item.get()))
                    .collect::<Result<Vec<_>, _>>()?;
                self.values.new_list(&items)
            }
            _ => Ok(value),
        }
    }

    fn rename_struct(
        &mut self,
        map: NodeId,
        shape: &table::Shape,
    ) -> Result<NodeId, FunctionError> {
        let tables = self.tables;
        let mut members: Vec<(u32, NodeId)> = Vec::new();
        for member in self.values.sorted_members(map)? {
            let decoder = Decoder {
                tables,
                view: self.values.view(),
            };
            let Some(field) = decoder.field_of(member, shape).copied() else {
                continue;
            };
            let value = self.rename(member, field.shape.get())?;
            let key = field.key.get();
            match members.iter().position(|&(known, _)| known == key) {
                None => members.push((key, value)),
                Some(place) => {
                    let merged = self.merge(members[place].1, value, &field)?;
                    members[place].1 = merged;
                }
            }
        }
        let members: Vec<(Label, NodeId)> = members
            .into_iter()
            .map(|(key, value)| (Label::symbol(SymbolId(key)), value))
            .collect();
        self.values.new_map(&members)
    }

    /// Decodes a value into an existing one, as Go does.
    fn merge(
        &mut self,
        old: NodeId,
        new: NodeId,
        field: &ShapeField,
    ) -> Result<NodeId, FunctionError> {
        let tables = self.tables;
        let view = self.values.view();
        let kinds = (view.kind(old), view.kind(new));
        if matches!(kinds.1, None | Some(Kind::Null)) {
            return Ok(if field.nullable == 0 { old } else { new });
        }
        let Some(shape) = tables.shapes.get(field.shape.get() as usize) else {
            return Ok(new);
        };
        match (kind_of(shape), kinds) {
            (ShapeKind::Struct | ShapeKind::Map, (Some(Kind::Map), Some(Kind::Map))) => {
                self.merge_members(old, new, shape)
            }
            (ShapeKind::List, (Some(Kind::List), Some(Kind::List))) => {
                let (olds, news) = (view.children(old), view.children(new));
                let pairs: Vec<(NodeId, NodeId)> = news
                    .enumerate()
                    .map(|(place, item)| (olds.at(place), item))
                    .collect();
                let item = ShapeField {
                    shape: shape.item,
                    nullable: 0,
                    ..*field
                };
                let items = pairs
                    .into_iter()
                    .map(|(old, new)| self.merge(old, new, &item))
                    .collect::<Result<Vec<_>, _>>()?;
                self.values.new_list(&items)
            }
            _ => Ok(new),
        }
    }

    fn merge_members(
        &mut self,
        old: NodeId,
        new: NodeId,
        shape: &table::Shape,
    ) -> Result<NodeId, FunctionError> {
        let fields = Tables::range(self.tables.shape_fields, shape.fields);
        let is_struct = kind_of(shape) == ShapeKind::Struct;
        let labelled = |values: &Values<'_>, map: NodeId| -> Vec<(Label, NodeId)> {
            let members = values.view().children(map);
            members
                .map(|member| (values.buffer.label_of(member), member))
                .collect()
        };
        let mut members = labelled(self.values, old);
        for (label, member) in labelled(self.values, new) {
            let view = self.values.view();
            let key = view.key_bytes(member);
            let twin = members
                .iter()
                .position(|&(_, known)| view.key_bytes(known) == key);
            let symbol = view.key_symbol(member);
            let field = fields
                .iter()
                .find(|field| Some(SymbolId(field.key.get())) == symbol);
            match (twin, field) {
                (Some(place), Some(field)) if is_struct => {
                    members[place].1 = self.merge(members[place].1, member, field)?;
                }
                (Some(place), _) => members[place].1 = member,
                (None, _) => members.push((label, member)),
            }
        }
        self.values.new_map(&members)
    }
}

fn kind_of(shape: &table::Shape) -> ShapeKind {
    ShapeKind::ALL
        .get(usize::from(shape.kind))
        .copied()
        .unwrap_or(ShapeKind::Any)
}

/// Whether Go's decoder accepts a key for a name: ASCII letters in any case, and the two
/// other characters that fold to one.
fn folds_to(key: &str, name: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    key.chars().map(fold).eq(name.chars().map(fold))
}

const QUANTITY_FORMAT: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error that Kubernetes gives for a text that is not a quantity.
fn quantity_error(text: &str) -> &'static str {
    let digits = |text: &'_ str| -> usize { text.bytes().take_while(u8::is_ascii_digit).count() };
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = rest.get(digits(rest)..).unwrap_or_default();
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => fraction.get(digits(fraction)..).unwrap_or_default(),
        None => rest,
    };
    let rest = rest.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if text.is_empty() || digits(rest) != rest.len() {
        QUANTITY_FORMAT
    } else {
        "unable to parse quantity's suffix"
    }
}
