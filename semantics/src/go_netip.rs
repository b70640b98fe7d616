//! Reasons why Go's `net/netip` does not parse an address or a network.

use std::net::{IpAddr, Ipv6Addr};

use crate::quote::go_quote;

/// Parses an address without a zone.
///
/// # Errors
/// The text of `netip.ParseAddr`.
pub fn parse_address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (problem, rest) = problem(text);
    let at = match rest {
        "" => String::new(),
        rest => format!(" (at {})", go_quote(rest)),
    };
    Err(format!("ParseAddr({}): {problem}{at}", go_quote(text)))
}

/// Parses an address and a prefix length.
///
/// # Errors
/// The text of `netip.ParsePrefix`.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u32), String> {
    let failed = |problem: &str| {
        let text = go_quote(text);
        Err(format!("netip.ParsePrefix({text}): {problem}"))
    };
    let Some((address, bits)) = text.rsplit_once('/') else {
        return failed("no '/'");
    };
    let address = match parse_address(address) {
        Ok(address) => address,
        Err(_) if is_zoned(address) => return failed("IPv6 zones cannot be present in a prefix"),
        Err(problem) => return failed(&problem),
    };
    let is_number = !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'));
    let Some(bits) = is_number.then(|| bits.parse::<u32>().ok()).flatten() else {
        return failed(&format!("bad bits after slash: {}", go_quote(bits)));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    match bits <= most {
        true => Ok((address, bits)),
        false => failed("prefix length out of range"),
    }
}

/// Whether a text is an IPv6 address with a zone.
pub fn is_zoned(text: &str) -> bool {
    text.split_once('%')
        .is_some_and(|(address, zone)| !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok())
}

/// What is wrong with an address, and where.
fn problem(text: &str) -> (&'static str, &str) {
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => ipv4_problem(text),
        Some(b':') => ipv6_problem(text),
        Some(_) => ("missing IPv6 address", ""),
        None => ("unable to parse IP", ""),
    }
}

fn ipv4_problem(text: &str) -> (&'static str, &str) {
    let (mut fields, mut value, mut digits) = (0, 0u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return ("IPv4 field has octet with leading zero", "");
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return ("IPv4 field has value >255", "");
                }
            }
            b'.' => {
                let is_last = at + 1 == text.len();
                if at == 0 || is_last || digits == 0 {
                    return ("IPv4 field must have at least one digit", &text[at..]);
                }
                if fields == 3 {
                    return ("IPv4 address too long", "");
                }
                fields += 1;
                (value, digits) = (0, 0);
            }
            _ => return ("unexpected character", &text[at..]),
        }
    }
    ("IPv4 address too short", "")
}

fn ipv6_problem(text: &str) -> (&'static str, &str) {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return ("zone must be a non-empty string", ""),
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let mut rest = address;
    let mut ellipsis = false;
    let mut groups = 0;
    if let Some(after) = rest.strip_prefix("::") {
        (ellipsis, rest) = (true, after);
    }
    while groups < 8 && !rest.is_empty() {
        let length = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        if length == 0 {
            return (
                "each colon-separated field must have at least one digit",
                rest,
            );
        }
        let after = &rest[length..];
        if after.starts_with('.') {
            return (
                "embedded IPv4 address must replace the final 2 fields of the address",
                rest,
            );
        }
        groups += 1;
        if after.is_empty() {
            rest = after;
            break;
        }
        let Some(next) = after.strip_prefix(':') else {
            return ("unexpected character, want colon", after);
        };
        if next.is_empty() {
            return ("colon must be followed by more characters", after);
        }
        rest = next;
        if let Some(next) = rest.strip_prefix(':') {
            if ellipsis {
                return ("multiple :: in address", rest);
            }
            (ellipsis, rest) = (true, next);
        }
    }
    match (rest, zone) {
        ("", _) if groups < 8 && !ellipsis => ("address string too short", ""),
        ("", _) => ("the :: must expand to at least one field of zeros", ""),
        (rest, _) => ("trailing garbage after address", rest),
    }
}
