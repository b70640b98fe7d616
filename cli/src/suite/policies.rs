//! Policies of a suite, one by one: Kyverno drops documents that are not policies,
//! remembers the names of policies that fail its checks, and evaluates the others
//! (docs/spec/cli.md §3 and §9.3).
//!
//! Only the compiler decides what is not supported yet; such rules and policies are omitted
//! and listed in [`SuitePolicies`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kpvm::engine::Bundle;
use kpvm_compiler::compile::{Compilation, Options, compile_documents, compile_with_exceptions};
use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::policy::admission_policy::{read_admission_binding, read_admission_policy};
use kpvm_compiler::policy::constraints;
use kpvm_compiler::policy::model::{Policy, PolicyKind};
use kpvm_compiler::policy::read::{DocumentKind, document_kind, read_policy};
use kpvm_compiler::policy::read_validating::read_validating_policy;
use kpvm_compiler::policy::validating_autogen;
use kpvm_compiler::policy::validating_policy::{Mode, ValidatingPolicy};
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_format::Tables;
use kpvm_format::meta::OmittedRule;
use kpvm_syntax::manifest;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{self, DuplicateKeys};

use crate::computed_rule::is_computed_from;
use crate::input::read_inputs;
use crate::list::{Item, expand};
use crate::policies::{Class, classify};
use crate::strict::Text;
use crate::suite::document::is_url;

/// One policy of a suite.
#[derive(Debug, Clone)]
pub struct SuitePolicy {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Whether it is evaluated.
    pub fate: Fate,
    /// Names of its rules, including generated ones; empty if it is not evaluated.
    pub rules: Vec<String>,
    /// Written rules that change resources; all later rules see the changes.
    pub changing_rules: Vec<String>,
    /// Variants it is evaluated as, each with its own response (docs/spec/cli.md §3.1);
    /// empty if nothing of it is evaluated.
    pub variants: Vec<Variant>,
}

/// One variant that a policy is evaluated as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// All rules of a validating policy of kyverno.io.
    Rules,
    /// The rule with that index of a ValidatingPolicy. A plain one does not respond for
    /// resources that it does not match.
    Rule {
        /// Index in the policy, from 0.
        number: usize,
        /// Whether it is plain.
        is_plain: bool,
        /// Whether it evaluates only JSON payloads.
        is_json: bool,
    },
    /// A ValidatingAdmissionPolicy, which responds for every resource.
    Admission,
}

impl SuitePolicy {
    /// Whether it has a rule of this name, or one generated from such a rule.
    pub fn has_rule(&self, written: &str) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| is_computed_from(rule, written))
    }

    /// Whether its kind changes resources.
    pub fn is_mutation(&self) -> bool {
        // A binding responds for no rule; that of a mutation is not a mutation.
        self.kind.contains("Mutating") && !self.kind.ends_with("Binding")
    }

    /// Whether it is a CEL policy, whose rules rows do not distinguish (docs/spec/cli.md
    /// §4.3).
    pub fn is_of_cel(&self) -> bool {
        let mut variants = self.variants.iter();
        variants.any(|variant| !matches!(variant, Variant::Rules))
    }

    fn not_evaluated(name: String, kind: String, fate: Fate) -> Self {
        Self {
            name,
            kind,
            fate,
            rules: Vec::new(),
            changing_rules: Vec::new(),
            variants: Vec::new(),
        }
    }
}

/// How a policy was handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Evaluated, possibly without some unsupported rules.
    Evaluated,
    /// Failed Kyverno's checks, with the reason.
    Invalid(String),
    /// Not supported, with the reason.
    Unsupported(String),
    /// Dropped because its document does not conform to the schema, so Kyverno does not
    /// know it; with the reason.
    Dropped(String),
}

/// All policies of a suite.
#[derive(Debug, Default)]
pub struct SuitePolicies {
    /// Bundle of the evaluated policies.
    pub bundle: Vec<u8>,
    /// Every policy, in the order of the files.
    pub policies: Vec<SuitePolicy>,
    /// Unsupported rules of evaluated policies.
    pub omitted: Vec<OmittedRule>,
    /// Errors that stop the suite.
    pub errors: Vec<Diagnostic>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Reads and compiles the policies with the exceptions and adds their texts to the sources.
/// `suite` is the source in which the paths are named.
pub fn load(
    policies: &[Text],
    exceptions: &[Text],
    directory: &Path,
    suite: SourceId,
    sources: &mut Sources,
) -> SuitePolicies {
    let mut loader = Loader {
        suite,
        sources,
        documents: Vec::new(),
        bindings: Vec::new(),
        exceptions: Vec::new(),
        loaded: SuitePolicies::default(),
    };
    for path in policies {
        loader.add_path(path, directory, Role::Policies);
    }
    for path in exceptions {
        loader.add_path(path, directory, Role::Exceptions);
    }
    loader.compile()
}

/// Role of a path in the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Policies,
    Exceptions,
}

impl SuitePolicies {
    /// Policies and the names of their rules; `None` if these are unknown.
    pub fn known_rules(&self) -> BTreeMap<&str, Option<&[String]>> {
        let known = |policy: &'_ SuitePolicy| match policy.fate {
            Fate::Evaluated => true,
            Fate::Invalid(_) | Fate::Unsupported(_) | Fate::Dropped(_) => false,
        };
        let all = self.policies.iter();
        all.map(|policy| {
            let rules = known(policy).then_some(policy.rules.as_slice());
            (policy.name.as_str(), rules)
        })
        .collect()
    }

    /// Sets the rule names of the evaluated policies.
    fn name_rules(&mut self) {
        // A bundle that was just built loads; otherwise the names would be missing.
        let Ok(bundle) = Bundle::load(self.bundle.as_slice()) else {
            return;
        };
        let tables = bundle.tables();
        let evaluated = self
            .policies
            .iter_mut()
            .filter(|policy| policy.fate == Fate::Evaluated);
        for (policy, record) in evaluated.zip(tables.policies) {
            let rules = Tables::range(tables.rules, record.rules).iter();
            policy.rules = rules
                .map(|rule| tables.text(rule.name).to_owned())
                .collect();
            let omitted = self
                .omitted
                .iter()
                .filter(|rule| rule.policy == policy.name);
            policy.rules.extend(omitted.map(|rule| rule.rule.clone()));
        }
    }
}

struct Loader<'s> {
    suite: SourceId,
    sources: &'s mut Sources,
    /// Documents to compile, each with the index of its policy.
    documents: Vec<(usize, SourceId, Tree)>,
    /// Bindings of ValidatingAdmissionPolicies.
    bindings: Vec<(SourceId, Tree)>,
    /// The exceptions.
    exceptions: Vec<(SourceId, Tree)>,
    loaded: SuitePolicies,
}

fn options() -> Options {
    Options {
        skip_unsupported: true,
        ..Options::default()
    }
}

impl Loader<'_> {
    fn add_path(&mut self, path: &Text, directory: &Path, role: Role) {
        let location = Location {
            source: self.suite,
            span: path.span,
        };
        if is_url(&path.text) {
            let message = format!("{} would have to be fetched", path.text);
            let hint = "this program fetches nothing: download it and give the file";
            let error = Diagnostic::error("missing-file", message, location).hint(hint);
            self.loaded.errors.push(error);
            return;
        }
        let path = directory.join(&path.text);
        if let Some(reason) = not_readable(&path) {
            let message = format!("cannot read {}: {reason}", path.display());
            let error = Diagnostic::error("missing-file", message, location);
            self.loaded.errors.push(error);
            return;
        }
        let inputs = read_inputs(&[path], &mut std::io::empty());
        for unreadable in inputs.unreadable {
            let message = format!("cannot read {}: {}", unreadable.name, unreadable.reason);
            let error = Diagnostic::error("missing-file", message, location);
            self.loaded.errors.push(error);
        }
        for file in inputs.files {
            let is_json = PathBuf::from(&file.name)
                .extension()
                .is_some_and(|extension| extension == "json");
            // Only YAML is read from a directory (docs/spec/cli.md §9.3).
            if !(file.from_directory && is_json) {
                self.add_file(file.name, file.text, role);
            }
        }
    }

    fn add_file(&mut self, name: String, text: String, role: Role) {
        let read = manifest::read_all(
            &text,
            yaml::Options {
                duplicate_keys: DuplicateKeys::Refuse,
                limits: &options().limits,
            },
        );
        let source = self.sources.add(name, text);
        for document in read {
            match document {
                Ok(tree) if tree.is_null() => {}
                Ok(tree) => self.add_document(tree, source, role),
                Err(error) => {
                    let location = Location {
                        source,
                        span: error.span,
                    };
                    let error = Diagnostic::error("yaml", error.kind.to_string(), location);
                    self.drop_document(error, role);
                }
            }
        }
    }

    fn add_document(&mut self, document: Tree, source: SourceId, role: Role) {
        for item in expand(document) {
            match item {
                Item::Object(tree) if role == Role::Policies => self.add_object(tree, source),
                Item::Object(tree) => self.add_exception(tree, source),
                Item::Empty(_) => {}
                Item::Bad(span, message) => {
                    let location = Location { source, span };
                    let error = Diagnostic::error("not-a-policy", message, location);
                    self.drop_document(error, role);
                }
            }
        }
    }

    /// Any other document among exceptions is fatal (docs/spec/cli.md §2); the compiler
    /// reports it.
    fn add_exception(&mut self, tree: Tree, source: SourceId) {
        self.exceptions.push((source, tree));
    }

    fn add_object(&mut self, tree: Tree, source: SourceId) {
        let location = Location {
            source,
            span: tree.get("kind").map_or(tree.span, |kind| kind.span),
        };
        match classify(&tree) {
            Class::Policy => self.add_policy(tree, source),
            Class::UnsupportedPolicy { kind, name } => {
                let reason = format!("{kind} is not supported yet");
                let fate = Fate::Unsupported(reason);
                let policy = SuitePolicy::not_evaluated(name, kind, fate);
                self.loaded.policies.push(policy);
            }
            Class::Exception => {
                let message = "a PolicyException among the policies is not used by a test";
                let hint = "list its file under `exceptions`";
                let warning = Diagnostic::warning("unused-exception", message, location);
                self.loaded.warnings.push(warning.hint(hint));
            }
            Class::Other(what) => {
                let message = format!("expected a policy, found {what}");
                let error = Diagnostic::error("not-a-policy", message, location);
                self.drop_document(error, Role::Policies);
            }
        }
    }

    fn add_policy(&mut self, tree: Tree, source: SourceId) {
        let mut found = Vec::new();
        let is_error = |one: &Diagnostic| one.severity == Severity::Error;
        let policy = match document_kind(&tree) {
            DocumentKind::ValidatingPolicy => {
                let policy = read_validating_policy(&tree, source, &mut found);
                policy.as_ref().map(validating_policy)
            }
            DocumentKind::AdmissionPolicy => {
                let policy = read_admission_policy(&tree, source, &mut found);
                policy.map(|policy| SuitePolicy {
                    name: policy.name.value,
                    kind: "ValidatingAdmissionPolicy".to_owned(),
                    fate: Fate::Evaluated,
                    rules: Vec::new(),
                    changing_rules: Vec::new(),
                    variants: vec![Variant::Admission],
                })
            }
            DocumentKind::AdmissionBinding => {
                constraints::check(&tree, source, &mut found);
                if read_admission_binding(&tree, source, &mut found).is_some()
                    && !found.iter().any(is_error)
                {
                    self.bindings.push((source, tree));
                    return;
                }
                None
            }
            _ => {
                let policy = read_policy(&tree, source, &mut found);
                policy.as_ref().map(suite_policy)
            }
        };
        if policy.is_some() {
            constraints::check(&tree, source, &mut found);
        }
        let Some(policy) = policy.filter(|_| !found.iter().any(is_error)) else {
            // An unknown field is fatal; any other error drops the document.
            let (fatal, others): (Vec<_>, Vec<_>) = found
                .into_iter()
                .filter(is_error)
                .partition(|one| one.code == "unknown-field");
            let kind = tree.get("kind").and_then(Tree::as_str).unwrap_or_default();
            let name = tree
                .get("metadata")
                .and_then(|metadata| metadata.get("name"))
                .and_then(Tree::as_str);
            if let Some(first) = fatal.first().or(others.first()) {
                let fate = Fate::Dropped(first.message.clone());
                let name = name.unwrap_or_default().to_owned();
                let policy = SuitePolicy::not_evaluated(name, kind.to_owned(), fate);
                self.loaded.policies.push(policy);
            }
            self.loaded.errors.extend(fatal);
            self.loaded.warnings.extend(others);
            return;
        };
        self.documents
            .push((self.loaded.policies.len(), source, tree));
        self.loaded.policies.push(policy);
    }

    /// Not fatal among policies: Kyverno then does not know the policy.
    fn drop_document(&mut self, diagnostic: Diagnostic, role: Role) {
        match role {
            Role::Policies => self.loaded.warnings.push(diagnostic),
            Role::Exceptions => self.loaded.errors.push(diagnostic),
        }
    }

    fn compile(mut self) -> SuitePolicies {
        self.refuse_exceptions();
        let mut compilation = self.compile_all();
        if compilation.bundle.is_none() {
            self.find_invalid();
            compilation = self.compile_all();
        }
        self.loaded.omitted = compilation.omitted;
        let of_exceptions = compilation
            .diagnostics
            .iter()
            .filter(|one| one.code.starts_with("exception-") && one.severity == Severity::Warning);
        self.loaded.warnings.extend(of_exceptions.cloned());
        match compilation.bundle {
            Some(bundle) => {
                self.loaded.bundle = bundle;
                self.loaded.name_rules();
            }
            None => {
                let errors = compilation.diagnostics.into_iter();
                self.loaded
                    .errors
                    .extend(errors.filter(|one| one.severity == Severity::Error));
            }
        }
        self.loaded
    }

    /// Kyverno rejects exceptions next to a ValidatingAdmissionPolicy (docs/spec/cli.md §3,
    /// step 5).
    fn refuse_exceptions(&mut self) {
        let mut documents = self.documents.iter();
        let admission =
            documents.find(|(_, _, tree)| document_kind(tree) == DocumentKind::AdmissionPolicy);
        if let (Some((_, source, tree)), false) = (admission, self.exceptions.is_empty()) {
            let location = Location {
                source: *source,
                span: tree.get("kind").map_or(tree.span, |kind| kind.span),
            };
            let message = "use of exceptions with ValidatingAdmissionPolicies is not supported";
            let error = Diagnostic::error("exceptions", message, location);
            let hint = "write the exceptions into a suite of their own";
            self.loaded.errors.push(error.hint(hint));
        }
    }

    fn compile_all(&self) -> Compilation {
        let documents: Vec<(SourceId, Tree)> = self
            .documents
            .iter()
            .map(|(_, source, tree)| (*source, tree.clone()))
            .chain(self.bindings.iter().cloned())
            .collect();
        let exceptions = &self.exceptions;
        compile_with_exceptions(&documents, exceptions, self.sources, &options(), Vec::new())
    }

    /// Keeps only policies that compile on their own; records the reason for the others.
    fn find_invalid(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        for (number, source, tree) in documents {
            let alone = [(source, tree)];
            let compilation = compile_documents(&alone, self.sources, &options(), Vec::new());
            let mut errors = compilation
                .diagnostics
                .into_iter()
                .filter(|one| one.severity == Severity::Error);
            match errors.next() {
                None => {
                    let [(source, tree)] = alone;
                    self.documents.push((number, source, tree));
                }
                // Such a policy ends the whole run (docs/spec/cli.md §15, item 16).
                Some(error) if is_of_cel(&alone) => self.loaded.errors.push(error),
                Some(error) => {
                    if let Some(policy) = self.loaded.policies.get_mut(number) {
                        policy.fate = Fate::Invalid(error.message.clone());
                    }
                    self.loaded.warnings.push(error);
                }
            }
        }
    }
}

fn is_of_cel(documents: &[(SourceId, Tree)]) -> bool {
    let mut documents = documents.iter();
    documents.any(|(_, tree)| document_kind(tree) == DocumentKind::ValidatingPolicy)
}

/// Reason why a path is not opened: it is neither a file nor a directory.
fn not_readable(path: &Path) -> Option<&'static str> {
    let metadata = std::fs::metadata(path).ok()?;
    let is_other = !metadata.is_dir() && !metadata.is_file();
    is_other.then_some("expected a file or a directory, found a device or a pipe")
}

fn suite_policy(policy: &Policy) -> SuitePolicy {
    let rules = &policy.rules;
    SuitePolicy {
        name: policy.name.value.clone(),
        kind: match policy.kind {
            PolicyKind::ClusterPolicy => "ClusterPolicy".to_owned(),
            PolicyKind::Policy => "Policy".to_owned(),
        },
        fate: Fate::Evaluated,
        rules: Vec::new(),
        changing_rules: rules
            .iter()
            .filter(|rule| rule.mutate.is_some() || rule.verify_images.is_some())
            .map(|rule| rule.name.value.clone())
            .collect(),
        variants: match rules.iter().any(|rule| rule.validate.is_some()) {
            true => vec![Variant::Rules],
            false => Vec::new(),
        },
    }
}

fn validating_policy(policy: &ValidatingPolicy) -> SuitePolicy {
    let variants = validating_autogen::variants(policy);
    let variants = variants.iter().enumerate();
    SuitePolicy {
        name: policy.name.value.clone(),
        kind: match policy.is_namespaced {
            true => "NamespacedValidatingPolicy".to_owned(),
            false => "ValidatingPolicy".to_owned(),
        },
        fate: Fate::Evaluated,
        rules: Vec::new(),
        changing_rules: Vec::new(),
        variants: variants
            .map(|(number, variant)| Variant::Rule {
                number,
                is_plain: variant.is_plain(),
                is_json: policy.mode == Mode::Json,
            })
            .collect(),
    }
}
