//! The context of variables: what is predefined, entries that load when they are used, and
//! checkpoints (docs/spec/conditions.md §6, §8, §9).

use kpvm_semantics::quote::go_quote;
use kpvm_syntax::tree::Tree;
use serde_json::{Value, json};

use crate::failure::{Failure, UNFIXED};
use crate::images::images;
use crate::jmespath::{self, Datum, clean_path};
use crate::request::{Request, metadata_text};
use crate::substitution::substitute_all;
use crate::value::{through_json, type_name};

/// A context of one evaluation.
pub(crate) struct Context<'r> {
    request: &'r Request,
    policy_namespace: String,
    operation: String,
    data: Value,
    checkpoints: Vec<Value>,
    entries: Vec<Entry>,
    /// While an entry loads: the level and number of entries that it may use.
    bounds: Option<(usize, usize)>,
}

/// One entry that loads when a query mentions it.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    source: Source,
    level: usize,
    is_matched: bool,
    has_loaded: bool,
    /// What outside sources answered; they are asked once.
    fetched: Option<Value>,
}

#[derive(Debug, Clone)]
enum Source {
    Images,
    Variable(Value),
    ConfigMap(Value),
    ApiCall(Value),
    GlobalReference(Value),
}

impl<'r> Context<'r> {
    /// The predefined variables (docs/spec/conditions.md §6).
    pub(crate) fn new(request: &'r Request, policy_namespace: &str) -> Self {
        let subject = request.subject();
        let mut data = json!({
            "request": {
                "operation": request.operation,
                "namespace": subject.map_or("", |object| metadata_text(object, "namespace")),
            },
        });
        if let Some(object) = &request.object {
            data["request"]["object"] = object.clone();
        }
        if let Some(object) = &request.old_object {
            data["request"]["oldObject"] = object.clone();
        }
        if let Some(user) = &request.user {
            let mut info = json!({});
            if !user.name.is_empty() {
                info["username"] = json!(user.name);
            }
            if !user.groups.is_empty() {
                info["groups"] = json!(user.groups);
            }
            data["request"]["userInfo"] = info;
            if !user.roles.is_empty() {
                data["request"]["roles"] = json!(user.roles);
            }
            if !user.cluster_roles.is_empty() {
                data["request"]["clusterRoles"] = json!(user.cluster_roles);
            }
            let (namespace, name) = service_account(&user.name);
            data["serviceAccountName"] = json!(name);
            data["serviceAccountNamespace"] = json!(namespace);
        }
        let images = Entry {
            name: "images".into(),
            source: Source::Images,
            level: 0,
            is_matched: false,
            has_loaded: false,
            fetched: None,
        };
        Self {
            request,
            policy_namespace: policy_namespace.to_owned(),
            operation: request.operation.clone(),
            data,
            checkpoints: Vec::new(),
            entries: vec![images],
            bounds: None,
        }
    }

    /// Whether names of `request.object` mean the old object (docs/spec/conditions.md §4.8).
    pub(crate) fn is_delete(&self) -> bool {
        self.operation == "DELETE"
    }

    /// Pretends that the old object is created (docs/spec/policies.md §10); returns what
    /// [`Context::restore_request`] puts back.
    pub(crate) fn simulate_creation(&mut self, old: &Value) -> Value {
        self.operation = "CREATE".into();
        let saved = self.data["request"].clone();
        if let Some(request) = self.data["request"].as_object_mut() {
            request.insert("object".into(), old.clone());
            request.remove("oldObject");
            request.insert("operation".into(), json!("CREATE"));
        }
        saved
    }

    pub(crate) fn restore_request(&mut self, saved: Value) {
        self.operation = self.request.operation.clone();
        self.data["request"] = saved;
    }

    /// docs/spec/conditions.md §8.3
    pub(crate) fn checkpoint(&mut self) {
        self.checkpoints.push(self.data.clone());
    }

    /// Back to the checkpoint, which stays (docs/spec/conditions.md §8.3).
    pub(crate) fn reset(&mut self) -> Result<(), Failure> {
        if let Some(last) = self.checkpoints.last() {
            self.data = last.clone();
        }
        self.reload(false)
    }

    /// Back to the checkpoint, which goes (docs/spec/conditions.md §8.3).
    pub(crate) fn restore(&mut self) -> Result<(), Failure> {
        if let Some(last) = self.checkpoints.pop() {
            self.data = last;
        }
        self.reload(true)
    }

    /// Entries of the level that is left vanish, loaded ones of outer levels run again
    /// (docs/spec/conditions.md §8.3).
    fn reload(&mut self, is_restore: bool) -> Result<(), Failure> {
        let level = self.checkpoints.len();
        for entry in &mut self.entries {
            entry.is_matched = false;
        }
        let mut at = 0;
        while let Some(entry) = self.entries.get(at) {
            let is_own = entry.level == level;
            let is_inner = entry.level > level;
            let has_loaded = entry.has_loaded;
            if !is_inner && has_loaded && (is_restore || !is_own) {
                // An error is only logged.
                match self.load(at) {
                    Err(failure) if !failure.is_error() => return Err(failure),
                    _ => {}
                }
            }
            match is_inner || (is_own && (has_loaded || !is_restore)) {
                true => {
                    self.entries.remove(at);
                }
                false => at += 1,
            }
        }
        Ok(())
    }

    /// Registers entries (docs/spec/conditions.md §8.1), after values that the host gives
    /// (§10.2).
    pub(crate) fn add_entries(&mut self, entries: &[Tree]) -> Result<(), Failure> {
        if let Some(Value::Object(values)) = &self.request.outside.values {
            for (name, value) in values {
                let value = through_json(value);
                merge(&mut self.data, &json!({ name: value }), false);
            }
        }
        for tree in entries {
            let document = tree.to_json();
            let name = document
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let given = |key: &str| document.get(key).filter(|value| !value.is_null()).cloned();
            let outside = &self.request.outside;
            let source = if let Some(value) = given("configMap") {
                outside
                    .config_maps
                    .is_some()
                    .then_some(Source::ConfigMap(value))
            } else if let Some(value) = given("apiCall") {
                outside
                    .api_calls
                    .is_some()
                    .then_some(Source::ApiCall(value))
            } else if let Some(value) = given("globalReference") {
                let is_there = outside.global_entries.is_some();
                is_there.then_some(Source::GlobalReference(value))
            } else if given("imageRegistry").is_some() {
                None
            } else if let Some(value) = given("variable") {
                Some(Source::Variable(value))
            } else {
                return Err(Failure::error(format!(
                    "failed to create deferred loader for context entry {name}"
                )));
            };
            if let Err(failure) = mentions("", name) {
                return Err(failure.wrap(|_| {
                    format!("failed to create deferred loader for context entry {name}")
                }));
            }
            if let Some(source) = source {
                self.entries.push(Entry {
                    name: name.to_owned(),
                    source,
                    level: self.checkpoints.len(),
                    is_matched: false,
                    has_loaded: false,
                    fetched: None,
                });
            }
        }
        Ok(())
    }

    /// Binds an element of foreach (docs/spec/conditions.md §11.2).
    pub(crate) fn add_element(&mut self, element: &Value, index: usize, nesting: usize) {
        let added = json!({
            "element": element,
            format!("element{nesting}"): element,
            "elementIndex": index as i64,
            format!("elementIndex{nesting}"): index as i64,
        });
        // A scalar number is encoded again (§3.2).
        let added = match element {
            Value::Number(_) => {
                let mut added = added;
                let float = through_json(element);
                added[format!("element{nesting}")] = float.clone();
                added["element"] = float;
                added
            }
            _ => added,
        };
        merge(&mut self.data, &added, true);
    }

    /// Evaluates an expression over the whole context (docs/spec/jmespath.md §1).
    pub(crate) fn query(&mut self, expression: &str) -> Result<Value, Failure> {
        self.load_matching(expression)?;
        let expression = expression.trim();
        if expression.is_empty() {
            return Err(Failure::error("invalid query (nil)"));
        }
        if let Some(error) = jmespath::syntax_error(expression) {
            return Err(Failure::error(format!(
                "incorrect query {expression}: {error}"
            )));
        }
        jmespath::search(expression, &self.data)
            .and_then(Datum::into_value)
            .map_err(|error| error.wrap(|text| format!("JMESPath query failed: {text}")))
    }

    /// Runs the entries that the query mentions (docs/spec/conditions.md §8.2).
    fn load_matching(&mut self, query: &str) -> Result<(), Failure> {
        let everything = (self.checkpoints.len(), usize::MAX);
        let (level, bound) = self.bounds.unwrap_or(everything);
        while let Some(at) = self.waiting(query, level, bound)? {
            if let Some(entry) = self.entries.get_mut(at) {
                entry.is_matched = true;
            }
            self.load(at)?;
        }
        Ok(())
    }

    /// The first entry below the bound that has to run.
    fn waiting(&self, query: &str, level: usize, bound: usize) -> Result<Option<usize>, Failure> {
        for (at, entry) in self.entries.iter().take(bound).enumerate() {
            let is_waiting = !entry.is_matched && !entry.has_loaded && entry.level <= level;
            if is_waiting && mentions(query, &entry.name)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn load(&mut self, at: usize) -> Result<(), Failure> {
        let Some(entry) = self.entries.get(at).cloned() else {
            return Ok(());
        };
        self.bounds = Some((entry.level, at));
        let result = self.load_entry(&entry, at);
        self.bounds = None;
        result
    }

    fn load_entry(&mut self, entry: &Entry, at: usize) -> Result<(), Failure> {
        let name = &entry.name;
        match &entry.source {
            Source::Images => {
                let object = self.request.subject().unwrap_or(&Value::Null);
                if let Some(images) = images(object)? {
                    self.store(name, images, false);
                }
                // It counts as not loaded, and runs again after each reset.
                return Ok(());
            }
            Source::Variable(variable) => {
                let value = self.variable(name, variable)?;
                self.store(name, value, true);
            }
            Source::ConfigMap(reference) => {
                let fetched = match &entry.fetched {
                    Some(fetched) => fetched.clone(),
                    None => self.config_map(name, reference).map_err(|error| {
                        error.wrap(|text| {
                            format!(
                                "failed to retrieve config map for context entry {name}: {text}"
                            )
                        })
                    })?,
                };
                self.remember(at, &fetched);
                self.store(name, fetched, false);
            }
            Source::ApiCall(call) => {
                let fetched = match &entry.fetched {
                    Some(fetched) => fetched.clone(),
                    None => self.fetch(name, call).map_err(|error| {
                        error.wrap(|text| format!("failed to fetch data for APICall: {text}"))
                    })?,
                };
                self.remember(at, &fetched);
                let value = self.transformed(name, call, &fetched).map_err(|error| {
                    error.wrap(|text| format!("failed to store data for APICall: {text}"))
                })?;
                self.store(name, value, false);
            }
            Source::GlobalReference(reference) => {
                if !self.policy_namespace.is_empty() {
                    return Err(Failure::error(format!(
                        "context entry {name}: globalReference is not allowed in namespaced policies"
                    )));
                }
                let value = self.global_entry(name, reference).map_err(|error| {
                    error.wrap(|text| {
                        format!("failed to marshal APICall data for context entry {name}: {text}")
                    })
                })?;
                self.store(name, value, false);
            }
        }
        if let Some(entry) = self.entries.get_mut(at) {
            entry.has_loaded = true;
        }
        Ok(())
    }

    fn remember(&mut self, at: usize, fetched: &Value) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.fetched = Some(fetched.clone());
            entry.has_loaded = true;
        }
    }

    /// Variables replace, other kinds merge; all went through JSON
    /// (docs/spec/conditions.md §8.2).
    fn store(&mut self, name: &str, value: Value, replaces: bool) {
        if replaces {
            merge(&mut self.data, &json!({ name: null }), false);
        }
        merge(
            &mut self.data,
            &json!({ name: through_json(&value) }),
            false,
        );
    }

    /// docs/spec/conditions.md §9.1
    fn variable(&mut self, name: &str, variable: &Value) -> Result<Value, Failure> {
        let given = |key: &str| variable.get(key).filter(|value| !value.is_null());
        let unresolved = |raw: &Value| {
            let raw = match raw {
                Value::String(text) => text.clone(),
                _ => UNFIXED.to_owned(),
            };
            move |text: &str| {
                format!("failed to substitute variables in context entry {name} {raw}: {text}")
            }
        };
        let path = match given("jmesPath").filter(|path| *path != "") {
            None => None,
            Some(raw) => match substitute_all(self, raw).map_err(|e| e.wrap(unresolved(raw)))? {
                Value::String(path) => Some(path),
                _ => {
                    let raw = raw.as_str().unwrap_or_default();
                    return Err(Failure::error(format!(
                        "jmespath value must be a string {name} {raw}: <nil>"
                    )));
                }
            },
        };
        let default = match given("default") {
            None => Value::Null,
            Some(raw) => substitute_all(self, raw).map_err(|e| e.wrap(unresolved(raw)))?,
        };
        // An empty text is the default only if the path is empty too.
        let path = path.filter(|path| !path.is_empty());
        let not_applied = |path: &str, failure: Failure| {
            failure
                .wrap(|text| format!("failed to apply jmespath {path} to variable <nil>: {text}"))
        };
        let output = match (given("value"), path) {
            (Some(raw), path) => {
                let value = substitute_all(self, raw).map_err(|e| e.wrap(unresolved(raw)))?;
                match path {
                    None => value,
                    Some(path) => match search_alone(&path, &value) {
                        Ok(found) => found,
                        Err(failure) if !failure.is_error() => {
                            return Err(failure);
                        }
                        Err(failure) if default.is_null() => {
                            return Err(not_applied(&path, failure));
                        }
                        Err(_) => default,
                    },
                }
            }
            (None, Some(path)) => match self.query(&path) {
                Ok(Value::Null) => default,
                Ok(found) => found,
                Err(failure) if !failure.is_error() => return Err(failure),
                Err(failure) if default.is_null() => return Err(not_applied(&path, failure)),
                Err(_) => default,
            },
            (None, None) => default,
        };
        match output {
            Value::Null => Err(Failure::error(format!(
                "failed to add context entry for variable {name} since it evaluated to nil"
            ))),
            other => Ok(other),
        }
    }

    /// docs/spec/conditions.md §9.2
    fn config_map(&mut self, entry: &str, reference: &Value) -> Result<Value, Failure> {
        let mut texts = Vec::new();
        for field in ["name", "namespace"] {
            let raw = reference.get(field).cloned().unwrap_or_else(|| json!(""));
            let shown = raw.as_str().unwrap_or_default().to_owned();
            let failed = |text: &str| {
                format!(
                    "failed to substitute variables in context {entry} configMap.{field} {shown}: {text}"
                )
            };
            match substitute_all(self, &raw).map_err(|error| error.wrap(failed))? {
                Value::String(text) => texts.push(text),
                other => {
                    let found = type_name(&other);
                    return Err(Failure::error(failed(&format!(
                        "expected string, got {found}"
                    ))));
                }
            }
        }
        let [name, namespace] = texts.as_slice() else {
            return Ok(Value::Null);
        };
        let own = self.policy_namespace.as_str();
        let namespace = match (namespace.as_str(), own) {
            ("", "") => "default",
            ("", own) => own,
            (given, _) => given,
        };
        if !own.is_empty() && namespace != own {
            return Err(Failure::error(format!(
                "context entry {entry}: configMap namespace {} is different from \
                 policy namespace {}",
                go_quote(namespace),
                go_quote(own)
            )));
        }
        let all = self.request.outside.config_maps.as_ref();
        match all.and_then(|all| all.get(&format!("{namespace}/{name}"))) {
            None => Err(Failure::error(format!(
                "failed to get configmap {namespace}/{name} : configmaps {} not found",
                go_quote(name)
            ))),
            Some(found) => Ok(json!({
                "data": found.get("data").cloned().unwrap_or(Value::Null),
                "metadata": found.get("metadata").cloned().unwrap_or(Value::Null),
            })),
        }
    }

    /// docs/spec/conditions.md §9.3
    fn fetch(&mut self, entry: &str, call: &Value) -> Result<Value, Failure> {
        let raw = call
            .get("urlPath")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // The default is not part of what is substituted in time to matter, but it is.
        let call_now = substitute_all(self, call).map_err(|error| {
            error.wrap(|text| {
                format!("failed to substitute variables in context entry {entry} {raw}: {text}")
            })
        })?;
        let path = match call_now.get("urlPath") {
            Some(Value::String(path)) => path.clone(),
            None => return Err(Failure::NotDone("calls of services")),
            Some(_) => return Err(Failure::NotDone("a path of a call that is no text")),
        };
        if path.contains(['%', ';']) || path.contains("..") || path.contains("//") {
            return Err(Failure::NotDone("a path of a call that is not plain"));
        }
        let own = self.policy_namespace.as_str();
        if !own.is_empty() {
            let clean = clean_path(&path);
            match namespace_of_path(&clean) {
                Some(namespace) if namespace == own => {}
                Some(namespace) => {
                    return Err(Failure::error(format!(
                        "path {clean} refers to namespace {namespace}, which is different from \
                         the policy namespace {own}"
                    )));
                }
                None => {
                    return Err(Failure::error(format!(
                        "path {clean} does not contain a namespace segment, which is required \
                         for namespaced policies"
                    )));
                }
            }
        }
        let method = call_now
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or("GET");
        let all = self.request.outside.api_calls.as_ref();
        match all.and_then(|all| all.get(&format!("{method} {path}"))) {
            Some(found) => Ok(found.clone()),
            None => match call.get("default").filter(|value| !value.is_null()) {
                Some(default) => Ok(default.clone()),
                None => Err(Failure::error(format!(
                    "failed to {method} resource with raw url: {path}: no answer to {method} {path}"
                ))),
            },
        }
    }

    fn transformed(
        &mut self,
        entry: &str,
        call: &Value,
        fetched: &Value,
    ) -> Result<Value, Failure> {
        let raw = call
            .get("jmesPath")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if raw.is_empty() || call.get("default") == Some(fetched) {
            return Ok(fetched.clone());
        }
        let path = substitute_all(self, &json!(raw)).map_err(|error| {
            error.wrap(|text| {
                format!(
                    "failed to substitute variables in context entry {entry} JMESPath {raw}: {text}"
                )
            })
        })?;
        let Value::String(path) = path else {
            return Err(Failure::Panic("a path of a call that is no text"));
        };
        jmespath::search(&path, &through_json(fetched))
            .and_then(Datum::into_value)
            .map_err(|error| {
                error.wrap(|text| {
                    format!("failed to apply JMESPath {path} for context entry {entry}: {text}")
                })
            })
    }

    /// docs/spec/conditions.md §9.4
    fn global_entry(&mut self, entry: &str, reference: &Value) -> Result<Value, Failure> {
        let reference = substitute_all(self, reference)?;
        let text = |key: &str| match reference.get(key) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(Failure::error(UNFIXED)),
        };
        let (name, path) = (text("name")?, text("jmesPath")?);
        let mut parts = name.split('.');
        let key = parts.next().unwrap_or_default();
        let projection = parts.next().unwrap_or_default();
        let all = self.request.outside.global_entries.as_ref();
        let Some(found) = all.and_then(|all| all.get(key)) else {
            return Err(Failure::error(format!("failed to fetch entry key={key}")));
        };
        // The texts about projections are those of the data's owner.
        let found = match (projection, found) {
            ("", found) => Some(found),
            (projection, Value::Object(members)) => members.get(projection),
            _ => None,
        };
        let found = found.ok_or_else(|| Failure::error(UNFIXED))?;
        if path.is_empty() {
            return Ok(found.clone());
        }
        jmespath::search(path, &through_json(found))
            .and_then(Datum::into_value)
            .map_err(|error| {
                error.wrap(|text| {
                    format!("failed to apply JMESPath {path} for context entry {entry}: {text}")
                })
            })
    }
}

/// An expression over a value alone (docs/spec/jmespath.md §1).
fn search_alone(path: &str, value: &Value) -> Result<Value, Failure> {
    if let Some(error) = jmespath::syntax_error(path) {
        return Err(Failure::error(format!(
            "failed to compile JMESPath: {path}, error: {error}"
        )));
    }
    jmespath::search(path, value).and_then(Datum::into_value)
}

/// `^/api(s)?/.*?/namespaces/([^/]+)/?.*$` (docs/spec/conditions.md §9.3).
fn namespace_of_path(path: &str) -> Option<&str> {
    let rest = path
        .strip_prefix("/apis/")
        .or_else(|| path.strip_prefix("/api/"))?;
    let (_, after) = rest.split_once("/namespaces/")?;
    let namespace = after.split('/').next()?;
    (!namespace.is_empty()).then_some(namespace)
}

/// `(?:\A|\z|\s|[^.0-9A-Za-z])NAME\b` (docs/spec/conditions.md §8.2).
fn mentions(query: &str, name: &str) -> Result<bool, Failure> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        // The name is part of the regular expression as it is.
        let pattern = format!("(?:\\A|\\z|\\s|[^.0-9A-Za-z]){name}\\b");
        return jmespath::regex_matches(&pattern, query);
    }
    Ok(query.match_indices(name).any(|(at, _)| {
        let before = query.get(..at).and_then(|before| before.chars().last());
        let after = query.get(at + name.len()..);
        let after = after.and_then(|after| after.chars().next());
        let starts = before.is_none_or(|one| one != '.' && !one.is_ascii_alphanumeric());
        starts && after.is_none_or(|one| !is_word(one))
    }))
}

/// Maps merge key by key, anything else is overwritten (docs/spec/conditions.md §6).
fn merge(into: &mut Value, from: &Value, overwrite_maps: bool) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else {
        return;
    };
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(old @ Value::Object(_)), Value::Object(_)) if !overwrite_maps => {
                merge(old, value, false);
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Namespace and name of a service account (docs/spec/conditions.md §6).
fn service_account(user: &str) -> (String, String) {
    const PREFIX: usize = "system:serviceaccount:".len();
    let rest = user.get(PREFIX..).unwrap_or_default();
    match rest.split_once(':') {
        Some((namespace, name)) => {
            let name = name.split(':').next().unwrap_or_default();
            (namespace.to_owned(), name.to_owned())
        }
        None => (String::new(), String::new()),
    }
}
