//! Inputs of several texts.

use std::str::from_utf8;

/// The input as lines: the last takes the rest. `None` if it is not UTF-8 or has fewer.
pub(crate) fn lines<const COUNT: usize>(input: &[u8]) -> Option<[&str; COUNT]> {
    let text = from_utf8(input).ok()?;
    let lines: Vec<&str> = text.splitn(COUNT, '\n').collect();
    lines.try_into().ok()
}

/// Seeds of texts.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
