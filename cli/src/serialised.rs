//! Values as JSON and YAML documents.

use std::io::{self, Write};

use crate::text::clean_json;

/// Writes one JSON document, indented.
///
/// # Errors
/// Fails if the writer fails.
pub fn write_json<T: serde::Serialize>(document: &T, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    writeln!(out, "{}", clean_json(&text))
}

/// YAML documents separated by `---` lines, and their number.
///
/// # Errors
/// Fails if the serialiser fails.
pub fn documents<T: serde::Serialize>(documents: &[T]) -> io::Result<(String, usize)> {
    let texts: io::Result<Vec<String>> = documents.iter().map(yaml).collect();
    Ok((texts?.join("---\n"), documents.len()))
}

/// Like [`documents`], with each document as JSON on one line.
///
/// # Errors
/// Fails if the serialiser fails.
pub fn json_documents<T: serde::Serialize>(documents: &[T]) -> io::Result<(String, usize)> {
    let line = |document: &T| -> io::Result<String> {
        let text = serde_json::to_string(document)?;
        Ok(format!("{}\n", clean_json(&text)))
    };
    let texts: io::Result<Vec<String>> = documents.iter().map(line).collect();
    Ok((texts?.join("---\n"), documents.len()))
}

/// One YAML document with its trailing newline.
///
/// # Errors
/// Fails if the serialiser fails.
pub fn yaml<T: serde::Serialize>(document: &T) -> io::Result<String> {
    let mut text = serde_saphyr::to_string(document).map_err(io::Error::other)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Writes one YAML document.
///
/// # Errors
/// Fails if the writer fails.
pub fn write_yaml<T: serde::Serialize>(document: &T, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(yaml(document)?.as_bytes())
}
