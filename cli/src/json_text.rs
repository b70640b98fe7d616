//! Finds the ends of JSON values without parsing them.
//!
//! Only brackets and strings are recognised; the reader of the value checks whether it is
//! JSON.

use memchr::memchr2;

/// End of the value at an offset; `None` if it does not end.
///
/// A number or word ends before the next delimiter, which must be present.
pub fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b'{' | b'[' => nested_end(bytes, start),
        _ => {
            let rest = bytes.get(start..)?;
            let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
            let length = rest.iter().position(ends)?;
            Some(start + length)
        }
    }
}

/// Offset of the first byte that is not white space.
pub fn skip_space(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    start + space.count()
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at) {
            Some(b'"') => return Some(at + 1),
            _ => at += 2,
        }
    }
}

fn nested_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for (text, end) in [
            ("{} x", Some(2)),
            (r#"{"a": "}\"{", "b": [1, {"c": "\\"}]} "#, Some(36)),
            (r#""a\"b" "#, Some(6)),
            ("12, 3", Some(2)),
            ("true]", Some(4)),
            ("null", None),
            ("{\"a\": 1", None),
            ("[\"a", None),
            ("[\"\\", None),
            ("", None),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0), end, "{text}");
        }
        assert_eq!(skip_space(b"a \n\t b", 1), 5);
        assert_eq!(skip_space(b"a", 7), 7);
    }
}
