//! Compares `kpvm-naive`, the plainest interpreter of the policy model, with recorded
//! answers and with the VM.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use kpvm_golden::{case_files, folder, read, read_file};
use kpvm_naive::{
    Failure, Outside, Request, Stop, UNFIXED, User, apply_operator, decoded, read_object, search,
};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::manifest::read_all;
use kpvm_syntax::tree::DuplicateKeys;
use kpvm_syntax::yaml::Options;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::case::{Answer, Case, RuleAnswer, quick_answer};
use crate::differential::compare::{in_any_order, listed};
use crate::golden::{Golden, is_explained};

/// Results of many comparisons.
#[derive(Debug, Default)]
pub struct Tally {
    /// Same rules, statuses, messages and properties.
    pub agree: u64,
    /// Of these: how many rule responses were compared.
    pub responses: u64,
    /// Differences that `docs/differences.md` or `conformance/explained.txt` lists.
    pub listed: u64,
    /// What the naive interpreter does not do, by construct.
    pub not_done: BTreeMap<String, u64>,
    /// Generated cases on which Kyverno panics, so that there is nothing to compare with.
    pub panics: u64,
    /// What kpvm does not support.
    pub unsupported: u64,
    /// Number of differences.
    pub differ: u64,
    /// The first differences: name and text.
    pub differences: Vec<(String, String)>,
}

/// Kept differences.
const KEPT: usize = 200;

impl Tally {
    /// Adds the results of another part.
    pub fn merge(&mut self, other: Self) {
        self.agree += other.agree;
        self.responses += other.responses;
        self.listed += other.listed;
        self.unsupported += other.unsupported;
        self.panics += other.panics;
        self.differ += other.differ;
        for (construct, count) in other.not_done {
            *self.not_done.entry(construct).or_default() += count;
        }
        self.differences.extend(other.differences);
        self.differences.truncate(KEPT);
    }

    /// Number of cases that were not compared because something is not done.
    pub fn not_done_total(&self) -> u64 {
        self.not_done.values().sum()
    }

    fn not_done(&mut self, construct: &str) {
        *self.not_done.entry(construct.to_owned()).or_default() += 1;
    }

    fn differ(&mut self, name: &str, text: impl FnOnce() -> String) {
        self.differ += 1;
        if self.differences.len() < KEPT {
            self.differences.push((name.to_owned(), text()));
        }
    }

    fn add(&mut self, name: &str, holds: bool, text: impl FnOnce() -> String) {
        match holds {
            true => self.agree += 1,
            false => self.differ(name, text),
        }
    }
}

/// Answer of the naive interpreter.
///
/// # Errors
/// When it has none.
pub fn answer(case: &Case<'_>) -> Result<Vec<RuleAnswer>, Stop> {
    let request = request(case).map_err(|error| Stop::Refused(error.to_owned()))?;
    let exceptions = case.exceptions.as_deref().unwrap_or_default();
    let responses = kpvm_naive::evaluate(&case.policy, exceptions, &request)?;
    let rule = |one: kpvm_naive::RuleResponse| RuleAnswer {
        rule: one.rule,
        status: one.response.status.as_str().to_owned(),
        message: one.response.message,
        properties: one.properties,
    };
    Ok(responses.into_iter().map(rule).collect())
}

fn request(case: &Case<'_>) -> Result<Request, &'static str> {
    let object = |raw: Option<&RawValue>| match raw {
        None => Ok(None),
        Some(raw) => read_object(raw.get())
            .map(Some)
            .ok_or("an object is not JSON"),
    };
    let mocks = &case.mocks;
    Ok(Request {
        object: object(case.resource)?,
        old_object: object(case.old)?,
        operation: match case.operation.as_deref() {
            Some(known @ ("CREATE" | "UPDATE" | "DELETE" | "CONNECT")) => known.to_owned(),
            _ => "CREATE".to_owned(),
        },
        gvk: case.gvk.clone(),
        subresource: case.subresource.clone(),
        user: case.user.as_ref().map(|user| User {
            name: user.user_info.username.clone(),
            groups: user.user_info.groups.clone(),
            roles: user.roles.clone(),
            cluster_roles: user.cluster_roles.clone(),
        }),
        namespace_labels: case.namespace_labels.clone(),
        outside: Outside {
            values: mocks.values.clone(),
            config_maps: mocks.config_maps.clone(),
            api_calls: mocks.api_calls.clone(),
            global_entries: mocks.global_entries.clone(),
        },
    })
}

/// Whether two answers are the same, as far as the specification fixes them. The order of
/// the checks of `podSecurity` is not fixed.
fn same(naive: &[RuleAnswer], other: &[RuleAnswer]) -> bool {
    let same_rule = |(naive, other): (&RuleAnswer, &RuleAnswer)| {
        let is_fixed = !naive.message.contains(UNFIXED);
        naive.rule == other.rule
            && naive.status == other.status
            && (!is_fixed || naive.message == other.message)
            && naive.properties == other.properties
    };
    let all_same = |naive: &[RuleAnswer], other: &[RuleAnswer]| {
        naive.len() == other.len() && naive.iter().zip(other).all(same_rule)
    };
    all_same(naive, other) || all_same(&in_any_order(naive), &in_any_order(other))
}

/// Compares the naive interpreter with the VM on one generated case.
pub fn compare_case(value: &Value, tally: &mut Tally) {
    let text = value.to_string();
    let name = value["id"].as_str().unwrap_or_default();
    let case: Case<'_> = match serde_json::from_str(&text) {
        Ok(case) => case,
        Err(error) => return tally.differ(name, || format!("not a case: {error}")),
    };
    let naive = answer(&case);
    match &naive {
        Err(Stop::NotDone(construct)) => return tally.not_done(construct),
        Err(Stop::Panic(_)) => return tally.panics += 1,
        _ => {}
    }
    let vm = quick_answer(&case);
    let show = || format!("{text}\nnaive {naive:#?}\nVM {vm:#?}");
    match (&naive, &vm) {
        (_, Answer::Unsupported(_)) => tally.unsupported += 1,
        (Ok(naive), Answer::Rules(vm)) if same(naive, vm) => {
            tally.agree += 1;
            tally.responses += naive.len() as u64;
        }
        (Ok(naive), Answer::Rules(vm)) if listed(value, naive, vm).is_some() => {
            tally.listed += 1;
        }
        (Err(_), Answer::Refused(_)) => tally.agree += 1,
        _ => tally.differ(name, show),
    }
}

/// Compares the naive interpreter with the real engine's recorded answers, by file.
///
/// # Errors
/// When the data cannot be read.
pub fn golden() -> io::Result<Vec<(String, Tally)>> {
    let mut areas = Vec::new();
    for file in case_files(&folder().join("golden"))? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        let mut tally = Tally::default();
        for line in read_file(&file)?.lines().filter(|line| !line.is_empty()) {
            let golden = Golden::parse(line)?;
            // The policy reader, not the interpreter, answers the other modes.
            if let Some(expected) = golden.expected_rules() {
                compare_golden(&golden, expected, &mut tally);
            }
        }
        if tally.agree + tally.differ + tally.not_done_total() > 0 {
            areas.push((name, tally));
        }
    }
    Ok(areas)
}

fn compare_golden(golden: &Golden<'_>, expected: &[RuleAnswer], tally: &mut Tally) {
    let naive = answer(&golden.case);
    let id = &golden.case.id;
    let show = || format!("expected {expected:#?}\nnaive {naive:#?}");
    match &naive {
        Err(Stop::NotDone(construct)) => tally.not_done(construct),
        _ if golden.panics() => tally.add(id, matches!(naive, Err(Stop::Panic(_))), show),
        Ok(found) if same(found, expected) => {
            tally.agree += 1;
            tally.responses += found.len() as u64;
        }
        _ if is_explained(golden) => tally.listed += 1,
        _ => tally.differ(id, show),
    }
}

/// Compares the naive interpreter with the VM on every policy of the suites below a folder:
/// on each object of its directory, created, updated and deleted, without values and users.
///
/// # Errors
/// When a folder cannot be listed.
pub fn suites(folder: &Path) -> io::Result<Tally> {
    let mut tally = Tally::default();
    compare_directory(folder, &mut tally)?;
    Ok(tally)
}

fn compare_directory(directory: &Path, tally: &mut Tally) -> io::Result<()> {
    let (mut policies, mut exceptions, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut entries: Vec<_> = directory.read_dir()?.collect::<io::Result<_>>()?;
    entries.sort_by_key(DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            compare_directory(&path, tally)?;
        }
        let is_yaml = path
            .extension()
            .is_some_and(|one| one == "yaml" || one == "yml");
        let Some(text) = is_yaml.then(|| fs::read_to_string(&path).ok()).flatten() else {
            continue;
        };
        let options = Options {
            duplicate_keys: DuplicateKeys::LastWins,
            limits: &Limits::default(),
        };
        for document in read_all(&text, options).into_iter().flatten() {
            let document = document.to_json();
            let text = |key: &str| {
                document
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            match (text("apiVersion"), text("kind")) {
                (version, "ClusterPolicy" | "Policy") if version.starts_with("kyverno.io/") => {
                    policies.push(document);
                }
                (version, "PolicyException") if version.starts_with("kyverno.io/") => {
                    exceptions.push(document);
                }
                ("cli.kyverno.io/v1alpha1" | "", _) | (_, "") => {}
                _ => objects.push(document),
            }
        }
    }
    let directory = directory.display();
    for (policy, object) in policies
        .iter()
        .flat_map(|policy| objects.iter().map(move |object| (policy, object)))
    {
        for operation in ["CREATE", "UPDATE", "DELETE"] {
            let mut case = json!({
                "id": format!("{directory}: {} {operation}", object["metadata"]["name"]),
                "policy": policy,
                "exceptions": exceptions,
                "operation": operation,
            });
            if operation != "DELETE" {
                case["resource"] = object.clone();
            }
            if operation != "CREATE" {
                case["old"] = object.clone();
            }
            compare_case(&case, tally);
        }
    }
    Ok(())
}

/// Compares the operators of conditions with the recorded grid.
///
/// # Errors
/// When the data cannot be read.
pub fn operators() -> io::Result<Tally> {
    let grid: Value = serde_json::from_str(&read("operators/grid.json")?)?;
    let items: Vec<Value> = grid["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(decoded)
        .collect();
    let mut tally = Tally::default();
    for (operator, rows) in grid["results"].as_object().into_iter().flatten() {
        for (key, row) in items.iter().zip(rows.as_array().into_iter().flatten()) {
            let row = row.as_str().unwrap_or_default();
            for (value, expected) in items.iter().zip(row.chars()) {
                let found = match apply_operator(operator, key, value) {
                    Ok(true) => 'T',
                    Ok(false) => 'f',
                    Err(Failure::Panic(_)) => 'p',
                    Err(_) => '?',
                };
                tally.add(operator, found == expected, || {
                    format!("{key} {operator} {value}: expected {expected}, found {found}")
                });
            }
        }
    }
    Ok(tally)
}

/// Compares JMESPath with the recorded results.
///
/// # Errors
/// When the data cannot be read.
pub fn jmespath() -> io::Result<Tally> {
    let mut tally = Tally::default();
    for file in ["cases", "language", "quantities-durations"] {
        let text = read(&format!("jmespath-kyverno/{file}.json"))?;
        // One case per line.
        for line in text.lines().filter(|line| line.starts_with('{')) {
            match read_object(line.trim_end_matches(',')) {
                Some(case) => compare_expression(file, &case, &mut tally),
                None => tally.differ(line, || "not JSON".to_owned()),
            }
        }
    }
    Ok(tally)
}

fn compare_expression(file: &str, case: &Value, tally: &mut Tally) {
    let expression = case["expression"].as_str().unwrap_or_default();
    let name = format!("{file}: {expression}");
    let found = search(expression, &case["input"]);
    let error = ["error", "compile_error"]
        .iter()
        .find_map(|key| case[key].as_str());
    let holds = match (&found, error) {
        (Err(Failure::NotDone(construct)), _) => return tally.not_done(construct),
        (Err(Failure::Panic(_)), None) => case.get("panic").is_some(),
        (Ok(found), None) => numbers_alike(found) == numbers_alike(&case["result"]),
        (Err(failure), Some(error)) => match failure {
            Failure::Error(text) => text == error || text.contains(UNFIXED),
            Failure::NotFound(key) => error == format!("Unknown key \"{key}\" in path"),
            _ => false,
        },
        _ => false,
    };
    tally.add(&name, holds, || format!("expected {case}\nfound {found:?}"));
}

/// Recorded results are JSON, which has one kind of number.
fn numbers_alike(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap_or_default()),
        Value::Array(items) => items.iter().map(numbers_alike).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), numbers_alike(value)))
            .collect(),
        other => other.clone(),
    }
}
