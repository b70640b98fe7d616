//! The lists kept by hand: `dangerous.toml`, bugs that must be caught, and `equivalent.toml`,
//! changes that change nothing that anybody can see.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::bug::{Bug, Form};

#[derive(Deserialize)]
struct Dangerous {
    bug: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    file: String,
    /// Text before `right`, for a `right` that the file holds more than once.
    after: Option<String>,
    right: String,
    wrong: String,
    #[serde(default = "expression")]
    form: Form,
}

fn expression() -> Form {
    Form::Expression
}

/// The bugs of `dangerous.toml`.
///
/// # Errors
///
/// A text is not in its file, or more than once.
pub fn dangerous(root: &Path) -> Result<Vec<Bug>, Box<dyn Error>> {
    let text = fs::read_to_string(root.join("conformance/planted/dangerous.toml"))?;
    let list: Dangerous = toml::from_str(&text)?;
    list.bug.into_iter().map(|row| located(root, row)).collect()
}

fn located(root: &Path, row: Row) -> Result<Bug, Box<dyn Error>> {
    let text = fs::read_to_string(root.join(&row.file))
        .map_err(|error| format!("{}: {}: {error}", row.name, row.file))?;
    let from = match &row.after {
        Some(after) => match text.find(after.as_str()) {
            Some(at) => at + after.len(),
            None => return Err(format!("{}: `{after}` is not in {}", row.name, row.file).into()),
        },
        None => 0,
    };
    let mut found = text[from..].match_indices(row.right.as_str());
    let Some((at, _)) = found.next() else {
        return Err(format!("{}: `{}` is not in {}", row.name, row.right, row.file).into());
    };
    if row.after.is_none() && found.next().is_some() {
        let message = "more than once; say what comes before it (`after`)";
        return Err(format!("{}: `{}` is in {} {message}", row.name, row.right, row.file).into());
    }
    let start = from + at;
    Ok(Bug {
        bytes: start..start + row.right.len(),
        file: row.file,
        right: row.right,
        wrong: row.wrong,
        form: row.form,
        name: row.name,
    })
}

#[derive(Deserialize)]
struct Equivalents {
    #[serde(default)]
    change: Vec<Equivalent>,
}

/// A change that nobody can see, and why.
#[derive(Deserialize)]
pub struct Equivalent {
    file: String,
    right: String,
    wrong: String,
    #[expect(dead_code, reason = "for the reader of the list")]
    reason: String,
}

impl Equivalent {
    pub fn explains(&self, bug: &Bug) -> bool {
        self.file == bug.file && self.right == bug.right && self.wrong == bug.wrong
    }
}

/// The changes of `equivalent.toml`.
pub fn equivalent(root: &Path) -> Result<Vec<Equivalent>, Box<dyn Error>> {
    let text = fs::read_to_string(root.join("conformance/planted/equivalent.toml"))?;
    Ok(toml::from_str::<Equivalents>(&text)?.change)
}
