//! Validity of label keys and values in Kubernetes (docs/spec/policies.md §5.4).

/// Whether a text is a qualified name: an optional DNS prefix of at most 253
/// characters and `/`, then a name of at most 63.
pub fn is_valid_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_valid_name(key),
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_valid_name(name),
    }
}

/// Whether a text is empty or a name of at most 63 characters.
pub fn is_valid_value(value: &str) -> bool {
    value.is_empty() || is_valid_name(value)
}

/// `[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`, at most 63 bytes.
fn is_valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    bytes.len() <= 63
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a text is a DNS-1123 subdomain: at most 253 bytes, parts of
/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?` joined by dots.
pub fn is_dns_subdomain(prefix: &str) -> bool {
    let is_lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    prefix.len() <= 253
        && prefix.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(is_lower)
                && bytes.last().is_some_and(is_lower)
                && bytes.iter().all(|byte| is_lower(byte) || *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        for good in ["a", "A.b_c-9", "example.com/name", "a/B"] {
            assert!(is_valid_key(good), "{good}");
        }
        let long = "a".repeat(64);
        for bad in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "a-",
            "Example.com/a",
            "a..b/c",
            "é",
            &long,
        ] {
            assert!(!is_valid_key(bad), "{bad}");
        }
    }

    #[test]
    fn values() {
        for good in ["", "x", "1.2_3-z"] {
            assert!(is_valid_value(good), "{good}");
        }
        for bad in ["-", "a b", "a/b", ".a"] {
            assert!(!is_valid_value(bad), "{bad}");
        }
    }
}
