//! YAML or JSON files, as kubectl and Kyverno read them.
//!
//! Kyverno reads JSON as YAML. Here the JSON reader is used unless the two might disagree:
//! a text that is not JSON, or for which a YAML reader would report an error, is read as
//! YAML.

use crate::json;
use crate::tree::Tree;
use crate::yaml::{self, Options, YamlError};

/// Reads every document of a file, in order. A document that is refused does not stop the
/// others; empty documents are left out.
pub fn read_all(text: &str, options: Options<'_>) -> Vec<Result<Tree, YamlError>> {
    match read_json(text, options) {
        Some(tree) => vec![Ok(tree)],
        None => yaml::read_all(text, options),
    }
}

/// Whether a text begins like a map or a list in JSON.
pub fn begins_like_json(text: &str) -> bool {
    let white_space = [' ', '\t', '\n', '\r'];
    text.trim_start_matches(white_space).starts_with(['{', '['])
}

/// The value of a JSON text; `None` if it must be read as YAML.
fn read_json(text: &str, options: Options<'_>) -> Option<Tree> {
    let is_json = begins_like_json(text)
        && text.len() <= options.limits.document_bytes
        && yaml::has_known_characters(text);
    if !is_json {
        return None;
    }
    let options = json::Options {
        duplicate_keys: options.duplicate_keys,
        numbers: json::Numbers::Kubernetes,
        limits: options.limits,
    };
    match json::read(text, options) {
        Ok((tree, true)) => Some(tree),
        Ok((_, false)) | Err(_) => None,
    }
}
