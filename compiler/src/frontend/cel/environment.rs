//! The environment of an expression: libraries, variables, declared objects
//! (docs/spec/cel.md §2.4 and §3).

use std::collections::HashMap;
use std::sync::OnceLock;

use kpvm_format::cel::{ALIASES, Function, Library};
use kpvm_syntax::cel::Macros;

use super::types::{Overload, Type};

/// Names and types against which an expression is checked.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    libraries: Vec<Library>,
    /// Variables by their full names; later declarations hide earlier ones.
    variables: Vec<(String, Type)>,
    /// Fields of declared objects.
    objects: Vec<(String, Vec<(String, Type)>)>,
    /// Container in which names are looked up first: `a.b` for `a.b.x`, `a.x`, `x`.
    pub container: String,
    /// Whether items of a list and values of a map must have the same type.
    pub homogeneous: bool,
}

/// Libraries of every Kubernetes environment (docs/spec/cel.md §3).
const KUBERNETES: [Library; 7] = [
    Library::Standard,
    Library::Optional,
    Library::Strings,
    Library::Lists,
    Library::Sets,
    Library::TwoVariables,
    Library::Kubernetes,
];

impl Environment {
    /// An environment with these libraries and no variables.
    pub fn new(libraries: &[Library]) -> Self {
        Self {
            libraries: libraries.to_vec(),
            ..Self::default()
        }
    }

    /// Environment of `validate.cel` and of admission policies, without its variables.
    pub fn kubernetes() -> Self {
        let mut environment = Self::new(&KUBERNETES);
        environment.libraries.push(Library::OrValue);
        environment.homogeneous = true;
        environment.declare_request();
        environment
    }

    /// Environment of Kyverno's own policies, without its variables (docs/spec/cel.md §3):
    /// adds further libraries of cel-go and Kyverno. In a namespaced policy, objects are
    /// those of its namespace.
    pub fn kyverno(is_namespaced: bool) -> Self {
        let mut environment = Self::kubernetes();
        environment.libraries.extend([
            Library::Bindings,
            Library::Encoders,
            Library::Math,
            Library::Regex,
            Library::Kyverno,
            match is_namespaced {
                true => Library::KyvernoNamespaced,
                false => Library::KyvernoCluster,
            },
        ]);
        for field in ["Name", "Namespace"] {
            environment.declare_field("kyverno.ServiceAccount", field, Type::String);
        }
        environment
    }

    /// Macros of its libraries.
    pub fn macros(&self) -> Macros {
        Macros {
            optional: self.has(Library::Optional),
            two_variables: self.has(Library::TwoVariables),
            or_value: self.has(Library::OrValue),
            lists: self.has(Library::Lists),
            bindings: self.has(Library::Bindings),
            block: self.has(Library::Block),
            math: self.has(Library::Math),
        }
    }

    /// Whether it has a library.
    pub fn has(&self, library: Library) -> bool {
        self.libraries.contains(&library)
    }

    /// Declares a variable.
    pub fn declare(&mut self, name: &str, ty: Type) {
        self.variables.push((name.to_owned(), ty));
    }

    /// Removes a variable.
    pub fn forget(&mut self, name: &str) {
        self.variables.retain(|(known, _)| known != name);
    }

    /// Declares an object, or another field of it.
    pub fn declare_field(&mut self, object: &str, field: &str, ty: Type) {
        let field = (field.to_owned(), ty);
        match self.objects.iter_mut().find(|(name, _)| name == object) {
            Some((_, fields)) => fields.push(field),
            None => self.objects.push((object.to_owned(), vec![field])),
        }
    }

    /// Whether an object is declared.
    pub fn has_object(&self, object: &str) -> bool {
        self.objects.iter().any(|(name, _)| name == object)
    }

    /// Declares an object without fields.
    pub fn declare_object(&mut self, object: &str) {
        if !self.objects.iter().any(|(name, _)| name == object) {
            self.objects.push((object.to_owned(), Vec::new()));
        }
    }

    /// Full names that a name may denote, in lookup order.
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.to_owned()];
        }
        let mut container = self.container.as_str();
        let mut names = Vec::new();
        while !container.is_empty() {
            names.push(format!("{container}.{name}"));
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        names.push(name.to_owned());
        names
    }

    /// Type of the variable with exactly that name.
    pub fn variable(&self, name: &str) -> Option<&Type> {
        let mut declared = self.variables.iter().rev();
        declared.find(|(known, _)| known == name).map(|(_, ty)| ty)
    }

    /// The type that a name denotes.
    pub fn type_name(&self, name: &str) -> Option<Type> {
        Some(match name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "null_type" => Type::Null,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "type" => Type::Type(Box::new(Type::Dyn)),
            "optional_type" if self.has(Library::Optional) => Type::optional(Type::Dyn),
            "net.IP" | "net.CIDR" if self.has(Library::Kubernetes) => {
                Type::Opaque(name.to_owned(), Vec::new())
            }
            _ => return None,
        })
    }

    /// The type of a declared object's field.
    pub fn field(&self, object: &str, field: &str) -> Option<&Type> {
        let (_, fields) = self.objects.iter().find(|(name, _)| name == object)?;
        fields
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, ty)| ty)
    }

    /// Functions with a name, with their overloads.
    pub fn functions(
        &self,
        name: &str,
    ) -> impl Iterator<Item = &'static (Function, Overload)> + '_ {
        static TABLE: OnceLock<HashMap<&'static str, Vec<(Function, Overload)>>> = OnceLock::new();
        let table = TABLE.get_or_init(|| {
            let mut table: HashMap<&'static str, Vec<(Function, Overload)>> = HashMap::new();
            for &function in Function::ALL {
                let overloads = function.overloads().iter();
                let rows = overloads.map(|text| (function, Overload::parse(text)));
                table.entry(function.name()).or_default().extend(rows);
            }
            table
        });
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name, |(_, name)| name);
        let rows = table.get(name).map_or(&[][..], Vec::as_slice);
        rows.iter()
            .filter(|(function, _)| self.has(function.library()))
    }

    /// Similar names, for a hint.
    pub fn similar(&self, name: &str) -> Option<String> {
        let variables = self.variables.iter().map(|(name, _)| name.as_str());
        let functions = Function::ALL
            .iter()
            .filter(|function| self.has(function.library()))
            .map(|function| function.name());
        variables
            .chain(functions)
            .filter(|known| known.eq_ignore_ascii_case(name) || distance(known, name) == 1)
            .map(str::to_owned)
            .next()
    }

    /// Declares the objects of `request` and `namespaceObject` (docs/spec/cel.md §2.4).
    fn declare_request(&mut self) {
        let object = |name: &str| Type::Object(format!("kubernetes.{name}"));
        let text = Type::String;
        let mut fields = |name: &str, fields: Vec<(&str, Type)>| {
            for (field, ty) in fields {
                self.declare_field(&format!("kubernetes.{name}"), field, ty);
            }
        };
        let texts = |names: &[&'static str]| -> Vec<(&'static str, Type)> {
            names.iter().map(|name| (*name, Type::String)).collect()
        };
        fields("GroupVersionKind", texts(&["group", "version", "kind"]));
        fields(
            "GroupVersionResource",
            texts(&["group", "version", "resource"]),
        );
        let mut user = texts(&["username", "uid"]);
        user.push(("groups", Type::list(text.clone())));
        user.push(("extra", Type::map(text.clone(), Type::list(text.clone()))));
        fields("UserInfo", user);
        let mut request = texts(&[
            "subResource",
            "requestSubResource",
            "name",
            "namespace",
            "operation",
        ]);
        request.extend([
            ("kind", object("GroupVersionKind")),
            ("resource", object("GroupVersionResource")),
            ("requestKind", object("GroupVersionKind")),
            ("requestResource", object("GroupVersionResource")),
            ("userInfo", object("UserInfo")),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ]);
        fields("AdmissionRequest", request);
        let mut metadata = texts(&[
            "name",
            "generateName",
            "namespace",
            "UID",
            "resourceVersion",
        ]);
        metadata.extend([
            ("labels", Type::map(text.clone(), text.clone())),
            ("annotations", Type::map(text.clone(), text.clone())),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("finalizers", Type::list(text.clone())),
        ]);
        fields("NamespaceMetadata", metadata);
        fields("NamespaceSpec", vec![("finalizers", Type::list(text))]);
        let mut condition = texts(&["status", "type", "message", "reason"]);
        condition.push(("lastTransitionTime", Type::Timestamp));
        fields("NamespaceCondition", condition);
        fields(
            "NamespaceStatus",
            vec![
                ("conditions", Type::list(object("NamespaceCondition"))),
                ("phase", Type::String),
            ],
        );
        fields(
            "Namespace",
            vec![
                ("metadata", object("NamespaceMetadata")),
                ("spec", object("NamespaceSpec")),
                ("status", object("NamespaceStatus")),
            ],
        );
    }
}

/// 1 if one edit turns one text into the other, more otherwise.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > 1 || left == right {
        return if left == right { 0 } else { 2 };
    }
    let common = left
        .iter()
        .zip(&right)
        .take_while(|(left, right)| left == right)
        .count();
    let tail =
        |longer: &[char], shorter: &[char]| longer.get(common + 1..) == shorter.get(common..);
    let same = left.len() == right.len() && left.get(common + 1..) == right.get(common + 1..);
    if same || tail(&left, &right) || tail(&right, &left) {
        1
    } else {
        2
    }
}
