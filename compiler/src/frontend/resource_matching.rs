//! `MatchResources` of admission policies: lowers resource rules and label selectors to a
//! block that ends matched or unmatched, and gives the keys under which the match index
//! lists the rule (docs/spec/cel.md §6.3).

use kpvm_format::instruction::immediate::{ObjectScope, Operations};
use kpvm_format::table::KeyKind;

use crate::ir::{AtSite, Block, IndexKey, Label, Module, Operation, Site, SiteKind};
use crate::policy::match_resources::{MatchResources, ResourceRule};
use crate::source::{Location, SourceId};

/// The origin of the constraints, and how they treat missing objects.
#[derive(Debug, Clone, Copy)]
pub struct Constraints<'c> {
    /// The constraints.
    pub matching: &'c MatchResources,
    /// Its field, e.g. `matchConstraints`.
    pub part: &'c str,
    /// Whether `objectSelector` treats a missing object as one without labels, as in
    /// Kyverno's CEL policies; otherwise it is never selected.
    pub absent_has_no_labels: bool,
    /// The file.
    pub source: SourceId,
}

impl Constraints<'_> {
    /// The block.
    pub fn lower(&self, module: &mut Module) -> Block {
        let mut block = Block::new();
        let unmatched = block.label();
        self.lower_test(unmatched, &mut block, module);
        block.push(Operation::ReturnMatched);
        block.place(unmatched);
        block.push(Operation::ReturnUnmatched);
        block
    }

    /// Falls through if the constraints match, else jumps to `unmatched`.
    pub fn lower_test(&self, unmatched: Label, block: &mut Block, module: &mut Module) {
        let matching = self.matching;
        if let Some(selector) = &matching.namespace_selector {
            let site = self.site(SiteKind::Filter, None, "namespaceSelector");
            let test = Operation::MatchNamespaceLabels {
                selector: module.selector(selector),
                target: unmatched,
            };
            block.push(test.site(site));
        }
        if let Some(selector) = &matching.object_selector {
            let site = self.site(SiteKind::Filter, None, "objectSelector");
            let test = Operation::MatchObjectLabels {
                absent: self.absent_has_no_labels,
                selector: module.selector(selector),
                target: unmatched,
            };
            block.push(test.site(site));
        }
        for (index, rule) in matching.exclude_resource_rules.iter().enumerate() {
            let next = block.label();
            let place = ("excludeResourceRules", index);
            self.lower_rule(rule, place, next, block, module);
            block.jump(unmatched);
            block.place(next);
        }
        if !matching.resource_rules.is_empty() {
            let matched = block.label();
            for (index, rule) in matching.resource_rules.iter().enumerate() {
                let next = block.label();
                let place = ("resourceRules", index);
                self.lower_rule(rule, place, next, block, module);
                block.jump(matched);
                block.place(next);
            }
            block.jump(unmatched);
            block.place(matched);
        }
    }

    /// Falls through if the rule matches, else jumps to `otherwise`. The cheap and
    /// selective tests come first.
    fn lower_rule(
        &self,
        rule: &ResourceRule,
        place: (&str, usize),
        otherwise: Label,
        block: &mut Block,
        module: &mut Module,
    ) {
        let kind = match place.0 {
            "resourceRules" => SiteKind::Filter,
            _ => SiteKind::Exclusion,
        };
        let mut test = |test: Operation, field: &str| {
            let site = self.site(kind, Some(place), field);
            block.push(test.site(site));
        };
        let operations = operation_set(&rule.operations);
        let target = otherwise;
        if operations != Operations::ALL {
            test(
                Operation::MatchOperations { operations, target },
                "operations",
            );
        }
        let restricts = |texts: &[String], everything| texts.iter().all(|text| text != everything);
        if restricts(&rule.resources, "*/*") {
            let resources = module.text_list(&rule.resources);
            test(Operation::MatchResources { resources, target }, "resources");
        }
        if restricts(&rule.api_groups, "*") {
            let groups = module.text_list(&rule.api_groups);
            test(Operation::MatchApiGroups { groups, target }, "apiGroups");
        }
        if restricts(&rule.api_versions, "*") {
            let versions = module.text_list(&rule.api_versions);
            test(
                Operation::MatchApiVersions { versions, target },
                "apiVersions",
            );
        }
        let scope = match rule.scope.as_str() {
            "Namespaced" => Some(ObjectScope::Namespaced),
            "Cluster" => Some(ObjectScope::Cluster),
            _ => None,
        };
        if let Some(scope) = scope {
            test(Operation::MatchScope { scope, target }, "scope");
        }
        if !rule.resource_names.is_empty() {
            let names = module.text_list(&rule.resource_names);
            test(
                Operation::MatchResourceNames { names, target },
                "resourceNames",
            );
        }
    }

    fn site(&self, kind: SiteKind, rule: Option<(&str, usize)>, field: &str) -> Site {
        let tree = &self.matching.tree;
        let (part, parent) = match rule {
            None => (self.part.to_owned(), Some(tree)),
            Some((list, index)) => {
                let items = tree.get(list).and_then(|list| list.as_list());
                let part = format!("{}.{list}[{index}]", self.part);
                (part, items.and_then(|items| items.get(index)))
            }
        };
        let member = parent.and_then(|parent| parent.member(field));
        let span = parent.unwrap_or(tree).span;
        let location = Location {
            source: self.source,
            span: member.map_or(span, |member| member.key_span),
        };
        Site::new(kind, &part, location).written(field)
    }
}

/// Bits of the operations; `*` stands for all of them.
fn operation_set(operations: &[String]) -> Operations {
    let named = operations.iter().map(|name| match name.as_str() {
        "*" => Operations::ALL,
        name => Operations::named(name),
    });
    named.fold(Operations::NONE, Operations::with)
}

/// The names of resources under which the index lists a rule with these constraints; `*` if
/// it must be tried for every object.
pub fn index_names(matching: &MatchResources) -> Vec<String> {
    let mut names = Vec::new();
    for rule in &matching.resource_rules {
        for resource in &rule.resources {
            let name = resource.split('/').next().unwrap_or_default().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if matching.resource_rules.is_empty() || names.iter().any(|name| name == "*") {
        return vec!["*".to_owned()];
    }
    names
}

/// The keys of which an object has at least one if the constraints match it; empty if
/// nothing is known.
pub fn index_keys(matching: &MatchResources) -> Vec<IndexKey> {
    let rules = matching.resource_rules.iter();
    // A single rule without keys could match anything.
    let all: Option<Vec<Vec<IndexKey>>> = rules.map(rule_keys).collect();
    all.unwrap_or_default().concat()
}

fn rule_keys(rule: &ResourceRule) -> Option<Vec<IndexKey>> {
    let names = rule.resource_names.iter();
    // A generated name only begins with one of them.
    let names: Vec<IndexKey> = names
        .filter(|name| !name.is_empty())
        .map(|name| IndexKey {
            kind: KeyKind::Name,
            whole: false,
            text: name.clone(),
        })
        .collect();
    if !names.is_empty() && names.len() == rule.resource_names.len() {
        return Some(names);
    }
    let set = operation_set(&rule.operations);
    let keys: Vec<IndexKey> = Operations::NAMED
        .iter()
        .filter(|(_, operation)| set.has(*operation))
        .map(|(name, _)| IndexKey::whole(KeyKind::Operation, name))
        .collect();
    Some(keys).filter(|keys| !keys.is_empty() && keys.len() < Operations::NAMED.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(rules: &[(&[&str], &[&str], &[&str])]) -> MatchResources {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let rule = |(resources, operations, names): &(&[&str], &[&str], &[&str])| ResourceRule {
            resources: texts(resources),
            operations: texts(operations),
            resource_names: texts(names),
            ..ResourceRule::default()
        };
        MatchResources {
            resource_rules: rules.iter().map(rule).collect(),
            exclude_resource_rules: Vec::new(),
            namespace_selector: None,
            object_selector: None,
            tree: kpvm_syntax::tree::Tree::new(
                kpvm_syntax::tree::TreeValue::Null,
                Default::default(),
            ),
        }
    }

    /// docs/spec/cel.md §6.3: every object that the rules may match is found.
    #[test]
    fn rules_are_listed_under_what_every_matching_object_has() {
        let rows = [
            (
                matching(&[(&["pods", "pods/log"], &["CREATE", "UPDATE"], &[])]),
                "pods",
                "CREATE UPDATE",
            ),
            (
                matching(&[(&["pods"], &["*"], &[]), (&["jobs"], &["DELETE"], &[])]),
                "pods jobs",
                "",
            ),
            (matching(&[(&["*/scale"], &["DELETE"], &[])]), "*", "DELETE"),
            (
                matching(&[(&["pods"], &["DELETE"], &["a", "b"])]),
                "pods",
                "a b",
            ),
            (
                matching(&[(&["pods"], &["DELETE"], &["a", ""])]),
                "pods",
                "DELETE",
            ),
            (matching(&[]), "*", ""),
        ];
        for (matching, names, keys) in rows {
            assert_eq!(index_names(&matching).join(" "), names);
            let texts: Vec<String> = index_keys(&matching)
                .into_iter()
                .map(|key| key.text)
                .collect();
            assert_eq!(texts.join(" "), keys, "{names}");
        }
    }
}
