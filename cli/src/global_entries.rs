//! Global context entries: of a suite (docs/spec/cli.md §7.7), or GlobalContextEntry objects
//! (docs/spec/conditions.md §9.4).

use std::collections::BTreeMap;
use std::path::{Component, Path};

use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::DuplicateKeys;
use serde_json::{Map, Value};

use crate::cluster::Cluster;
use crate::expression::query;
use crate::strict::{Decoder, Text, read_documents};

/// Entries by name.
#[derive(Debug, Clone, Default)]
pub struct GlobalEntries {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    value: Value,
    /// Results by name; in entries of a suite, projections are members of the value.
    projections: Option<BTreeMap<String, Result<Value, String>>>,
}

impl GlobalEntries {
    /// Reads `globalContextEntries` and their files below the directory of the suite
    /// (docs/spec/cli.md §7.7).
    pub fn read(&mut self, tree: Option<&Tree>, directory: &Path, decoder: &mut Decoder) {
        for item in decoder.items(tree) {
            let Some((name, value)) = read_global_entry(item, directory, decoder) else {
                continue;
            };
            let entry = Entry {
                value,
                projections: None,
            };
            if name.text.trim().is_empty() {
                decoder.refuse(item.span, "expected the entry to have a name", None);
            } else if self.entries.insert(name.text.clone(), entry).is_some() {
                let message = format!("a second entry of the name `{}`", name.text);
                decoder.refuse(name.span, message, None);
            }
        }
    }

    /// Adds the data of a GlobalContextEntry object, from the objects of a cluster. Returns
    /// whether it is of the type `kubernetesResource`; others have no data here.
    pub fn add(&mut self, name: &str, object: &Value, cluster: &Cluster) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let of_kind = |field: &str| text(&format!("/spec/kubernetesResource/{field}"));
        let Some(plural) = of_kind("resource") else {
            return false;
        };
        let value = Value::Array(cluster.list(
            of_kind("group").unwrap_or_default(),
            of_kind("version").unwrap_or_default(),
            plural,
            of_kind("namespace").filter(|namespace| !namespace.is_empty()),
        ));
        let field = |projection: &Value, name: &str| {
            let text = projection.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let projections = object.pointer("/spec/projections");
        let projections = projections.and_then(Value::as_array).into_iter().flatten();
        let projections = projections.map(|projection| {
            let result = query(&field(projection, "jmesPath"), &value);
            (field(projection, "name"), result)
        });
        let entry = Entry {
            projections: Some(projections.collect()),
            value,
        };
        self.entries.insert(name.to_owned(), entry);
        true
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a reference `entry` or `entry.projection` in a context entry.
    ///
    /// # Errors
    /// Error for a missing entry or projection, or the error of the projection.
    pub fn reference(&self, name: &str) -> Result<Value, String> {
        let (name, projection) = match name.split_once('.') {
            Some((name, projection)) => (name, Some(projection)),
            None => (name, None),
        };
        let entry = self.entries.get(name);
        let entry = entry.ok_or_else(|| format!("failed to fetch entry key={name}"))?;
        match projection {
            None => Ok(entry.value.clone()),
            Some(projection) => entry.project(projection).unwrap_or_else(|| {
                let of_suite = match entry.projections {
                    Some(_) => "",
                    None => "global context mock: ",
                };
                Err(format!("{of_suite}projection \"{projection}\" not found"))
            }),
        }
    }

    /// The value of an entry for CEL; null if there is no such entry (docs/spec/cel.md §6.6).
    ///
    /// # Errors
    /// That there is no such projection, or its error.
    pub fn cel(&self, name: &str, projection: &str) -> Result<Value, String> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(Value::Null);
        };
        if projection.is_empty() {
            return Ok(entry.value.clone());
        }
        entry.project(projection).unwrap_or_else(|| {
            let of_suite = match entry.projections {
                Some(_) => String::new(),
                None => format!(" in global context entry \"{name}\""),
            };
            Err(format!("projection \"{projection}\" not found{of_suite}"))
        })
    }
}

impl Entry {
    fn project(&self, projection: &str) -> Option<Result<Value, String>> {
        match &self.projections {
            Some(projections) => projections.get(projection).cloned(),
            None => self.value.get(projection).cloned().map(Ok),
        }
    }
}

/// Name and value of one of `globalContextEntries` (docs/spec/cli.md §7.7).
fn read_global_entry(
    tree: &Tree,
    directory: &Path,
    decoder: &mut Decoder,
) -> Option<(Text, Value)> {
    let sources = ["data", "resources", "resourceFiles"];
    let known = &[
        "name",
        "data",
        "resources",
        "resourceFiles",
        "fieldPath",
        "projections",
    ];
    let fields = decoder.fields(tree, known);
    let mut given = sources
        .into_iter()
        .filter_map(|source| Some((source, fields.get(source)?)));
    let (Some((source, value)), None) = (given.next(), given.next()) else {
        let message = "expected one of data, resources and resourceFiles";
        decoder.refuse(tree.span, message, None);
        return None;
    };
    let root = match source {
        "resourceFiles" => {
            let mut objects = Vec::new();
            for file in decoder.texts(Some(value)) {
                let is_inside = Path::new(&file.text)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                if is_inside {
                    let lax = DuplicateKeys::LastWins;
                    let documents =
                        read_documents(&directory.join(&file.text), lax, file.span, decoder);
                    objects.extend(documents.iter().map(Tree::to_json));
                } else {
                    let message = format!("the file {} is outside of the suite", file.text);
                    decoder.refuse(file.span, message, None);
                }
            }
            Value::Array(objects)
        }
        _ => value.to_json(),
    };
    let name = decoder.spanned(fields.get("name"));
    let projections = decoder.items(fields.get("projections"));
    let value = if projections.is_empty() {
        match decoder.text(fields.get("fieldPath")) {
            path if path.is_empty() => root,
            path => project(&path, &root, tree, decoder),
        }
    } else {
        let mut members = Map::new();
        for projection in projections {
            let fields = decoder.fields(projection, &["name", "path"]);
            let path = decoder.text(fields.get("path"));
            let value = project(&path, &root, projection, decoder);
            members.insert(decoder.text(fields.get("name")), value);
        }
        Value::Object(members)
    };
    Some((name, value))
}

/// Result of an expression on a value; errors are reported at a location.
fn project(path: &str, root: &Value, place: &Tree, decoder: &mut Decoder) -> Value {
    query(path, root).unwrap_or_else(|error| {
        decoder.refuse(place.span, error, None);
        Value::Null
    })
}
