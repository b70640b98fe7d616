//! `parse_yaml` (docs/spec/jmespath.md §7).

use kpvm_semantics::FunctionError;
use kpvm_syntax::yaml::{self, DuplicateKeys, YamlError, YamlErrorKind};

use super::{Outcome, push_tree};
use crate::document::NodeId;
use crate::function::Values;

/// The first document; null if there is none.
pub(in crate::function) fn parse_yaml(values: &mut Values<'_>, a: NodeId) -> Outcome {
    values.charge(values.view().text(a).len() as u64 / 2)?;
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::LastWins,
        limits: &values.limits,
    };
    let text = values.str(a);
    let read = match yaml::split_documents(text).into_iter().next() {
        Some(document) => yaml::read(document, options),
        None => Ok(None),
    };
    match read {
        Ok(Some(tree)) => push_tree(values, &tree),
        Ok(None) => values.new_null(),
        Err(error) => Err(yaml_error(text, &error)),
    }
}

/// Go's text where known; otherwise ours, which locates the error better.
fn yaml_error(text: &str, error: &YamlError) -> FunctionError {
    match error.kind {
        YamlErrorKind::TooLarge { .. }
        | YamlErrorKind::TooDeep { .. }
        | YamlErrorKind::TooManyNodes { .. }
        | YamlErrorKind::ExcessiveAliases => FunctionError::refused(format!("yaml: {error}")),
        YamlErrorKind::NotFinite => {
            let (start, end) = (error.span.start as usize, error.span.end as usize);
            let number = text.get(start..end).unwrap_or_default();
            let name = match number.to_ascii_lowercase().as_str() {
                ".nan" => "NaN",
                number if number.starts_with('-') => "-Inf",
                _ => "+Inf",
            };
            FunctionError::failed(format!("json: unsupported value: {name}"))
        }
        _ => FunctionError::failed(format!("yaml: {error}")),
    }
}
