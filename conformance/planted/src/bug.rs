//! A bug that can be planted: one piece of a source file, and what replaces it.

use std::ops::Range;

use serde::Deserialize;

/// How the replacement is written into the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// An expression, which becomes `(if planted { wrong } else { right })`.
    Expression,
    /// One or more statements, which become `if planted { wrong } else { right }`.
    Statement,
}

/// A bug that can be planted.
#[derive(Clone, Debug)]
pub struct Bug {
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The bytes of the file that are replaced.
    pub bytes: Range<usize>,
    pub right: String,
    pub wrong: String,
    pub form: Form,
    /// What the bug is called in reports.
    pub name: String,
}

impl Bug {
    /// The text that takes the place of `right`; `number` is the value of the switch.
    pub fn planted(&self, number: usize) -> String {
        let (right, wrong) = (&self.right, &self.wrong);
        match self.form {
            Form::Expression => {
                format!("(if kpvm_switch::on({number}) {{ {wrong} }} else {{ {right} }})")
            }
            Form::Statement => {
                format!("if kpvm_switch::on({number}) {{ {wrong} }} else {{ {right} }}")
            }
        }
    }

    /// Whether the two change the same text.
    pub fn overlaps(&self, other: &Bug) -> bool {
        self.file == other.file
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}
