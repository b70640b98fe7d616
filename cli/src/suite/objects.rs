//! Resources of a suite (docs/spec/cli.md §3 and §8.6): which paths count, without
//! duplicates.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{Location, SourceId};

use crate::input::{InputFile, read_regular_file};
use crate::resources::{Resource, Resources};
use crate::strict::Text;
use crate::suite::document::is_url;

/// The resources of a suite.
#[derive(Debug)]
pub struct Objects {
    /// The objects, and problems of their files.
    pub resources: Resources,
    /// Errors, located where the files are named.
    pub errors: Vec<Diagnostic>,
    /// Duplicate objects.
    pub warnings: Vec<Diagnostic>,
}

/// Identity by which rows select an object: apiVersion, kind, namespace and name; for a
/// payload only its path (docs/spec/cli.md §4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn of(resource: &Resource) -> Self {
        if let Some(payload) = &resource.payload {
            return Self {
                api_version: String::new(),
                kind: String::new(),
                namespace: String::new(),
                name: payload.path.clone(),
            };
        }
        Self {
            api_version: resource.text("apiVersion").to_owned(),
            kind: resource.text("kind").to_owned(),
            namespace: resource.metadata("namespace").to_owned(),
            name: resource.metadata("name").to_owned(),
        }
    }

    /// `v1/Pod/default/web`, as in tables.
    pub fn path(&self) -> String {
        if self.kind.is_empty() {
            return self.name.clone();
        }
        format!(
            "{}/{}/{}/{}",
            self.api_version, self.kind, self.namespace, self.name
        )
    }
}

/// Keys of all resources, indexed by name.
#[derive(Debug, Default)]
pub struct Keys {
    /// The keys, in the order of the resources.
    pub all: Vec<Key>,
    by_name: HashMap<String, Vec<usize>>,
}

impl Keys {
    /// Builds the index of some resources.
    pub fn of(resources: &[Resource]) -> Self {
        let all: Vec<Key> = resources.iter().map(Key::of).collect();
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, key) in all.iter().enumerate() {
            by_name.entry(key.name.clone()).or_default().push(number);
        }
        Self { all, by_name }
    }

    /// Indices of the resources with a name that pass a test.
    pub fn numbers<'k>(
        &'k self,
        name: &str,
        passes: impl Fn(&Key) -> bool + 'k,
    ) -> impl Iterator<Item = usize> + 'k {
        let numbers = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let is_selected = move |number: &usize| self.all.get(*number).is_some_and(&passes);
        numbers.iter().copied().filter(is_selected)
    }
}

/// Reads the resources; `suite` is the source in which the paths are named.
pub fn read_objects(paths: &[Text], directory: &Path, suite: SourceId) -> Objects {
    let mut objects = Objects {
        resources: Resources::keeping_lists(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let mut files: Vec<(PathBuf, &Text)> = paths
        .iter()
        .map(|path| (directory.join(&path.text), path))
        .collect();
    // A directory as the first path replaces all paths: only its own YAML files count.
    if let Some((first, named)) = files.first().cloned().filter(|(first, _)| first.is_dir()) {
        match yaml_files(&first) {
            Ok(found) => files = found.into_iter().map(|file| (file, named)).collect(),
            Err(error) => {
                files.clear();
                objects.refuse(suite, named, &first, &crate::input::reason(&error));
            }
        }
    }
    for (file, named) in files {
        if is_url(&named.text) {
            let reason = "this program fetches nothing: download it and give the file";
            objects.refuse(suite, named, Path::new(&named.text), reason);
            continue;
        }
        match read_regular_file(&file) {
            Ok(text) => objects.resources.add_file(InputFile {
                name: file.display().to_string(),
                text,
                from_directory: false,
            }),
            Err(reason) => objects.refuse(suite, named, &file, &reason),
        }
    }
    objects.drop_repeated();
    objects
}

/// Adds the payloads; having no kind distinguishes them from objects.
pub fn add_payloads(objects: &mut Objects, paths: &[Text], directory: &Path, suite: SourceId) {
    for path in paths {
        let file = directory.join(&path.text);
        match read_regular_file(&file) {
            Ok(text) => {
                let file = InputFile {
                    name: file.display().to_string(),
                    text,
                    from_directory: false,
                };
                objects.resources.add_payload(file, &path.text);
            }
            Err(reason) => objects.refuse(suite, path, &file, &reason),
        }
    }
}

/// YAML files of a directory, not of its subdirectories.
fn yaml_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl Objects {
    fn refuse(&mut self, suite: SourceId, named: &Text, file: &Path, reason: &str) {
        let location = Location {
            source: suite,
            span: named.span,
        };
        let message = format!("cannot read {}: {reason}", file.display());
        self.errors
            .push(Diagnostic::error("missing-file", message, location));
    }

    /// Keeps the first object of each group, kind, namespace and name (docs/spec/cli.md §3,
    /// step 3).
    fn drop_repeated(&mut self) {
        let mut known = BTreeSet::new();
        let warnings = &mut self.warnings;
        self.resources.list.retain(|resource| {
            let [group, _, kind] = resource.group_version_kind().map(str::to_owned);
            let key = Key::of(resource);
            let is_new = known.insert((group, kind, key.namespace.clone(), key.name.clone()));
            if !is_new {
                let message = format!("the resource {} is there twice", key.path());
                let hint = "only the first is tested";
                let warning =
                    Diagnostic::warning("repeated-resource", message, resource.location());
                warnings.push(warning.hint(hint));
            }
            is_new
        });
    }
}
