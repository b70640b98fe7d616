//! Context entries (docs/spec/conditions.md §8 and §9): each becomes a variable and a
//! loader, a block that runs when a query first mentions the variable's name.

use kpvm_format::instruction::immediate::ForeachDepth;
use kpvm_format::instruction::immediate::Provision;
use kpvm_syntax::tree::{Span, Tree, TreeValue};

use super::emitter::Emitter;
use super::scope::Scope;
use super::template::has_variable;
use crate::ir::{Block, Entry, EntryId, Label, Module, Operation, Register, SlotId};
use crate::source::{Location, SourceId};
use kpvm_syntax::jmespath::mentions;

/// The entries of one level: those of a rule or of a foreach block.
pub struct Entries {
    /// The variables that they set, each once.
    pub slots: Vec<SlotId>,
    /// Number of each entry, in order.
    pub numbers: Vec<EntryId>,
    /// The loaders, in order.
    pub loaders: Vec<(EntryId, Block)>,
}

/// An error in an entry that cannot be lowered.
pub struct EntryError {
    /// The error.
    pub message: String,
    /// Its place.
    pub span: Span,
}

/// Adds the entries to `scope` and lowers their loaders. Nested entries, those of a foreach
/// block, are active only while an element is bound.
///
/// # Errors
/// If an entry has no name or no source.
pub fn lower_entries(
    entries: &[Tree],
    source: SourceId,
    nested: bool,
    scope: &mut Scope,
    module: &mut Module,
) -> Result<Entries, EntryError> {
    let mut lowered = Entries {
        slots: Vec::new(),
        numbers: Vec::new(),
        loaders: Vec::new(),
    };
    for entry in entries {
        let name = entry.get("name").and_then(Tree::as_str).unwrap_or_default();
        let slot = scope.slot(name).unwrap_or_else(|| module.slot(name));
        if !lowered.slots.contains(&slot) {
            lowered.slots.push(slot);
        }
        scope.add_slot(name, slot);
        let volatile = tree_mentions(entry, "element");
        let number = module.entries.push(Entry {
            slot,
            loader: None,
            is_nested: nested,
            location: Location {
                source,
                span: entry.span,
            },
        });
        scope.add_entry(name, number, volatile);
        lowered.numbers.push(number);
    }
    for (entry, &number) in entries.iter().zip(&lowered.numbers) {
        let mut emitter = Emitter::new(source, scope.for_loader(number), module);
        emitter.loader(entry)?;
        lowered.loaders.push((number, emitter.block));
    }
    Ok(lowered)
}

fn tree_mentions(tree: &Tree, name: &str) -> bool {
    match &tree.value {
        TreeValue::String(text) => mentions(text, name) || text.contains(name),
        TreeValue::List(items) => items.iter().any(|item| tree_mentions(item, name)),
        TreeValue::Map(members) => members
            .iter()
            .any(|member| tree_mentions(&member.value, name)),
        TreeValue::Null | TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) => false,
    }
}

/// How Kyverno shows a value in an entry's error: with Go's `%s`, which is meant for texts.
fn shown(tree: &Tree) -> String {
    match &tree.value {
        TreeValue::String(text) => text.to_string(),
        TreeValue::Null => "<nil>".into(),
        TreeValue::Bool(value) => format!("%!s(bool={value})"),
        TreeValue::Int(value) => shown_number(*value as f64),
        TreeValue::Float(value) => shown_number(*value),
        TreeValue::List(items) => format!(
            "[{}]",
            items.iter().map(shown).collect::<Vec<_>>().join(" ")
        ),
        TreeValue::Map(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|member| format!("{}:{}", member.key, shown(&member.value)))
                .collect();
            members.sort();
            format!("map[{}]", members.join(" "))
        }
    }
}

fn shown_number(value: f64) -> String {
    let mut text = String::from("%!s(float64=");
    kpvm_semantics::number::format_v_float(value, &mut text);
    text.push(')');
    text
}

impl Emitter<'_> {
    fn loader(&mut self, entry: &Tree) -> Result<(), EntryError> {
        let failed = self.block.label();
        let sources = [
            "configMap",
            "apiCall",
            "globalReference",
            "imageRegistry",
            "variable",
        ];
        let source = sources.iter().find_map(|&kind| {
            entry
                .get(kind)
                .filter(|source| !source.is_null())
                .map(|source| (kind, source))
        });
        let name = entry.get("name").and_then(Tree::as_str).unwrap_or_default();
        let Some((kind, source)) = source else {
            return Err(EntryError {
                message: format!(
                    "expected the context entry '{name}' to have one of {}",
                    sources.join(", ")
                ),
                span: entry.span,
            });
        };
        let external = match kind {
            "configMap" => Some(Provision::ConfigMap),
            "apiCall" => Some(Provision::ApiCall),
            "globalReference" => Some(Provision::GlobalReference),
            "imageRegistry" => Some(Provision::ImageRegistry),
            _ => None,
        };
        if let Some(provision) = external {
            // If the host has no such data, the entry is treated as if it were not written.
            let (provided, absent) = (self.block.label(), self.block.label());
            self.block.push(Operation::JumpUnlessProvided {
                provision,
                target: absent,
            });
            self.block.jump(provided);
            self.block.place(absent);
            self.block.push(Operation::ReturnNothing);
            self.block.place(provided);
        }
        match kind {
            "variable" => self.variable_loader(name, source, failed),
            "configMap" => self.config_map_loader(name, source, failed),
            "apiCall" => self.api_call_loader(name, source, failed),
            "globalReference" => self.global_reference_loader(name, source, failed),
            _ => self.image_registry_loader(name, source, failed),
        }
        self.flush_cold();
        self.block.place(failed);
        self.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(0),
        });
        Ok(())
    }

    /// docs/spec/conditions.md §9.1.
    fn variable_loader(&mut self, name: &str, variable: &Tree, failed: Label) {
        let value = variable.get("value").filter(|value| !value.is_null());
        let default = variable.get("default").filter(|default| !default.is_null());
        let path = variable
            .get("jmesPath")
            .and_then(Tree::as_str)
            .filter(|path| !path.is_empty());
        let substitution_failed = |this: &mut Self, what: &Tree| {
            let prefix = format!(
                "failed to substitute variables in context entry {name} {}: ",
                shown(what)
            );
            this.wrapping(&prefix, false, failed)
        };
        let path_text = path
            .filter(|path| has_variable(path))
            .and_then(|_| variable.get("jmesPath"))
            .map(|tree| {
                let wrapped = substitution_failed(self, tree);
                let text = self.document(tree, wrapped);
                let error = format!(
                    "jmespath value must be a string {name} {}: <nil>",
                    shown(tree)
                );
                let error = self.module.text(&error);
                let checked = self.block.register();
                self.block.push(Operation::RequireKeyText {
                    dst: checked,
                    src: text,
                    text: error,
                    typed: false,
                    target: failed,
                });
                checked
            });
        let default = default.map(|default| {
            let failed = substitution_failed(self, default);
            self.document(default, failed)
        });
        let result = self.block.register();
        let end = self.block.label();
        let value = value.map(|value| {
            let failed = substitution_failed(self, value);
            self.document(value, failed)
        });
        match (path, value) {
            (None, Some(value)) => self.assign(result, value),
            (None, None) => {
                let nothing = default.unwrap_or_else(|| self.constant(&TreeValue::Null));
                self.assign(result, nothing);
            }
            (Some(path), value) => {
                let apply_failed = self.block.label();
                let found = match (path_text, value) {
                    (Some(text), value) => self.computed_path(text, value, apply_failed),
                    (None, Some(value)) => self.path_over_value(path, value, apply_failed),
                    (None, None) => {
                        // Only what is between braces is rewritten on DELETE.
                        let rewrites = std::mem::replace(&mut self.scope.rewrites_delete, false);
                        let found = self.query(path, apply_failed);
                        self.scope.rewrites_delete = rewrites;
                        found
                    }
                };
                self.assign(result, found);
                if let (Some(default), None) = (default, value) {
                    let use_default = self.block.label();
                    self.block.push(Operation::JumpIfNull {
                        src: result,
                        target: use_default,
                    });
                    self.block.jump(end);
                    self.block.place(use_default);
                    self.assign(result, default);
                }
                self.block.jump(end);
                self.flush_cold();
                self.block.place(apply_failed);
                let (use_default, no_default) = (self.block.label(), self.block.label());
                if let Some(default) = default {
                    // A default whose value is null counts as absent.
                    self.block.push(Operation::JumpIfNull {
                        src: default,
                        target: no_default,
                    });
                    self.block.jump(use_default);
                    self.block.place(no_default);
                }
                match path_text {
                    Some(path) => {
                        self.block.push(Operation::WrapPath {
                            path,
                            target: failed,
                        });
                    }
                    None => {
                        let text = format!("failed to apply jmespath {path} to variable <nil>: ");
                        let text = self.module.text(&text);
                        self.block.push(Operation::WrapError {
                            query: false,
                            text,
                            target: failed,
                        });
                    }
                }
                if let Some(default) = default {
                    self.block.place(use_default);
                    self.assign(result, default);
                }
            }
        }
        self.block.place(end);
        self.return_stored(name, result, failed);
    }

    /// The value as the context keeps it; null is an error.
    fn return_stored(&mut self, name: &str, result: Register, failed: Label) {
        let nothing = self.block.label();
        self.block.push(Operation::JumpIfNull {
            src: result,
            target: nothing,
        });
        let prefix = format!("failed to add context entry for variable {name}: ");
        let not_stored = self.wrapping(&prefix, false, failed);
        let stored = self.load(|dst| Operation::ToFloats {
            dst,
            src: result,
            target: not_stored,
        });
        self.block.push(Operation::ReturnValue { src: stored });
        self.block.place(nothing);
        self.fail(
            &format!("failed to add context entry for variable {name} since it evaluated to nil"),
            failed,
        );
    }

    /// The value merged with what the context has under the name: data from outside does
    /// not replace a map, a variable does.
    fn return_added(&mut self, name: &str, value: Register, failed: Label) {
        let added = self.load(|dst| Operation::ToFloats {
            dst,
            src: value,
            target: failed,
        });
        let merged = self.block.register();
        self.assign(merged, added);
        if let Some(slot) = self.scope.slot(name) {
            let alone = self.block.label();
            let existing = self.load(|dst| Operation::LoadVariable {
                dst,
                slot,
                target: alone,
            });
            let merge = Operation::MergeStored {
                dst: merged,
                existing,
                added,
            };
            self.block.push(merge);
            self.block.place(alone);
        }
        self.block.push(Operation::ReturnValue { src: merged });
    }

    /// An expression over a value of its own instead of the context.
    fn path_over_value(&mut self, path: &str, value: Register, on_error: Label) -> Register {
        match kpvm_syntax::jmespath::parse(path) {
            Err(error) => self.fail(
                &format!(
                    "failed to compile JMESPath: {path}, error: {}",
                    error.message
                ),
                on_error,
            ),
            Ok(expression) => self.expression(
                &expression,
                super::expression::Current::Value(value),
                on_error,
                false,
            ),
        }
    }

    /// FALLBACK: a path with variables in it is an expression known only at run time.
    fn computed_path(
        &mut self,
        text: Register,
        value: Option<Register>,
        on_error: Label,
    ) -> Register {
        let result = self.block.register();
        match value {
            None => {
                self.block.push(Operation::EvaluateQuery {
                    dst: result,
                    src: text,
                    target: on_error,
                });
            }
            Some(value) => self.block.push(Operation::EvaluateOver {
                dst: result,
                src: text,
                over: value,
                target: on_error,
            }),
        }
        result
    }

    /// Fetches outside data; if the host has none of that kind the variable stays unset, so
    /// that values given for it by name are used.
    fn fetch(&mut self, request: Register, provision: Provision, on_error: Label) -> Register {
        let result = self.block.register();
        self.block.push(Operation::Fetch {
            dst: result,
            request,
            provision,
            target: on_error,
        });
        let set = self.block.label();
        let unset = self.block.label();
        self.block.push(Operation::JumpUnlessSet {
            src: result,
            target: unset,
        });
        self.block.jump(set);
        self.block.place(unset);
        self.block.push(Operation::ReturnNothing);
        self.block.place(set);
        result
    }

    /// Applies the `jmesPath` of an entry, if any, to the fetched data.
    fn apply_path(
        &mut self,
        name: &str,
        source: &Tree,
        value: Register,
        on_error: Label,
    ) -> Register {
        let tree = source.get("jmesPath");
        let Some((tree, path)) = tree.and_then(|tree| Some((tree, tree.as_str()?))) else {
            return value;
        };
        if path.is_empty() {
            return value;
        }
        let prefix = format!("failed to apply JMESPath {path} for context entry {name}: ");
        let failed = self.wrapping(&prefix, false, on_error);
        if has_variable(path) {
            let prefix =
                format!("failed to substitute variables in context entry {name} JMESPath {path}: ");
            let substitution_failed = self.wrapping(&prefix, false, on_error);
            let text = self.document(tree, substitution_failed);
            return self.computed_path(text, Some(value), failed);
        }
        match kpvm_syntax::jmespath::parse(path) {
            Err(error) => self.fail(&error.message, failed),
            Ok(expression) => {
                let over = super::expression::Current::Value(value);
                self.expression(&expression, over, failed, false)
            }
        }
    }

    /// docs/spec/conditions.md §9.2.
    fn config_map_loader(&mut self, name: &str, source: &Tree, failed: Label) {
        let prefix = format!("failed to retrieve config map for context entry {name}: ");
        let failed = self.wrapping(&prefix, false, failed);
        let [config_name, namespace] =
            ["name", "namespace"].map(|key| self.config_map_part(name, key, source, failed));
        // The entry's name is for errors.
        let entry = self.constant(&TreeValue::String(name.into()));
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        for part in [entry, config_name, namespace] {
            let push = Operation::ListPush { list, src: part };
            self.block.push(push);
        }
        let keys = self
            .module
            .text_list(&["entry", "name", "namespace"].map(str::to_owned));
        let request = self.load(|dst| Operation::MapEnd { dst, list, keys });
        self.block.leave_list();
        let value = self.fetch(request, Provision::ConfigMap, failed);
        self.return_added(name, value, failed);
    }

    /// The name or the namespace of a ConfigMap, which must be a text.
    fn config_map_part(&mut self, name: &str, key: &str, source: &Tree, failed: Label) -> Register {
        let text = source.get(key).and_then(Tree::as_str).unwrap_or_default();
        let prefix =
            format!("failed to substitute variables in context {name} configMap.{key} {text}: ");
        let substitution_failed = self.wrapping(&prefix, false, failed);
        let written = Tree::new(TreeValue::String(text.into()), source.span);
        let value = self.document(&written, substitution_failed);
        if !has_variable(text) {
            return value;
        }
        let error = self.module.text(&format!("{prefix}expected string, got "));
        let checked = self.block.register();
        let require = Operation::RequireKeyText {
            dst: checked,
            src: value,
            text: error,
            typed: true,
            target: failed,
        };
        self.block.push(require);
        checked
    }

    /// docs/spec/conditions.md §9.3.
    fn api_call_loader(&mut self, name: &str, source: &Tree, failed: Label) {
        let url = source
            .get("urlPath")
            .and_then(Tree::as_str)
            .unwrap_or_default();
        let not_fetched = self.wrapping("failed to fetch data for APICall: ", false, failed);
        let not_stored = self.wrapping("failed to store data for APICall: ", false, failed);
        let prefix = format!("failed to substitute variables in context entry {name} {url}: ");
        let substitution_failed = self.wrapping(&prefix, false, not_fetched);
        let request = self.document(
            &without(source, &["jmesPath", "default"]),
            substitution_failed,
        );
        let default = source.get("default").filter(|default| !default.is_null());
        let fetch_failed = self.block.label();
        let value = self.fetch(request, Provision::ApiCall, fetch_failed);
        let result = self.apply_path(name, source, value, not_stored);
        let prefix = format!("failed to marshall APICall data for context entry {name}: ");
        let not_written = self.wrapping(&prefix, false, not_stored);
        self.return_added(name, result, not_written);
        self.block.place(fetch_failed);
        match default {
            Some(default) => {
                let value = self.constant(&default.value);
                self.return_added(name, value, not_stored);
            }
            None => {
                let text = self.module.text("failed to fetch data for APICall: ");
                self.block.push(Operation::WrapError {
                    query: false,
                    text,
                    target: failed,
                });
            }
        }
    }

    /// docs/spec/conditions.md §9.4.
    fn global_reference_loader(&mut self, name: &str, source: &Tree, failed: Label) {
        if self.scope.is_confined {
            let error = format!(
                "context entry {name}: globalReference is not allowed in namespaced policies"
            );
            self.fail(&error, failed);
            return;
        }
        let prefix = format!("failed to marshal APICall data for context entry {name}: ");
        let failed = self.wrapping(&prefix, false, failed);
        let request = self.document(&without(source, &["jmesPath"]), failed);
        let value = self.fetch(request, Provision::GlobalReference, failed);
        let result = self.apply_path(name, source, value, failed);
        self.return_added(name, result, failed);
    }

    /// docs/spec/conditions.md §9.5.
    fn image_registry_loader(&mut self, name: &str, source: &Tree, failed: Label) {
        let reference = source
            .get("reference")
            .and_then(Tree::as_str)
            .unwrap_or_default();
        let prefix =
            format!("failed to substitute variables in context entry {name} {reference}: ");
        let substitution_failed = self.wrapping(&prefix, false, failed);
        let request = self.document(&without(source, &["jmesPath"]), substitution_failed);
        let value = self.fetch(request, Provision::ImageRegistry, failed);
        let result = self.apply_path(name, source, value, failed);
        self.return_added(name, result, failed);
    }
}

/// A map without some of its keys.
fn without(tree: &Tree, keys: &[&str]) -> Tree {
    let members = tree.as_map().unwrap_or_default();
    let kept = members
        .iter()
        .filter(|member| !keys.contains(&&*member.key))
        .cloned()
        .collect();
    Tree::new(TreeValue::Map(kept), tree.span)
}
