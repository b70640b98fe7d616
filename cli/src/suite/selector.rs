//! `--test-case-selector`: which rows are run (docs/spec/cli.md §4.7).

use kpvm_semantics::wildcard;

use crate::strict::Text;
use crate::suite::document::Expectation;

/// Patterns that a row must match, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    policies: Vec<String>,
    rules: Vec<String>,
    resources: Vec<String>,
    /// Whether part of the text was invalid.
    has_errors: bool,
}

impl Selector {
    /// Parses `policy=…,rule=…,resource=…`. Invalid parts are returned as errors; rows then
    /// keep the resources they name.
    pub fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut selector, mut errors) = (Self::default(), Vec::new());
        for part in text.split(',') {
            let mut sides = part.split('=');
            let (Some(key), Some(value), None) = (sides.next(), sides.next(), sides.next()) else {
                errors.push(format!(
                    "Invalid test-case-selector argument ({part}). Parameter must be in the form `<key>=<value>`."
                ));
                continue;
            };
            let value = value.to_owned();
            match key.trim() {
                "policy" => selector.policies.push(value),
                "rule" => selector.rules.push(value),
                "resource" => selector.resources.push(value),
                _ => errors.push(format!(
                    "Invalid test-case-selector ({part}). Parameter can only be policy, rule or resource."
                )),
            }
        }
        selector.has_errors = !errors.is_empty();
        (selector, errors)
    }

    /// Selected rows. Requested resources replace those that a row names.
    pub fn select(&self, rows: Vec<Expectation>) -> Vec<Expectation> {
        let replacement: Vec<&String> = self
            .resources
            .iter()
            .take_while(|resource| !self.has_errors && *resource != "*")
            .collect();
        let replaced = |mut row: Expectation| {
            if !replacement.is_empty() {
                let name = |resource: &&String| Text {
                    text: (*resource).clone(),
                    span: row.span,
                };
                row.resources = Some(replacement.iter().map(name).collect());
            }
            row
        };
        let rows = rows.into_iter().filter(|row| self.passes(row));
        rows.map(replaced).collect()
    }

    fn passes(&self, row: &Expectation) -> bool {
        let all = |patterns: &[String], text: &str| {
            text.is_empty()
                || patterns
                    .iter()
                    .all(|pattern| wildcard::matches(pattern, text))
        };
        let names = row.resources.as_deref().unwrap_or(&[]);
        let resources = names.is_empty()
            || self.resources.iter().all(|pattern| {
                let mut names = names.iter();
                names.any(|name| wildcard::matches(pattern, &name.text))
            });
        all(&self.policies, &row.policy.text) && all(&self.rules, &row.rule.text) && resources
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::Decoder;
    use crate::suite::document::read_documents;
    use kpvm_compiler::source::SourceId;

    /// Policy and resources of the rows that remain of three.
    fn selected(selector: &str) -> (Vec<String>, usize) {
        let text = "apiVersion: c/v1\nkind: Test\nresults:\n- {policy: p, rule: r, result: pass, resources: [web-1, a/db]}\n\
                    - {policy: x/q, rule: r, result: pass}\n- {policy: q, result: pass, resources: [db]}\n";
        let mut decoder = Decoder::new("test", SourceId(0));
        let rows = read_documents(text, SourceId(0), &mut decoder)
            .remove(0)
            .results;
        let (selector, errors) = Selector::parse(selector);
        let shown = |row: &Expectation| {
            let names = row
                .resources
                .iter()
                .flatten()
                .map(|name| name.text.as_str());
            format!(
                "{}:{}",
                row.policy.text,
                names.collect::<Vec<_>>().join("+")
            )
        };
        (
            selector.select(rows).iter().map(shown).collect(),
            errors.len(),
        )
    }

    /// docs/spec/cli.md §4.7 and §14, cases 32 and 33.
    #[test]
    fn rows_are_filtered_and_their_resources_replaced() {
        let all = vec!["p:web-1+a/db", "x/q:", "q:db"];
        for (selector, expected, errors) in [
            ("policy=*,rule=*,resource=*", all.clone(), 0),
            ("policy=p", vec!["p:web-1+a/db"], 0),
            ("policy=q", vec!["q:db"], 0),
            ("policy=?", vec!["p:web-1+a/db", "q:db"], 0),
            ("rule=r", all.clone(), 0),
            ("rule=s", vec!["q:db"], 0),
            ("resource=web*", vec!["p:web*", "x/q:web*"], 0),
            ("resource=db", vec!["x/q:db", "q:db"], 0),
            (" policy =q,resource=db", vec!["q:db"], 0),
            ("polcy=x", all.clone(), 1),
            ("policy", all.clone(), 1),
            ("policy=p=q", all, 1),
            ("resource=db,x", vec!["x/q:", "q:db"], 1),
        ] {
            let (rows, found) = selected(selector);
            assert_eq!(
                (rows, found),
                (expected.iter().map(ToString::to_string).collect(), errors),
                "{selector}"
            );
        }
    }
}
