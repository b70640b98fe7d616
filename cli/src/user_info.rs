//! Kyverno's user info file: the user that makes the request (docs/spec/cli.md §7.10).

use std::path::Path;

use kpvm::engine::UserInfo;
use kpvm_compiler::source::Sources;
use kpvm_syntax::tree::Span;

use crate::input::{Unreadable, read_file};
use crate::problem::Problem;
use crate::strict::Decoder;

/// User of Kyverno's background scan.
const BACKGROUND: &str = "system:kyverno:background-scan";

/// The user of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    roles: Vec<String>,
    cluster_roles: Vec<String>,
    /// Whether the file states its apiVersion and kind; Kyverno warns if not.
    pub is_typed: bool,
}

/// Parts of a [`User`] in the form that requests need.
pub struct BorrowedUser<'u> {
    user: &'u User,
    lists: [Vec<&'u str>; 3],
}

impl User {
    /// Parses a text of kind UserInfo and adds it to the sources under a name.
    ///
    /// # Errors
    /// All its errors.
    pub fn read(name: &str, text: &str, sources: &mut Sources) -> Result<Self, Vec<Problem>> {
        let mut decoder = Decoder::new("user-info", sources.add(name, text));
        let user = parse_user(text, &mut decoder);
        decoder.finish(user)
    }

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
            uid: &self.user.uid,
            groups,
            roles,
            cluster_roles,
        }
    }
}

/// Replaces unknown parts by those of Kyverno's background scan, as for
/// ValidatingAdmissionPolicies (docs/spec/cel.md §5).
pub fn or_background(user: UserInfo<'_>) -> UserInfo<'_> {
    fn named(text: &str) -> &str {
        if text.is_empty() { BACKGROUND } else { text }
    }
    UserInfo {
        username: named(user.username),
        uid: named(user.uid),
        groups: match user.groups {
            [] => &[BACKGROUND],
            groups => groups,
        },
        ..user
    }
}

/// Reads a file of kind UserInfo and adds it to the sources.
///
/// # Errors
/// All its errors.
pub fn read_user(path: &Path, sources: &mut Sources) -> Result<User, Vec<Problem>> {
    let name = path.display().to_string();
    match read_file(path) {
        Ok(text) => User::read(&name, &text, sources),
        Err(reason) => Err(vec![Problem::Unreadable(Unreadable { name, reason })]),
    }
}

fn parse_user(text: &str, decoder: &mut Decoder) -> User {
    let mut user = User::default();
    let documents = decoder.documents(text);
    let Some(tree) = documents.first() else {
        if decoder.diagnostics.is_empty() {
            let message = "expected a UserInfo, found an empty file";
            decoder.refuse(Span::default(), message, None);
        }
        return user;
    };
    if let Some(second) = documents.get(1) {
        let message = "expected one UserInfo, found a second document";
        decoder.refuse(second.span, message, None);
    }
    let known = &[
        "apiVersion",
        "kind",
        "metadata",
        "roles",
        "clusterRoles",
        "userInfo",
    ];
    let fields = decoder.fields_with(tree, known, |field| {
        let is_old = field == "subject";
        is_old.then(|| "write `userInfo: {username: …, groups: […]}` instead".to_owned())
    });
    user.is_typed = fields.get("apiVersion").is_some() && fields.get("kind").is_some();
    user.roles = decoder.plain_texts(fields.get("roles"));
    user.cluster_roles = decoder.plain_texts(fields.get("clusterRoles"));
    if let Some(identity) = fields.get("userInfo") {
        let fields = decoder.fields(identity, &["username", "uid", "groups", "extra"]);
        user.username = decoder.text(fields.get("username"));
        user.uid = decoder.text(fields.get("uid"));
        user.groups = decoder.plain_texts(fields.get("groups"));
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;
    use kpvm_compiler::source::SourceId;

    /// The user, or the first error.
    fn parse(text: &str) -> Result<User, String> {
        let mut decoder = Decoder::new("user-info", SourceId(0));
        let user = parse_user(text, &mut decoder);
        match decoder.diagnostics.into_iter().next() {
            Some(diagnostic) => Err(diagnostic.message),
            None => Ok(user),
        }
    }

    #[test]
    fn the_format() {
        let text = "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nroles: [ns:dev]\nclusterRoles: [admin]\n\
                    userInfo: {username: ann, uid: x, groups: [a, 5], extra: {k: [v]}}\n";
        let user = parse(text).unwrap();
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
            ("roles: x", "expected a list, found text"),
            ("[]", "expected a map, found a list"),
            ("", "expected a UserInfo, found an empty file"),
            (
                "roles: []\n---\nroles: []",
                "expected one UserInfo, found a second document",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        assert!(!parse("clusterroles: [x]").unwrap().is_typed);
    }
}
