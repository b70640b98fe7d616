//! The shapes of Kubernetes' types, from `kubernetes_types.txt`: each goes into the
//! bundle once, when a rule first needs it, with everything inside it in front of it.

use std::collections::HashMap;

use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, NONE, Range, ShapeKind};
use zerocopy::little_endian::U32;

use crate::lower::Pools;

/// The list of types; its first lines say how to read it.
const TYPES: &str = include_str!("kubernetes_types.txt");

/// Numbers of shapes by the text of their type.
pub(super) type Shapes = HashMap<String, u32>;

/// The lines of a struct's fields: name with the embedded structs in front, and type.
fn fields_of(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    TYPES
        .lines()
        .skip_while(move |line| *line != name)
        .skip(1)
        .map_while(|line| line.strip_prefix("  ")?.split_once(' '))
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
        if let Some(&number) = self.pod_security.shapes.get(of) {
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
            fields,
        };
        self.bundle.shapes.push(entry);
        let number = self.bundle.shapes.len() as u32 - 1;
        self.pod_security.shapes.insert(of.to_owned(), number);
        number
    }

    fn struct_fields(&mut self, name: &str) -> Range {
        let mut fields: Vec<table::ShapeField> = fields_of(name)
            .map(|(field, of)| {
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
        fields.sort_by_key(|field| field.key.get());
        let start = self.bundle.shape_fields.len();
        self.bundle.shape_fields.extend(&fields);
        Range::new(start, fields.len())
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
        let mut reached = vec!["Pod", "Deployment", "CronJob"];
        let mut next = 0;
        while let Some(&name) = reached.get(next) {
            next += 1;
            let mut fields = fields_of(name).peekable();
            assert!(fields.peek().is_some(), "{name} has no fields");
            for (field, of) in fields {
                let of = of.trim_start_matches(['*', '[', ']']);
                let of = of.rsplit_once('}').map_or(of, |(_, item)| item);
                let of = of.split_once(':').map_or(of, |(plain, _)| plain);
                if !PLAIN.contains(&of) && !reached.contains(&of) {
                    assert!(of.starts_with(char::is_uppercase), "{name}.{field}: {of}");
                    reached.push(of);
                }
            }
        }
        let is_struct = |line: &&str| line.starts_with(char::is_uppercase);
        assert_eq!(TYPES.lines().filter(is_struct).count(), reached.len());
    }
}
