//! Judges rows against responses: selects the resources and rules of a row and compares
//! their results (docs/spec/cli.md §4).

use std::cell::RefCell;
use std::path::Path;

use kpvm::engine::Operation;
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_format::meta::OmittedRule;
use serde_json::Value;

use crate::computed_rule::is_computed_from;
use crate::nearest::did_you_mean;
use crate::place::Place;
use crate::resources::Resources;
use crate::scan::{Check, place_in};
use crate::strict::Text;
use crate::suite::compare::{Comparison, ExpectedFiles};
use crate::suite::document::{Expectation, ResourceSpec};
use crate::suite::objects::{Key, Keys};
use crate::suite::policies::{Fate, SuitePolicy, Variant};
use crate::suite::row::{Reason, Row};
use crate::suite::run::ROWS;

/// Response of a rule for a resource.
#[derive(Debug, Clone)]
pub struct RuleAnswer {
    /// Index of the policy in the bundle.
    pub policy: usize,
    /// Index of the rule in the policy.
    pub number: usize,
    /// Name of the rule.
    pub rule: String,
    /// `pass`, `fail`, `warn`, `error` or `skip`.
    pub status: &'static str,
    /// Message as in reports.
    pub message: String,
    /// Check that decided the result.
    pub check: Option<Check>,
}

/// Everything that rows are compared with.
pub struct Judge<'s> {
    /// The directory of the suite.
    pub directory: &'s Path,
    /// Source texts; `suite` is the index of the suite's own.
    pub sources: &'s Sources,
    /// Source of the rows.
    pub suite: SourceId,
    /// Every policy.
    pub policies: &'s [SuitePolicy],
    /// Rules that are not supported.
    pub omitted: &'s [OmittedRule],
    /// The objects.
    pub resources: &'s Resources,
    /// Their keys.
    pub keys: Keys,
    /// Cache of files with expected objects.
    pub expected: RefCell<ExpectedFiles>,
    /// Responses of all rules, by operation and resource.
    pub answers: Vec<(Option<Operation>, Vec<Vec<RuleAnswer>>)>,
    /// Reason why nothing of the suite can be judged.
    pub unsupported: Option<String>,
}

impl Judge<'_> {
    /// All rows of an entry of `results`.
    pub fn judge(&self, expectation: &Expectation) -> Vec<Row> {
        if let Some(reason) = &self.unsupported {
            return self.unsupported_rows(expectation, reason);
        }
        let mut rows = Vec::new();
        for number in self.select(expectation) {
            rows.extend(self.judge_resource(expectation, number));
        }
        rows
    }

    /// Indices of the resources of a row: all of them if it names none that exist
    /// (docs/spec/cli.md §4.2). A resource named twice is listed twice.
    fn select(&self, expectation: &Expectation) -> Vec<usize> {
        let mut selected: Vec<usize> = Vec::new();
        if let Some(names) = &expectation.resources {
            let named = names.iter().flat_map(|name| self.named(&name.text));
            let specs = expectation.resource_specs.iter();
            let specified = specs.flat_map(|spec| self.specified(spec));
            // One more than the limit is enough to reject the suite.
            selected.extend(named.chain(specified).take(ROWS + 1));
        }
        if selected.is_empty() {
            selected.extend(0..self.keys.all.len());
        }
        selected
    }

    /// Resources selected by `name` or `namespace/name`; more slashes never match.
    fn named<'k>(&'k self, written: &'k str) -> impl Iterator<Item = usize> + 'k {
        let (namespace, name) = match written.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, written),
        };
        let is_here = move |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        // Payloads are named by their path.
        let is_payload = move |key: &Key| namespace.is_some() && key.kind.is_empty();
        let payloads = self.keys.numbers(written, is_payload);
        self.keys.numbers(name, is_here).chain(payloads)
    }

    fn specified<'k>(&'k self, spec: &'k ResourceSpec) -> impl Iterator<Item = usize> + 'k {
        let is_specified =
            move |key: &Key| key.api_version == spec.api_version && key.namespace == spec.namespace;
        self.keys.numbers(&spec.name, is_specified)
    }

    /// Rows of a suite that cannot be judged at all. It may test something other than
    /// resources, so names are shown as written.
    fn unsupported_rows(&self, expectation: &Expectation, reason: &str) -> Vec<Row> {
        let unsupported = |resource: String, number: Option<usize>| Row {
            resource,
            reason: Reason::Unsupported(reason.to_owned()),
            ..self.row(expectation, number)
        };
        let names = expectation.resources.iter().flatten();
        let mut rows: Vec<Row> = names
            .map(|name| unsupported(name.text.clone(), None))
            .collect();
        if rows.is_empty() {
            let keys = self.keys.all.iter().enumerate();
            rows.extend(keys.map(|(number, key)| unsupported(key.path(), Some(number))));
        }
        if rows.is_empty() {
            rows.push(unsupported(String::new(), None));
        }
        rows
    }

    fn judge_resource(&self, expectation: &Expectation, number: usize) -> Vec<Row> {
        if let Some(reason) = self.why_unsupported(expectation) {
            let mut row = self.row(expectation, Some(number));
            row.reason = Reason::Unsupported(reason);
            return vec![row];
        }
        let mut rows = Vec::new();
        let (mut has_response, mut was_dropped) = (false, false);
        let name = expectation.policy_name();
        for (policy, index) in self.evaluated_policies() {
            if policy.name != name {
                continue;
            }
            let is_omitted =
                |rule: &&OmittedRule| rule.policy == policy.name && covers(expectation, &rule.rule);
            if let Some(omitted) = self.omitted.iter().find(is_omitted) {
                let mut row = self.row(expectation, Some(number));
                row.reason = Reason::Unsupported(omitted.reason.clone());
                rows.push(row);
                has_response = true;
            }
            let is_payload = self
                .keys
                .all
                .get(number)
                .is_some_and(|key| key.kind.is_empty());
            for variant in &policy.variants {
                if is_payload && matches!(variant, Variant::Rule { is_json: false, .. }) {
                    continue;
                }
                let mut is_answered = false;
                for answer in self.answers(expectation, number) {
                    let is_own = match variant {
                        Variant::Rules => covers(expectation, &answer.rule),
                        Variant::Rule { number, .. } => *number == answer.number,
                        Variant::Admission => true,
                    };
                    if answer.policy == index && is_own {
                        is_answered = true;
                        match self.compared(expectation, number, answer) {
                            Some(row) => rows.push(row),
                            None => was_dropped = true,
                        }
                    }
                }
                let is_plain = matches!(variant, Variant::Rule { is_plain: true, .. });
                has_response |= is_answered || !is_plain;
                if !is_answered && !is_plain && rows.is_empty() && !was_dropped {
                    let mut row = self.row(expectation, Some(number));
                    row.reason = Reason::Excluded;
                    row.hint = self.why_excluded(expectation, policy);
                    rows.push(row);
                }
            }
        }
        if !has_response {
            rows.push(self.without_response(expectation, number));
        }
        rows
    }

    /// Evaluated policies with their indices in the bundle.
    fn evaluated_policies(&self) -> impl Iterator<Item = (&SuitePolicy, usize)> {
        let all = self.policies.iter();
        let evaluated = all.filter(|policy| policy.fate == Fate::Evaluated);
        evaluated.enumerate().map(|(index, policy)| (policy, index))
    }

    fn answers(&self, expectation: &Expectation, number: usize) -> &[RuleAnswer] {
        let run = self
            .answers
            .iter()
            .find(|(operation, _)| *operation == expectation.operation);
        let of_resource = run.and_then(|(_, resources)| resources.get(number));
        of_resource.map_or(&[], Vec::as_slice)
    }

    /// Reason why nothing about the row can be judged.
    fn why_unsupported(&self, expectation: &Expectation) -> Option<String> {
        let mut named = self
            .policies
            .iter()
            .filter(|policy| policy.name == expectation.policy_name());
        let unsupported = named.find_map(|policy| match &policy.fate {
            Fate::Unsupported(reason) => Some(reason.clone()),
            _ => None,
        });
        unsupported.or_else(|| self.unsupported_mutation())
    }

    /// Rules see resources as modified by all policies of the suite, so an unsupported
    /// mutation makes every row unreliable (docs/spec/cli.md §3.1).
    fn unsupported_mutation(&self) -> Option<String> {
        self.policies.iter().find_map(|policy| match &policy.fate {
            Fate::Unsupported(reason) if policy.is_mutation() => Some(reason.clone()),
            Fate::Evaluated => {
                let omitted = self.omitted.iter().find(|rule| {
                    let mut changing = policy.changing_rules.iter();
                    rule.policy == policy.name
                        && changing.any(|name| is_computed_from(&rule.rule, name))
                })?;
                Some(omitted.reason.clone())
            }
            _ => None,
        })
    }

    /// Responses that no row covers, for suites whose rows are meant to be complete. Runs
    /// for operations that no row requests do not count.
    pub fn answers_without_row(
        &self,
        expectations: &[Expectation],
    ) -> Vec<(String, String, &'static str)> {
        let mut without = Vec::new();
        for (operation, resources) in &self.answers {
            let asking: Vec<&Expectation> = expectations
                .iter()
                .filter(|expectation| expectation.operation == *operation)
                .collect();
            for (number, answers) in resources.iter().enumerate() {
                let unasked = answers.iter().filter(|answer| {
                    let mut policies = self.evaluated_policies();
                    let policy = policies.find(|(_, index)| *index == answer.policy);
                    let name = policy.map_or("", |(policy, _)| policy.name.as_str());
                    let is_of_cel = policy.is_some_and(|(policy, _)| policy.is_of_cel());
                    !asking.is_empty()
                        && !asking.iter().any(|expectation| {
                            expectation.policy_name() == name
                                && (is_of_cel || covers(expectation, &answer.rule))
                                && self.select(expectation).contains(&number)
                        })
                });
                let key = self.keys.all.get(number).map(Key::path).unwrap_or_default();
                without.extend(
                    unasked.map(|answer| (answer.rule.clone(), key.clone(), answer.status)),
                );
            }
        }
        without
    }

    fn row(&self, expectation: &Expectation, number: Option<usize>) -> Row {
        let name = expectation.policy_name();
        let mut policies = self.policies.iter();
        let policy = policies.find(|policy| policy.name == name);
        let key = number.and_then(|number| self.keys.all.get(number));
        let resource = number.and_then(|number| self.resources.list.get(number));
        Row {
            policy: expectation.policy.text.clone(),
            policy_kind: policy.map(|policy| policy.kind.clone()),
            rule: expectation.rule.text.clone(),
            resource: key.map(Key::path).unwrap_or_default(),
            expected: expectation.result.text.clone(),
            actual: None,
            reason: Reason::Ok,
            message: String::new(),
            hint: None,
            check: None,
            resource_place: resource.map(|resource| place_in(resource, self.resources, "")),
            place: self.place(expectation),
        }
    }

    fn place(&self, expectation: &Expectation) -> Place {
        let place = self.sources.line_column(self.location(expectation.span));
        Place {
            file: self.sources.file(self.suite).name.clone(),
            line: place.line,
            column: place.column,
            end_column: None,
        }
    }

    fn location(&self, span: kpvm_syntax::tree::Span) -> Location {
        Location {
            source: self.suite,
            span,
        }
    }

    /// The row of a response (docs/spec/cli.md §4.4); `None` if it is dropped (§4.5).
    fn compared(
        &self,
        expectation: &Expectation,
        number: usize,
        answer: &RuleAnswer,
    ) -> Option<Row> {
        let mut row = self.row(expectation, Some(number));
        row.rule.clone_from(&answer.rule);
        row.actual = Some(answer.status);
        row.message.clone_from(&answer.message);
        row.check.clone_from(&answer.check);
        if let Some((reason, message)) = self.compare_objects(expectation, number) {
            row.reason = reason;
            row.message = message;
        } else if answer.status != expectation.result.text {
            row.reason = Reason::Wanted {
                expected: expectation.result.text.clone(),
                actual: answer.status.to_owned(),
            };
        }
        let is_missing = row.message.contains("not found in manifest");
        (!is_missing || expectation.fail_on_missing_resources).then_some(row)
    }

    /// Reason why the object is not the one expected by the row.
    fn compare_objects(
        &self,
        expectation: &Expectation,
        number: usize,
    ) -> Option<(Reason, String)> {
        let (resource, key) = (self.resources.list.get(number)?, self.keys.all.get(number)?);
        let actual = || resource.tree.to_json();
        let patched = expectation.patched_resources.as_ref();
        let single = expectation
            .generated_resources
            .first()
            .filter(|_| expectation.is_singular);
        for (file, what) in [(patched, "patched"), (single, "generated")] {
            let Some(file) = file else { continue };
            let comparison = self.compare_with_file(&actual(), key, file);
            if let Some(difference) = as_difference(comparison, what) {
                return Some(difference);
            }
        }
        if expectation.is_singular {
            return None;
        }
        let mut last = None;
        for file in &expectation.generated_resources {
            let comparison = self.compare_with_file(&actual(), key, file);
            let difference = as_difference(comparison, "generated")?;
            // A different object is more informative than a missing one.
            if !matches!(last, Some((Reason::ResourceDiff, _))) {
                last = Some(difference);
            }
        }
        last
    }

    fn compare_with_file(&self, actual: &Value, key: &Key, file: &Text) -> Comparison {
        let path = self.directory.join(&file.text);
        self.expected.borrow_mut().compare(actual, key, path)
    }

    /// A row for which the policy has no response (docs/spec/cli.md §4.6).
    fn without_response(&self, expectation: &Expectation, number: usize) -> Row {
        let mut row = self.row(expectation, Some(number));
        let name = expectation.policy_name();
        let mut named = self.policies.iter().filter(|policy| policy.name == name);
        let is_of_cel = named.clone().any(SuitePolicy::is_of_cel);
        let fate = named.clone().map(|policy| &policy.fate);
        for fate in fate {
            if let Fate::Invalid(error) = fate {
                row.reason = Reason::InvalidPolicy;
                row.message.clone_from(error);
                return row;
            }
        }
        row.reason = Reason::NotFound;
        row.message = "Not found".to_owned();
        row.hint = Some(match named.next().map(|policy| &policy.fate) {
            Some(Fate::Dropped(error)) => {
                format!("the document of the policy `{name}` was dropped: {error}")
            }
            Some(_) if is_of_cel => {
                format!("the policy `{name}` gives no result: it does not match the resource")
            }
            Some(_) => {
                format!("the policy `{name}` gives no result: it has no rule that validates")
            }
            None => {
                let names = self.policies.iter().map(|policy| policy.name.as_str());
                let near = did_you_mean(name, names);
                let near = near.map_or_else(String::new, |near| format!("; {near}"));
                format!("the suite has no policy named `{name}`{near}")
            }
        });
        row
    }

    /// Note about an excluded row.
    fn why_excluded(&self, expectation: &Expectation, policy: &SuitePolicy) -> Option<String> {
        let rule = &expectation.rule.text;
        if rule.is_empty() || policy.has_rule(rule) || policy.is_of_cel() {
            return Some(match rule.as_str() {
                _ if policy.is_of_cel() => {
                    "the policy gave no result: it does not match the resource".to_owned()
                }
                "" => "no rule of the policy gave a result for the resource".to_owned(),
                _ => "the rule gave no result: it does not match the resource, or excludes it"
                    .to_owned(),
            });
        }
        Some(self.no_such_rule(rule, policy))
    }

    fn no_such_rule(&self, rule: &str, policy: &SuitePolicy) -> String {
        let near = did_you_mean(rule, policy.rules.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; {near}"));
        format!(
            "the policy `{}` has no rule named `{rule}`{near}",
            policy.name
        )
    }

    /// Warnings about a row that cannot mean what was intended: unknown names, results that
    /// no rule has.
    pub fn warnings(&self, expectation: &Expectation) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let mut warn = |code, text: &Text, message: String, hint: Option<String>| {
            let span = if text.text.is_empty() {
                expectation.span
            } else {
                text.span
            };
            let mut warning = Diagnostic::warning(code, message, self.location(span));
            warning.hint = hint;
            warnings.push(warning);
        };
        let result = &expectation.result;
        let results = ["pass", "fail", "skip", "warn", "error"];
        if !results.contains(&result.text.as_str()) {
            let message = match result.text.as_str() {
                "" => "the row expects no result".to_owned(),
                text => format!("no rule ever has the result `{text}`"),
            };
            let hint = did_you_mean(&result.text, results)
                .unwrap_or_else(|| format!("expected one of {}", results.join(", ")));
            warn("unknown-result", result, message, Some(hint));
        }
        let name = expectation.policy_name();
        let rule = &expectation.rule;
        let mut named = self.policies.iter().filter(|policy| policy.name == name);
        if let Some(policy) = named.clone().find(|policy| policy.fate == Fate::Evaluated)
            && !rule.text.is_empty()
            && !policy.is_of_cel()
            && !named.any(|policy| policy.has_rule(&rule.text))
        {
            let hint = "rows of such a rule pass whatever they expect".to_owned();
            warn(
                "unknown-rule",
                rule,
                self.no_such_rule(&rule.text, policy),
                Some(hint),
            );
        }
        if self.unsupported.is_some() {
            return warnings;
        }
        if self.keys.all.is_empty() {
            let message = "the row tests nothing: the suite has no resource";
            warn("no-resource", &expectation.policy, message.to_owned(), None);
            return warnings;
        }
        if let Some(message) = self.no_such_kind(expectation) {
            let hint = "kinds of rows are not compared".to_owned();
            warn("unknown-kind", &expectation.kind, message, Some(hint));
        }
        for resource in expectation.resources.iter().flatten() {
            if self.named(&resource.text).next().is_none() {
                let (message, hint) = self.no_such_resource(&resource.text);
                warn("unknown-resource", resource, message, hint);
            }
        }
        for spec in &expectation.resource_specs {
            let is_there = self.specified(spec).next().is_some();
            if expectation.resources.is_none() {
                let message = "`resourceSpecs` without `resources` are not looked at";
                let hint = "write `resources: []` beside them".to_owned();
                let text = Text {
                    text: spec.name.clone(),
                    span: spec.span,
                };
                warn("unused-spec", &text, message.to_owned(), Some(hint));
            } else if !is_there {
                let message = format!(
                    "the suite has no resource {} {}/{}",
                    spec.api_version, spec.namespace, spec.name
                );
                let text = Text {
                    text: spec.name.clone(),
                    span: spec.span,
                };
                warn("unknown-resource", &text, message, None);
            }
        }
        warnings
    }

    /// A row whose resources all have another kind than the row says.
    fn no_such_kind(&self, expectation: &Expectation) -> Option<String> {
        let kind = &expectation.kind.text;
        let names = expectation.resources.iter().flatten();
        let numbers = names.flat_map(|name| self.named(&name.text));
        let keys: Vec<&Key> = numbers
            .filter_map(|number| self.keys.all.get(number))
            .collect();
        let first = &keys.first().filter(|_| !kind.is_empty())?.kind;
        let is_there = keys.iter().any(|key| key.kind == *kind);
        (!is_there).then(|| format!("no resource of the row is a {kind}; the first is a {first}"))
    }

    fn no_such_resource(&self, written: &str) -> (String, Option<String>) {
        let (namespace, name) = match written.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, written),
        };
        let of_name: Vec<&Key> = self
            .keys
            .all
            .iter()
            .filter(|key| key.name == name)
            .collect();
        let places: Vec<&str> = of_name.iter().map(|key| key.namespace.as_str()).collect();
        match (namespace, places.as_slice()) {
            (Some(namespace), [first, ..]) => {
                let place = match *first {
                    "" => "it is cluster-scoped".to_owned(),
                    first => format!("it is in the namespace `{first}`"),
                };
                let message = format!(
                    "no resource named `{name}` is in the namespace `{namespace}`: {place}"
                );
                (message, None)
            }
            _ => {
                let near = did_you_mean(name, self.keys.all.iter().map(|key| key.name.as_str()));
                let message = format!("the suite has no resource named `{written}`");
                let all = "where none of a row's resources exists, all resources are tested";
                (message, Some(near.unwrap_or_else(|| all.to_owned())))
            }
        }
    }
}

/// Whether a row covers a rule.
fn covers(expectation: &Expectation, rule: &str) -> bool {
    let written = &expectation.rule.text;
    written.is_empty() || is_computed_from(rule, written)
}

fn as_difference(comparison: Comparison, what: &str) -> Option<(Reason, String)> {
    match comparison {
        Comparison::Same => None,
        Comparison::Different(lines) => {
            let head = format!("the resource is not the {what} resource that the test expects:");
            Some((
                Reason::ResourceDiff,
                format!("{head}\n{}", lines.join("\n")),
            ))
        }
        Comparison::Missing(error) | Comparison::Unreadable(error) => {
            Some((Reason::ResourceError, error))
        }
    }
}
