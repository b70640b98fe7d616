//! The shapes of Kubernetes' types, from `kubernetes_types.txt`: each is added to the
//! bundle once, when a rule first needs it, after all shapes that it contains.

use std::collections::HashMap;
use std::sync::LazyLock;

use kpvm_format::table::ShapeKind;

use crate::ir::{Module, Shape, ShapeField, ShapeId};

/// The list of types; its first lines describe the format.
const TYPES: &str = include_str!("kubernetes_types.txt");

/// A field: its name, prefixed by the embedded structs, and its type.
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

/// The type of a list's items or a map's values, or what they point to; `None` for other
/// types.
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

impl Module {
    /// The shape of a struct, or of another type of the list.
    pub(super) fn shape(&mut self, of: &str) -> ShapeId {
        if let Some(&known) = self.interned.shapes.get(of) {
            return known;
        }
        let item = item_of(of).map(|item| self.shape(item));
        let kind = kind_of(of);
        let fields = match kind {
            ShapeKind::Struct => self.struct_fields(of),
            _ => Vec::new(),
        };
        let id = self.shapes.push(Shape {
            kind,
            name: go_name(of),
            item,
            fields,
        });
        self.interned.shapes.insert(of.to_owned(), id);
        id
    }

    fn struct_fields(&mut self, name: &str) -> Vec<ShapeField> {
        let fields = STRUCTS.get(name).map_or(&[][..], Vec::as_slice);
        let field = |&(field, of): &Field| {
            let (embedded, key) = match field.rfind('.') {
                Some(dot) => field.split_at(dot + 1),
                None => ("", field),
            };
            ShapeField {
                key: self.symbol(key),
                shape: self.shape(of.trim_start_matches('*')),
                is_nullable: of.starts_with(['*', '[', '{']),
                embedded: embedded.to_owned(),
            }
        };
        fields.iter().map(field).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of every field is a struct of the list or one of the plain types, and every
    /// struct is reachable from the three roots.
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
