//! `is_external_url`: whether a URL points outside the cluster's network
//! (docs/spec/jmespath.md §12). URLs are parsed like Go's `net/url`; the host resolves
//! names.

use std::net::{IpAddr, Ipv6Addr};

use super::Outcome;
use super::values::Values;
use crate::document::NodeId;
use kpvm_semantics::FunctionError;
use kpvm_semantics::quote::go_quote;

pub(super) fn is_external_url(values: &mut Values<'_>, url: NodeId) -> Outcome {
    let url = values.str(url).to_owned();
    let host = host_name(&url)?;
    let addresses = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => look_up(values, &host)?,
    };
    let external = addresses.into_iter().all(is_external);
    values.new_bool(external)
}

/// Whether it is neither this machine nor a private network.
fn is_external(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_private(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unique_local(),
    }
}

fn look_up(values: &mut Values<'_>, host: &str) -> Result<Vec<IpAddr>, FunctionError> {
    // An address with a zone counts as the address.
    if let Some((address, _)) = host.split_once('%')
        && let Ok(address) = address.parse::<Ipv6Addr>()
    {
        return Ok(vec![IpAddr::V6(address)]);
    }
    let unknown = || FunctionError::failed(format!("lookup {host}: no such host"));
    if host.is_empty() {
        return Err(unknown());
    }
    let answer = values
        .host
        .host_addresses(host)
        .map_err(FunctionError::Failed)?;
    let addresses = answer.ok_or_else(|| {
        FunctionError::refused(format!("the host name {host} cannot be looked up here"))
    })?;
    if addresses.is_empty() {
        return Err(unknown());
    }
    Ok(addresses)
}

/// The host name of a URL, without port and brackets; Go's error otherwise.
fn host_name(url: &str) -> Result<String, FunctionError> {
    let (address, fragment) = url.split_once('#').unwrap_or((url, ""));
    let wrap = |whole: &str, problem: String| {
        FunctionError::failed(format!("parse {}: {problem}", go_quote(whole)))
    };
    let host = parse(address).map_err(|problem| wrap(address, problem))?;
    unescape(fragment, Part::Other).map_err(|problem| wrap(url, problem))?;
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => &host,
    };
    let inside = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    Ok(inside.unwrap_or(name).to_owned())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Host of a URL without fragment; port and brackets are kept.
fn parse(url: &str) -> Result<String, String> {
    if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    let (scheme, rest) = split_scheme(url)?;
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        if scheme || url == "*" {
            return Ok(String::new());
        }
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let authority = rest
        .strip_prefix("//")
        .filter(|after| scheme || !after.starts_with('/'));
    let (host, path) = match authority {
        Some(authority) => {
            let end = authority.find('/').unwrap_or(authority.len());
            let (authority, path) = authority.split_at_checked(end).unwrap_or((authority, ""));
            (parse_authority(authority)?, path)
        }
        None => (String::new(), rest),
    };
    unescape(path, Part::Other)?;
    Ok(host)
}

/// Whether there is a scheme, and the text after it.
fn split_scheme(url: &str) -> Result<(bool, &str), String> {
    for (at, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((true, url.get(at + 1..).unwrap_or_default())),
            _ => break,
        }
    }
    Ok((false, url))
}

fn parse_authority(authority: &str) -> Result<String, String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return parse_host(authority);
    };
    let host = parse_host(host)?;
    let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(valid) {
        return Err("net/url: invalid userinfo".into());
    }
    unescape(user, Part::Other)?;
    Ok(host)
}

fn parse_host(host: &str) -> Result<String, String> {
    if host.starts_with('[') {
        let Some((address, port)) = host.rsplit_once(']') else {
            return Err("missing ']' in host".into());
        };
        check_port(port)?;
        if let Some(zone) = address.find("%25") {
            let (address, zone) = address.split_at_checked(zone).unwrap_or((address, ""));
            let (address, zone) = (unescape(address, Part::Host)?, unescape(zone, Part::Zone)?);
            return Ok(format!("{address}{zone}]{}", unescape(port, Part::Host)?));
        }
    } else if let Some(colon) = host.rfind(':') {
        check_port(host.get(colon..).unwrap_or_default())?;
    }
    unescape(host, Part::Host)
}

/// Accepts nothing, or a colon and digits.
fn check_port(port: &str) -> Result<(), String> {
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(()),
        Some(digits) if is_port(digits) => Ok(()),
        _ => Err(format!("invalid port {} after host", go_quote(port))),
    }
}

/// Parts of a URL that differ in their escapes.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Host,
    Zone,
    Other,
}

/// Whether a host may contain this byte unescaped.
fn is_host_byte(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte)
}

/// Resolves escapes.
fn unescape(text: &str, part: Part) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            if part != Part::Other && !is_host_byte(*byte) {
                let quoted = go_quote(&char::from(*byte).to_string());
                return Err(format!("invalid character {quoted} in host name"));
            }
            out.push(*byte);
            continue;
        }
        let digits = after.first_chunk::<2>();
        let value = digits.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            u8::from_str_radix(digits, 16).ok().filter(|_| hexadecimal)
        });
        let allowed = |value: u8| match part {
            Part::Other => true,
            Part::Host => value >= 0x80 || value == b'%',
            Part::Zone => matches!(value, b'%' | b' ') || is_host_byte(value),
        };
        let Some(value) = value.filter(|value| allowed(*value)) else {
            let shown = after.get(..after.len().min(2)).unwrap_or_default();
            let shown = String::from_utf8_lossy(shown);
            return Err(format!(
                "invalid URL escape {}",
                go_quote(&format!("%{shown}"))
            ));
        };
        out.push(value);
        rest = after.get(2..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}
