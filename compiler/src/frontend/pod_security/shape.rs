//! The shapes of Kubernetes' types, from `kubernetes_types.txt`: each goes into the
//! bundle once, when a rule first needs it, with everything inside it in front of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, NONE, Range, ShapeKind};
use zerocopy::little_endian::U32;

use crate::frontend::pools::Pools;

/// The list of types; its first lines say how to read it.
const TYPES: &str = include_str!("kubernetes_types.txt");

/// A field: its name with the embedded structs in front, and its type.
type Field = (&'static str, &'static str);

/// The structs of the list with their fields.
static STRUCTS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(structs);

/// Every struct of the list with its fields.
fn structs() -> HashMap<&'static str, Vec<Field>> {
    let mut structs = HashMap::new();
    let mut name = "";
    for line in TYPES.lines().filter(|line| !line.starts_with('#')) {
        match line
            .strip_prefix("  ")
            .and_then(|field| field.split_once(' '))
        {
            Some(field) => structs.entry(name).or_insert_with(Vec::new).push(field),
            None => name = line,
        }
    }
    structs
}

/// What the items of a list or the values of a map are; they stand for themselves where
/// they are pointers.
fn item_of(of: &str) -> Option<&str> {
    let item = match of.strip_prefix('{') {
        Some(map) => map.split_once('}').map(|(_, value)| value),
        None => of.strip_prefix("[]"),
    };
    item.map(|item| item.trim_start_matches('*'))
}

fn kind_of(of: &str) -> ShapeKind {
    match of.split(':').next().unwrap_or(of) {
        list if list.starts_with('[') => ShapeKind::List,
        map if map.starts_with('{') => ShapeKind::Map,
        "string" => ShapeKind::Text,
        "bool" => ShapeKind::Bool,
        "int32" => ShapeKind::Int32,
        "int64" => ShapeKind::Int64,
        "quantity" => ShapeKind::Quantity,
        "int-or-string" => ShapeKind::IntOrText,
        "time" => ShapeKind::Time,
        "any" => ShapeKind::Any,
        _ => ShapeKind::Struct,
    }
}

/// The type as Go prints it.
fn go_name(of: &str) -> String {
    if let Some((own, value)) = of.strip_prefix('{').and_then(|map| map.split_once('}')) {
        return match own {
            "" => format!("map[string]{}", go_name(value)),
            own => own.to_owned(),
        };
    }
    match of.strip_prefix("[]") {
        Some(item) => format!("[]{}", go_name(item)),
        None if kind_of(of) == ShapeKind::Struct => format!("v1.{of}"),
        None => of.split_once(':').map_or(of, |(_, name)| name).to_owned(),
    }
}

impl Pools<'_> {
    /// The number of the shape of a struct, or of another type of the list.
    pub(super) fn shape(&mut self, of: &str) -> u32 {
        if let Some(&number) = self.shapes.get(of) {
            return number;
        }
        let item = item_of(of).map_or(NONE, |item| self.shape(item));
        let kind = kind_of(of);
        let fields = if kind == ShapeKind::Struct {
            self.struct_fields(of)
        } else {
            Range::EMPTY
        };
        let entry = table::Shape {
            kind: kind as u8,
            name: self.bundle.text(&go_name(of)),
            item: U32::new(item),
            slots: self.slots(fields),
            fields,
        };
        self.bundle.shapes.push(entry);
        let number = self.bundle.shapes.len() as u32 - 1;
        self.shapes.insert(of.to_owned(), number);
        number
    }

    fn struct_fields(&mut self, name: &str) -> Range {
        let fields = STRUCTS.get(name).map_or(&[][..], Vec::as_slice);
        let fields: Vec<table::ShapeField> = fields
            .iter()
            .map(|&(field, of)| {
                let (embedded, key) = match field.rfind('.') {
                    Some(dot) => field.split_at(dot + 1),
                    None => ("", field),
                };
                let nullable = of.starts_with(['*', '[', '{']);
                let SymbolId(symbol) = self.bundle.symbols.intern(key);
                table::ShapeField {
                    key: U32::new(symbol),
                    shape: U32::new(self.shape(of.trim_start_matches('*'))),
                    nullable: u8::from(nullable),
                    embedded: self.bundle.text(embedded),
                }
            })
            .collect();
        let start = self.bundle.shape_fields.len();
        self.bundle.shape_fields.extend(&fields);
        Range::new(start, fields.len())
    }

    /// Slots for the fields of a struct, at least twice as many.
    fn slots(&mut self, fields: Range) -> Range {
        let bundle = &mut self.bundle;
        let first = fields.start.get() as usize;
        let count = fields.length.get() as usize;
        if count == 0 {
            return Range::EMPTY;
        }
        let mut slots = vec![table::Shape::EMPTY_SLOT; (2 * count).next_power_of_two()];
        for (place, field) in (0..).zip(bundle.shape_fields.iter().skip(first).take(count)) {
            let start = table::Shape::slot(field.key.get(), slots.len());
            let places = (start..slots.len()).chain(0..start);
            let free = |slot: &usize| slots.get(*slot) == Some(&table::Shape::EMPTY_SLOT);
            if let Some(slot) = { places }.find(free).and_then(|slot| slots.get_mut(slot)) {
                *slot = place;
            }
        }
        let start = bundle.shape_slots.len();
        bundle.shape_slots.extend(&slots);
        Range::new(start, slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that a field has is a struct of the list or one of the plain types, and
    /// every struct is reached from the three roots.
    #[test]
    fn the_list_of_types_is_closed() {
        const PLAIN: [&str; 8] = [
            "string",
            "bool",
            "int32",
            "int64",
            "quantity",
            "int-or-string",
            "time",
            "any",
        ];
        let structs = structs();
        let mut reached = vec!["Pod", "Deployment", "CronJob"];
        let mut next = 0;
        while let Some(&name) = reached.get(next) {
            next += 1;
            let fields = structs.get(name).map_or(&[][..], Vec::as_slice);
            assert!(!fields.is_empty(), "{name} has no fields");
            for &(field, of) in fields {
                let of = of.trim_start_matches(['*', '[', ']']);
                let of = of.rsplit_once('}').map_or(of, |(_, item)| item);
                let of = of.split_once(':').map_or(of, |(plain, _)| plain);
                if !PLAIN.contains(&of) && !reached.contains(&of) {
                    assert!(of.starts_with(char::is_uppercase), "{name}.{field}: {of}");
                    reached.push(of);
                }
            }
        }
        assert_eq!(structs.len(), reached.len());
    }
}
