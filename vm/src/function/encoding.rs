//! Encodings of text: base64, digests, JSON, YAML (docs/spec/jmespath.md §7).

#[cfg(feature = "yaml")]
mod yaml_document;

use sha2::{Digest, Sha256};

use super::Outcome;
use super::values::Values;
use crate::document::{NodeId, Numbers};
use kpvm_semantics::FunctionError;
use kpvm_syntax::jmespath::parse_json_text;
use kpvm_syntax::tree::Tree;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| chunk.get(index).copied().map_or(0, u32::from);
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (group >> (18 - 6 * place) & 63) as usize;
            match ALPHABET.get(digit) {
                Some(digit) if place <= chunk.len() => out.push(char::from(*digit)),
                _ => out.push('='),
            }
        }
    }
    out
}

/// The six bits of a base64 character.
fn base64_digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Decodes standard base64 with padding as Go does: line ends are skipped, bits after the
/// last byte ignored. The error is the offset of the problem.
pub(crate) fn decode_base64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut digits, mut start) = (0u32, 0usize, 0usize);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if let Some(digit) = base64_digit(byte) {
            if digits == 0 {
                start = at - 1;
            }
            group = group << 6 | digit;
            digits += 1;
            if digits == 4 {
                out.extend_from_slice(&[(group >> 16) as u8, (group >> 8) as u8, group as u8]);
                (group, digits) = (0, 0);
            }
            continue;
        }
        match byte {
            b'\n' | b'\r' => {}
            b'=' if digits >= 2 => return padding(text, at, group, digits, out),
            _ => return Err(at - 1),
        }
    }
    if digits > 0 { Err(start) } else { Ok(out) }
}

/// Checks what follows the first `=`: the second one if required, then nothing.
fn padding(
    text: &[u8],
    mut at: usize,
    group: u32,
    digits: usize,
    mut out: Vec<u8>,
) -> Result<Vec<u8>, usize> {
    let skip_line_ends = |at: &mut usize| {
        while matches!(text.get(*at), Some(b'\n' | b'\r')) {
            *at += 1;
        }
    };
    skip_line_ends(&mut at);
    if digits == 2 {
        match text.get(at) {
            None => return Err(text.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
        skip_line_ends(&mut at);
        out.push((group >> 4) as u8);
    } else {
        out.extend_from_slice(&[(group >> 10) as u8, (group >> 2) as u8]);
    }
    if at < text.len() { Err(at) } else { Ok(out) }
}

pub(super) fn base64_encode(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let text = encode_base64(values.view().text(a));
    values.new_text(&text)
}

/// Non-UTF-8 bytes become one U+FFFD each, as Kyverno finally shows them.
pub(super) fn base64_decode(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let bytes = decode_base64(values.view().text(a)).map_err(|offset| {
        FunctionError::failed(format!("illegal base64 data at input byte {offset}"))
    })?;
    let text = go_utf8(&bytes);
    values.new_text(&text)
}

/// Bytes as text; every invalid byte becomes one U+FFFD, as in Go.
fn go_utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

fn digest<D: Digest>(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let bytes = values.view().text(a).len();
    // A digest processes a byte far slower than a copy does.
    values.charge(bytes as u64 / 16)?;
    let digest = D::digest(values.view().text(a));
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    values.new_text(&text)
}

#[cfg(feature = "legacy-digests")]
pub(super) fn md5(values: &mut Values<'_>, a: NodeId) -> Outcome {
    digest::<md5::Md5>(values, a)
}

#[cfg(feature = "legacy-digests")]
pub(super) fn sha1(values: &mut Values<'_>, a: NodeId) -> Outcome {
    digest::<sha1::Sha1>(values, a)
}

pub(super) fn sha256(values: &mut Values<'_>, a: NodeId) -> Outcome {
    digest::<Sha256>(values, a)
}

pub(super) fn parse_json(values: &mut Values<'_>, a: NodeId) -> Outcome {
    values.charge(values.view().text(a).len() as u64 / 4)?;
    let tree = parse_json_text(values.str(a)).map_err(FunctionError::Failed)?;
    push_tree(values, &tree)
}

/// The first document; null if there is none.
#[cfg(feature = "yaml")]
pub(super) use yaml_document::parse_yaml;

/// Without the YAML reader no text can be read.
#[cfg(not(feature = "yaml"))]
pub(super) fn parse_yaml(_values: &mut Values<'_>, _text: NodeId) -> Outcome {
    Err(FunctionError::refused(
        "parse_yaml is not available: kpvm was built without the feature `yaml`",
    ))
}

fn push_tree(values: &mut Values<'_>, tree: &Tree) -> Outcome {
    Ok(values
        .buffer
        .push_tree(tree, &values.symbols, Numbers::Float)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_go_reads_it() {
        // docs/spec/jmespath.md §7, "base64_decode".
        for (text, expected) in [
            ("", Ok("")),
            ("YQ==", Ok("a")),
            ("Y\nQ==\r\n", Ok("a")),
            ("YR==", Ok("a")),
            ("w6k=", Ok("é")),
            ("YQ", Err(0)),
            ("YQ=", Err(3)),
            ("YQ==YQ==", Err(4)),
            ("====", Err(0)),
            ("Y Q=", Err(1)),
        ] {
            let decoded = decode_base64(text.as_bytes());
            assert_eq!(
                decoded,
                expected.map(|text| text.as_bytes().to_vec()),
                "{text}"
            );
        }
        for bytes in ["", "a", "ab", "abc", "abcd"] {
            let text = encode_base64(bytes.as_bytes());
            assert_eq!(decode_base64(text.as_bytes()), Ok(bytes.into()), "{text}");
        }
        // "é?" cut inside the letter: one replacement character per byte.
        assert_eq!(
            go_utf8(&[0xe6, 0x97, b'a', 0xff]),
            "\u{fffd}\u{fffd}a\u{fffd}"
        );
    }
}
