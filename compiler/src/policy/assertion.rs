//! Parses the keys and leaves of assertion trees into [`Statement`]s (docs/spec/assert.md
//! §4).
//!
//! The tree itself is kept as read. Expressions are parsed here too, so that a tree with an
//! invalid expression is rejected with its location.

use crate::calls;
use kpvm_syntax::jmespath::{self, AssertionNode, Dialect, Expression, Node};
use kpvm_syntax::tree::{Span, Tree, TreeValue};

/// Maximum length of an expression in a message, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// A part of an assertion tree that can never be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionError {
    /// What is wrong.
    pub message: String,
    /// Location.
    pub span: Span,
    /// How to fix it.
    pub hint: String,
}

/// A parsed map key or leaf text.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'t> {
    /// `~.` or `~name.`: iterates over the value.
    pub iteration: Option<Iteration<'t>>,
    /// `->name`: binds the value to a name.
    pub binding: Option<&'t str>,
    /// What is looked up.
    pub projection: Projection<'t>,
}

/// `~` prefix of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration<'t> {
    /// Name of the index or key inside the iteration.
    pub name: Option<&'t str>,
}

/// Lookup of a key or leaf.
#[derive(Debug, Clone, PartialEq)]
pub enum Projection<'t> {
    /// The value under this literal key.
    Key(&'t str),
    /// The value of an expression.
    Expression(Expression),
}

/// Parses a key.
///
/// # Errors
/// If its expression is invalid.
pub fn read_key(key: &str, span: Span) -> Result<Statement<'_>, AssertionError> {
    let (iteration, rest) = split_iteration(key);
    let (rest, binding) = split_binding(rest);
    let projection = if let Some(literal) = escaped(rest) {
        Projection::Key(literal)
    } else if let Some(expression) = in_parentheses(rest) {
        Projection::Expression(read_expression(expression, span)?)
    } else {
        Projection::Key(rest)
    };
    Ok(Statement {
        iteration,
        binding,
        projection,
    })
}

/// Parses a leaf that is an expression; `None` for a leaf that is compared literally.
///
/// # Errors
/// If the expression is invalid, or has a binding or an iteration.
pub fn read_leaf(leaf: &Tree) -> Result<Option<Expression>, AssertionError> {
    let TreeValue::String(text) = &leaf.value else {
        return Ok(None);
    };
    let statement = read_key(text, leaf.span)?;
    let Projection::Expression(expression) = statement.projection else {
        return Ok(None);
    };
    let refused = match (statement.iteration, statement.binding) {
        (Some(Iteration { name: Some(_) }), _) => "foreach is not supported on the RHS",
        (_, Some(_)) => "binding is not supported on the RHS",
        _ => return Ok(Some(expression)),
    };
    Err(AssertionError {
        message: refused.into(),
        span: leaf.span,
        hint: "write `~` and `->` in a key".into(),
    })
}

/// Names in a tree that are unbound where they are used, each with the location of its key
/// or leaf: using one is an error at evaluation (docs/spec/assert.md §5.4). `names` are
/// those of the rule's context entries. Invalid parts are skipped.
pub fn unbound_names(tree: &Tree, names: &[&str]) -> Vec<(String, Span)> {
    let mut search = Search {
        bound: names.iter().map(|name| (*name).to_owned()).collect(),
        unbound: Vec::new(),
    };
    search.tree(tree);
    search.unbound
}

/// Recursion depth is bounded by that of the tree and of its expressions, which their
/// readers limit.
struct Search {
    bound: Vec<String>,
    unbound: Vec<(String, Span)>,
}

impl Search {
    fn tree(&mut self, tree: &Tree) {
        match &tree.value {
            TreeValue::Map(members) => {
                for member in members {
                    let Ok(statement) = read_key(&member.key, member.key_span) else {
                        continue;
                    };
                    if let Projection::Expression(expression) = &statement.projection {
                        self.expression(expression, member.key_span);
                    }
                    let visible = self.bound.len();
                    let index = statement.iteration.and_then(|iteration| iteration.name);
                    let names = [statement.binding, index].into_iter().flatten();
                    self.bound.extend(names.map(str::to_owned));
                    self.tree(&member.value);
                    self.bound.truncate(visible);
                }
            }
            TreeValue::List(items) => items.iter().for_each(|item| self.tree(item)),
            _ => {
                if let Ok(Some(expression)) = read_leaf(tree) {
                    self.expression(&expression, tree.span);
                }
            }
        }
    }

    fn expression(&mut self, expression: &Expression, span: Span) {
        let visible = self.bound.len();
        if let Node::Assertion(node) = &expression.node {
            match &**node {
                AssertionNode::Variable(name) if !self.bound.iter().any(|one| **one == **name) => {
                    self.unbound.push((name.to_string(), span));
                }
                AssertionNode::Let { bindings, body } => {
                    for (_, value) in bindings {
                        self.expression(value, span);
                    }
                    let names = bindings.iter().map(|(name, _)| name.to_string());
                    self.bound.extend(names);
                    self.expression(body, span);
                    self.bound.truncate(visible);
                    return;
                }
                _ => {}
            }
        }
        for child in expression.node.children() {
            self.expression(child, span);
        }
    }
}

fn read_expression(text: &str, span: Span) -> Result<Expression, AssertionError> {
    let mut shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let refuse = |message: &str, hint: Option<String>| AssertionError {
        message: format!("`{shown}` is no expression: {message}"),
        span,
        hint: hint.unwrap_or_else(|| "expressions are of the community's JMESPath".into()),
    };
    let expression = jmespath::parse_in(text, Dialect::Assertion)
        .map_err(|error| refuse(&error.message, None))?;
    match calls::check_in(&expression, Dialect::Assertion)
        .into_iter()
        .next()
    {
        None => Ok(expression),
        Some(problem) => Err(refuse(&problem.message, problem.hint)),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Go's `\s`.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// `^~(\w+)?\.(.*)`: text after a line break is lost.
fn split_iteration(key: &str) -> (Option<Iteration<'_>>, &str) {
    let behind = key.strip_prefix('~').and_then(|name| {
        let rest = name.trim_start_matches(is_word);
        let name = name.strip_suffix(rest).filter(|name| !name.is_empty());
        Some((Iteration { name }, rest.strip_prefix('.')?))
    });
    match behind {
        Some((iteration, rest)) => (Some(iteration), rest.split('\n').next().unwrap_or_default()),
        None => (None, key),
    }
}

/// `(.*)\s*->\s*(\w+)$`: only the line before the arrow counts.
fn split_binding(key: &str) -> (&str, Option<&str>) {
    let front = key.trim_end_matches(is_word);
    let name = key.strip_prefix(front).unwrap_or_default();
    let front = front.trim_end_matches(is_space).strip_suffix("->");
    let Some(front) = front.filter(|_| !name.is_empty()) else {
        return (key, None);
    };
    let written = front.trim_end_matches(is_space);
    let line = written.rfind('\n').map_or(0, |end| end + 1);
    let line = front.get(line..).unwrap_or_default();
    (line.split('\n').next().unwrap_or_default(), Some(name))
}

/// `^\\(.+)\\$`
fn escaped(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('\\')?.strip_suffix('\\')?;
    (!inner.is_empty() && !inner.contains('\n')).then_some(inner)
}

/// `^\((?:(\w+);)?(.+)\)$`: the named engine makes no difference.
fn in_parentheses(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    if inner.is_empty() || inner.contains('\n') {
        return None;
    }
    let named = inner.split_once(';').filter(|(engine, statement)| {
        !engine.is_empty() && engine.chars().all(is_word) && !statement.is_empty()
    });
    Some(named.map_or(inner, |(_, statement)| statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iteration, binding, whether an expression, statement.
    type Parts<'t> = (Option<Option<&'t str>>, Option<&'t str>, bool, String);

    fn parts(key: &str) -> Parts<'_> {
        let statement = read_key(key, Span::default()).unwrap();
        let (is_expression, text) = match statement.projection {
            Projection::Key(text) => (false, text.to_owned()),
            Projection::Expression(expression) => (true, expression.to_string()),
        };
        let iteration = statement.iteration.map(|iteration| iteration.name);
        (iteration, statement.binding, is_expression, text)
    }

    /// The table of docs/spec/assert.md §4.1, and further effects of its regular
    /// expressions.
    #[test]
    fn keys() {
        type Case<'t> = (
            &'t str,
            Option<Option<&'t str>>,
            Option<&'t str>,
            bool,
            &'t str,
        );
        let each = Some(None);
        let cases: &[Case<'_>] = &[
            ("test", None, None, false, "test"),
            ("test.test", None, None, false, "test.test"),
            ("(test.test)", None, None, true, "test.test"),
            ("~.test", each, None, false, "test"),
            ("~i.(a.b)", Some(Some("i")), None, true, "a.b"),
            ("test->foo", None, Some("foo"), false, "test"),
            ("~.(test)->foo", each, Some("foo"), true, "test"),
            ("\\test\\", None, None, false, "test"),
            ("\\/test/\\", None, None, false, "/test/"),
            ("\\(test)\\", None, None, false, "(test)"),
            ("\\~(test)->foo\\", None, None, false, "~(test)->foo"),
            (
                "~index.\\(test)\\->name",
                Some(Some("index")),
                Some("name"),
                false,
                "(test)",
            ),
            ("(jp; a)", None, None, true, "a"),
            ("(cel; a)", None, None, true, "a"),
            ("", None, None, false, ""),
            ("~foo", None, None, false, "~foo"),
            ("(a) ->b", None, Some("b"), false, "(a) "),
            ("(a)-> b", None, Some("b"), true, "a"),
            ("(a\n)", None, None, false, "(a\n)"),
            ("a->b->c", None, Some("c"), false, "a->b"),
            ("->a", None, Some("a"), false, ""),
            ("a->", None, None, false, "a->"),
            ("x\n(a)->b", None, Some("b"), true, "a"),
            ("a\n->b", None, Some("b"), false, "a"),
            ("~.a\nb", each, None, false, "a"),
            ("()", None, None, false, "()"),
            ("\\\\", None, None, false, "\\\\"),
            ("~é.a", None, None, false, "~é.a"),
        ];
        for &(key, iteration, binding, is_expression, text) in cases {
            let expected = (iteration, binding, is_expression, text.to_owned());
            assert_eq!(parts(key), expected, "{key:?}");
        }
    }

    /// docs/spec/assert.md §5.1, as in Kyverno's own package.
    #[test]
    fn leaves() {
        let leaf = |text: &str| {
            let leaf = Tree::new(TreeValue::String(text.into()), Span::default());
            match read_leaf(&leaf) {
                Ok(expression) => Ok(expression.map(|expression| expression.to_string())),
                Err(error) => Err(error.message),
            }
        };
        let foreach = Err("foreach is not supported on the RHS".to_owned());
        let binding = Err("binding is not supported on the RHS".to_owned());
        for (text, expected) in [
            ("a", Ok(None)),
            ("(a.b)", Ok(Some("a.b".to_owned()))),
            ("a->b", Ok(None)),
            ("~.a", Ok(None)),
            ("\\(a)\\", Ok(None)),
            ("~.(a)", Ok(Some("a".to_owned()))),
            ("~i.(a)", foreach),
            ("(a)->b", binding),
        ] {
            assert_eq!(leaf(text), expected, "{text}");
        }
    }

    #[test]
    fn names_that_nothing_binds() {
        let text = "{'(a)->x': {b: '($x + $y)', '~i.c': {'($i)': '(let $z = $x in $z)'}}, '($x)': '($entry + $z)'}";
        let options = kpvm_syntax::yaml::Options {
            duplicate_keys: kpvm_syntax::yaml::DuplicateKeys::Refuse,
            limits: &kpvm_semantics::limits::Limits::DEFAULT,
        };
        let tree = kpvm_syntax::yaml::read_all(text, options)
            .remove(0)
            .unwrap();
        let names = unbound_names(&tree, &["entry"]);
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["y", "x", "z"]);
    }

    #[test]
    fn expressions_that_are_none() {
        for (key, message) in [
            (
                "(a b)",
                "`a b` is no expression: SyntaxError: Unexpected token at the end of the expression: tUnquotedIdentifier",
            ),
            (
                "(lenght(a))",
                "`lenght(a)` is no expression: there is no function `lenght`",
            ),
            (
                "(at(a))",
                "`at(a)` is no expression: `at` takes 2 arguments, not 1",
            ),
        ] {
            let error = read_key(key, Span::default()).unwrap_err();
            assert_eq!(error.message, message);
        }
    }
}
