//! Cases out of `kyverno-test.yaml` suites: every policy of a suite on every resource of
//! it, as `kyverno test` would present them. The rows of the suite do not matter here;
//! what is expected is what Kyverno answers.

use std::path::Path;

use kpvm::engine::Operation;
use kpvm::tree::Tree;
use kpvm::yaml::DuplicateKeys;
use serde_json::{Value, json};

use crate::case::value_of;
use crate::suites::{
    Resource, Step, Stop, User, Values, expand, list, read_documents, read_resources, read_rows,
    rewritten, text, texts,
};

/// The cases of one file, and for each suite of it that gives none the reason.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Cases with their `id`.
    pub cases: Vec<Value>,
    /// Why a suite was left out.
    pub left_out: Vec<String>,
}

/// Reads the suites of a file.
pub fn read(file: &Path) -> Recorded {
    let mut recorded = Recorded::default();
    let directory = file.parent().unwrap_or(Path::new("."));
    let suites = match read_documents(file, DuplicateKeys::Refuse) {
        Ok(suites) => suites,
        Err(stop) => {
            recorded.left_out.push(reason(stop));
            return recorded;
        }
    };
    for suite in &suites {
        match cases(suite, directory) {
            Ok(cases) => recorded.cases.extend(cases),
            Err(stop) => recorded.left_out.push(reason(stop)),
        }
    }
    for (number, case) in recorded.cases.iter_mut().enumerate() {
        case["id"] = format!("{}#{number}", directory.display()).into();
    }
    recorded
}

fn reason(stop: Stop) -> String {
    match stop {
        Stop::Unsupported(reason) | Stop::Broken(reason) => reason,
    }
}

fn cases(suite: &Tree, directory: &Path) -> Step<Vec<Value>> {
    let outside = [
        "apiCallResponses",
        "clusterResources",
        "globalContextEntries",
        "exceptions",
    ];
    if let Some(key) = outside.iter().find(|key| suite.get(key).is_some()) {
        return Err(Stop::Unsupported(format!("`{key}` of a test")));
    }
    let values = Values::read(suite, directory)?;
    let user = User::read(suite, directory)?;
    let resources = read_resources(suite, directory)?;
    let mut operations: Vec<Option<Operation>> = vec![None];
    for row in read_rows(suite) {
        let operation = row.operation.as_deref().and_then(Operation::parse);
        if !operations.contains(&operation) {
            operations.push(operation);
        }
    }
    let mut cases = Vec::new();
    for path in texts(suite, "policies") {
        for file in expand(directory.join(path), true) {
            for document in read_documents(&file, DuplicateKeys::LastWins)? {
                let kind = text(&document, "kind");
                if !["ClusterPolicy", "Policy"].contains(&kind.as_str()) {
                    return Err(Stop::Unsupported(format!("{kind} as a policy")));
                }
                for resource in &resources {
                    for operation in &operations {
                        let about = About {
                            values: &values,
                            user: user.as_ref(),
                            resource,
                            operation: *operation,
                        };
                        about.add_cases(&document, &mut cases)?;
                    }
                }
            }
        }
    }
    Ok(cases)
}

/// What a policy is evaluated on.
struct About<'a> {
    values: &'a Values,
    user: Option<&'a User>,
    resource: &'a Resource,
    /// `None`: that of the values.
    operation: Option<Operation>,
}

impl About<'_> {
    /// One case for each set of values that rules of the policy have.
    fn add_cases(&self, policy: &Tree, cases: &mut Vec<Value>) -> Step<()> {
        let metadata = policy.get("metadata");
        let name = metadata.map_or_else(String::new, |metadata| text(metadata, "name"));
        let rules = policy
            .get("spec")
            .map_or(&[][..], |spec| list(spec, "rules"));
        let mut sets: Vec<Option<Value>> = Vec::new();
        for rule in rules {
            let set = self
                .values
                .variables(&name, &text(rule, "name"), &self.resource.name);
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        for set in sets {
            cases.push(self.case(policy, &name, set)?);
        }
        Ok(())
    }

    fn case(&self, policy: &Tree, name: &str, set: Option<Value>) -> Step<Value> {
        let operation = self
            .operation
            .unwrap_or_else(|| self.values.operation(name, &self.resource.name));
        let object = |side: &str| -> Step<Value> {
            let tree = rewritten(&self.resource.tree, set.as_ref(), side)?;
            Ok(with_floats(value_of(&tree)))
        };
        let (gvk, subresource) = self.values.kind_of(self.resource, false);
        let mut case = json!({
            "policy": value_of(policy),
            "operation": operation.name(),
            "gvk": gvk,
            "subresource": subresource,
        });
        if operation != Operation::Delete {
            case["resource"] = object("object")?;
        }
        if operation != Operation::Create {
            case["old"] = object("oldObject")?;
        }
        if let Some(labels) = self.values.labels.get(&self.resource.namespace) {
            let labels = labels
                .iter()
                .map(|(key, value)| (key.clone(), json!(value)));
            case["namespaceLabels"] = Value::Object(labels.collect());
        }
        if let Some(user) = self.user {
            case["user"] = json!({
                "roles": user.roles,
                "clusterRoles": user.cluster_roles,
                "userInfo": { "username": user.username, "groups": user.groups },
            });
        }
        if let Some(set) = set {
            case["mocks"] = json!({ "values": set });
        }
        Ok(case)
    }
}

/// The command line reads every number as a float.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(key, value)| (key, with_floats(value)))
                .collect()
        }
        other => other,
    }
}
