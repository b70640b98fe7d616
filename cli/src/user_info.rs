//! Kyverno's user info file: on whose behalf the request is made (sheet 08,
//! section 7.10).

use std::path::Path;

use kpvm::engine::UserInfo;
use kpvm::limits::Limits;
use kpvm::tree::{Span, Tree, TreeValue};
use kpvm::yaml::{self, DuplicateKeys};
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::{Location, Sources};

use crate::input::{Unreadable, read_file};
use crate::problem::Problem;

/// The user of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    username: String,
    groups: Vec<String>,
    roles: Vec<String>,
    cluster_roles: Vec<String>,
    /// Whether the file says its apiVersion and kind; Kyverno warns where it does not.
    pub is_typed: bool,
}

/// The parts of a [`User`] in the form that requests want.
pub struct BorrowedUser<'u> {
    user: &'u User,
    lists: [Vec<&'u str>; 3],
}

impl User {
    /// The user with its lists as slices of slices.
    pub fn borrow(&self) -> BorrowedUser<'_> {
        BorrowedUser {
            user: self,
            lists: [&self.groups, &self.roles, &self.cluster_roles]
                .map(|texts| texts.iter().map(String::as_str).collect()),
        }
    }
}

impl BorrowedUser<'_> {
    /// The user of a request.
    pub fn info(&self) -> UserInfo<'_> {
        let [groups, roles, cluster_roles] = &self.lists;
        UserInfo {
            username: &self.user.username,
            groups,
            roles,
            cluster_roles,
        }
    }
}

/// A user info file that cannot be used.
#[derive(Debug)]
pub struct BadUser {
    /// What is wrong.
    pub problem: Problem,
    /// The text that this is about.
    pub sources: Sources,
}

/// Reads the file.
///
/// # Errors
/// What is wrong with it.
pub fn read_user(path: &Path) -> Result<User, Box<BadUser>> {
    let name = path.display().to_string();
    let mut sources = Sources::new();
    let text = match read_file(path) {
        Ok(text) => text,
        Err(reason) => {
            let problem = Problem::Unreadable(Unreadable { name, reason });
            return Err(Box::new(BadUser { problem, sources }));
        }
    };
    let source = sources.add(name, text.as_str());
    parse_user(&text).map_err(|(span, message)| {
        let location = Location { source, span };
        let problem = Problem::InText(Diagnostic::error("user-info", message, location));
        Box::new(BadUser { problem, sources })
    })
}

type Refusal = (Span, String);

fn parse_user(text: &str) -> Result<User, Refusal> {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut documents = yaml::read_all(text, options).into_iter();
    let tree = match documents.next() {
        Some(document) => document.map_err(|error| (error.span, error.kind.to_string()))?,
        None => {
            return Err((
                Span::default(),
                "expected a UserInfo, found an empty file".into(),
            ));
        }
    };
    if let Some(Ok(second)) = documents.next() {
        return Err((
            second.span,
            "expected one UserInfo, found a second document".into(),
        ));
    }
    let mut user = User::default();
    let (mut has_version, mut has_kind) = (false, false);
    for_fields(&tree, &mut |field, value| {
        match field {
            "apiversion" => has_version = true,
            "kind" => has_kind = true,
            "metadata" => {}
            "roles" => user.roles = texts(value)?,
            "clusterroles" => user.cluster_roles = texts(value)?,
            "userinfo" => read_identity(value, &mut user)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    user.is_typed = has_version && has_kind;
    Ok(user)
}

fn read_identity(tree: &Tree, user: &mut User) -> Result<(), Refusal> {
    for_fields(tree, &mut |field, value| {
        match field {
            "username" => user.username = scalar(value)?,
            "groups" => user.groups = texts(value)?,
            "uid" | "extra" => {}
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// Hands every field to `take`, its name in lower case: Go's decoder does not tell
/// cases apart (sheet 08, section 8.4). A field that `take` does not know is refused.
fn for_fields(
    tree: &Tree,
    take: &mut dyn FnMut(&str, &Tree) -> Result<bool, Refusal>,
) -> Result<(), Refusal> {
    let members = match tree.as_map() {
        Some(members) => members,
        None if tree.is_null() => return Ok(()),
        None => {
            return Err((
                tree.span,
                format!("expected a map, found {}", tree.describe()),
            ));
        }
    };
    for member in members {
        if !take(&member.key.to_ascii_lowercase(), &member.value)? {
            return Err((member.key_span, format!("unknown field `{}`", member.key)));
        }
    }
    Ok(())
}

fn texts(tree: &Tree) -> Result<Vec<String>, Refusal> {
    match tree.as_list() {
        Some(items) => items.iter().map(scalar).collect(),
        None if tree.is_null() => Ok(Vec::new()),
        None => Err((
            tree.span,
            format!("expected a list of texts, found {}", tree.describe()),
        )),
    }
}

/// Numbers and booleans become texts where a text is expected (sheet 08, section 8.3).
fn scalar(tree: &Tree) -> Result<String, Refusal> {
    match &tree.value {
        TreeValue::String(text) => Ok(text.to_string()),
        TreeValue::Int(number) => Ok(number.to_string()),
        TreeValue::Float(number) => Ok(number.to_string()),
        TreeValue::Bool(value) => Ok(value.to_string()),
        TreeValue::Null => Ok(String::new()),
        TreeValue::List(_) | TreeValue::Map(_) => Err((
            tree.span,
            format!("expected a text, found {}", tree.describe()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_sheet_08_section_7_10() {
        let text = "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nroles: [ns:dev]\nclusterRoles: [admin]\n\
                    userInfo: {username: ann, uid: x, groups: [a, 5], extra: {k: [v]}}\n";
        let user = parse_user(text).unwrap();
        let borrowed = user.borrow();
        let info = borrowed.info();
        assert_eq!((info.username, info.groups), ("ann", &["a", "5"][..]));
        assert_eq!(
            (info.roles, info.cluster_roles),
            (&["ns:dev"][..], &["admin"][..])
        );
        assert!(user.is_typed);
    }

    #[test]
    fn what_is_not_of_the_format_is_refused_with_its_place() {
        for (text, expected) in [
            ("subject: {kind: User}", "unknown field `subject`"),
            ("userInfo: {name: x}", "unknown field `name`"),
            ("roles: x", "expected a list of texts, found text"),
            ("[]", "expected a map, found a list"),
            ("", "expected a UserInfo, found an empty file"),
            (
                "roles: []\n---\nroles: []",
                "expected one UserInfo, found a second document",
            ),
        ] {
            assert_eq!(parse_user(text).unwrap_err().1, expected, "{text}");
        }
        assert!(!parse_user("clusterroles: [x]").unwrap().is_typed);
    }
}
