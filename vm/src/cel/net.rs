//! Kubernetes' `ip`, `cidr` and `url` (docs/spec/cel.md §3.9).

use std::net::IpAddr;

use kpvm_format::cel::Function;

use super::value::{Value, look, no_overload};
use crate::document::{NodeId, Opaque};
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

/// Parses an address as Kubernetes does: no zones, no IPv4 inside IPv6.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let address = text.parse::<IpAddr>().map_err(|_| {
        let (plain, zone) = text.split_once('%').unwrap_or((text, ""));
        if !zone.is_empty() && plain.parse::<std::net::Ipv6Addr>().is_ok() {
            return format!("IP address \"{text}\" with zone value is not allowed");
        }
        format!("IP Address \"{text}\" parse error during conversion from string")
    })?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(format!(
            "IPv4-mapped IPv6 address \"{text}\" is not allowed"
        )),
        address => Ok(address),
    }
}

/// A network: an address and its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cidr {
    address: IpAddr,
    bits: u32,
}

impl Cidr {
    fn parse(text: &str) -> Result<Cidr, String> {
        let failed =
            || format!("network address parse error during conversion from string: \"{text}\"");
        let (address, bits) = text.rsplit_once('/').ok_or_else(failed)?;
        let address = parse_ip(address).map_err(|error| {
            if error.contains("not allowed") {
                error.replace("IP address", "CIDR")
            } else {
                failed()
            }
        })?;
        let digits = !bits.is_empty()
            && bits.bytes().all(|byte| byte.is_ascii_digit())
            && (bits == "0" || !bits.starts_with('0'));
        let bits: u32 = bits.parse().map_err(|_| failed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if !digits || bits > most {
            return Err(failed());
        }
        Ok(Cidr { address, bits })
    }

    fn masked(self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.bits).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Cidr { address, ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        let other = Cidr {
            address,
            bits: self.bits,
        };
        address.is_ipv4() == self.address.is_ipv4() && other.masked() == self.masked()
    }

    fn text(self) -> String {
        format!("{}/{}", self.address, self.bits)
    }
}

/// Calls a function on addresses and networks.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    let failed = FunctionError::Failed;
    match (function, shown.as_slice()) {
        (Function::ToIp, [Value::String(_)]) => {
            let address = parse_ip(shown[0].text().unwrap_or("")).map_err(failed)?;
            values.new_opaque(Opaque::Ip, &address.to_string())
        }
        (Function::IsIp, [Value::String(_)]) => {
            let valid = parse_ip(shown[0].text().unwrap_or("")).is_ok();
            values.new_bool(valid)
        }
        (Function::IsCanonical, [Value::String(_)]) => {
            let text = shown[0].text().unwrap_or("");
            let same = parse_ip(text).map_err(failed)?.to_string() == text;
            values.new_bool(same)
        }
        (Function::ToCidr, [Value::String(_)]) => {
            let cidr = Cidr::parse(shown[0].text().unwrap_or("")).map_err(failed)?;
            values.new_opaque(Opaque::Cidr, &cidr.text())
        }
        (Function::IsCidr, [Value::String(_)]) => {
            let valid = Cidr::parse(shown[0].text().unwrap_or("")).is_ok();
            values.new_bool(valid)
        }
        (_, [Value::Opaque(Opaque::Ip, text)]) => {
            let address = parse_ip(text).map_err(failed)?;
            let result = match function {
                Function::Family => {
                    return values.new_int(if address.is_ipv4() { 4 } else { 6 });
                }
                Function::IsUnspecified => address.is_unspecified(),
                Function::IsLoopback => address.is_loopback(),
                Function::IsLinkLocalMulticast => is_link_local_multicast(address),
                Function::IsLinkLocalUnicast => is_link_local_unicast(address),
                Function::IsGlobalUnicast => {
                    let is_broadcast =
                        matches!(address, IpAddr::V4(address) if address.is_broadcast());
                    !(address.is_unspecified()
                        || address.is_loopback()
                        || address.is_multicast()
                        || is_link_local_unicast(address)
                        || is_broadcast)
                }
                _ => return Err(no_overload()),
            };
            values.new_bool(result)
        }
        (_, [Value::Opaque(Opaque::Cidr, text), rest @ ..]) => {
            let cidr = Cidr::parse(text).map_err(failed)?;
            match (function, rest) {
                (Function::CidrIp, []) => values.new_opaque(Opaque::Ip, &cidr.address.to_string()),
                (Function::PrefixLength, []) => values.new_int(i64::from(cidr.bits)),
                (Function::Masked, []) => values.new_opaque(Opaque::Cidr, &cidr.masked().text()),
                (
                    Function::ContainsIp,
                    [other @ (Value::String(_) | Value::Opaque(Opaque::Ip, _))],
                ) => {
                    let address = parse_ip(opaque_text(other)).map_err(failed)?;
                    values.new_bool(cidr.contains(address))
                }
                (
                    Function::ContainsCidr,
                    [other @ (Value::String(_) | Value::Opaque(Opaque::Cidr, _))],
                ) => {
                    let other = Cidr::parse(opaque_text(other)).map_err(failed)?;
                    let inside = other.bits >= cidr.bits && cidr.contains(other.address);
                    values.new_bool(inside)
                }
                _ => Err(no_overload()),
            }
        }
        _ => Err(no_overload()),
    }
}

fn opaque_text<'v>(value: &Value<'v>) -> &'v str {
    match value {
        Value::Opaque(_, text) => text,
        other => other.text().unwrap_or(""),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// A URL split into parts, as by Go's `url.ParseRequestURI`.
struct Url<'t> {
    scheme: String,
    host: &'t str,
    path: &'t str,
    query: &'t str,
}

impl<'t> Url<'t> {
    fn parse(text: &'t str) -> Result<Url<'t>, String> {
        let failed = |problem: &str| {
            Err(format!(
                "URL parse error during conversion from string: parse \"{text}\": {problem}"
            ))
        };
        if text.is_empty() {
            return failed("empty url");
        }
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return failed("net/url: invalid control character in URL");
        }
        let (scheme, rest) =
            match text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))) {
                Some(0) | None => ("", text),
                Some(end) if text[end..].starts_with(':') => {
                    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                        return failed("first path segment in URL cannot contain colon");
                    }
                    (&text[..end], &text[end + 1..])
                }
                Some(_) => ("", text),
            };
        if text.starts_with(':') {
            return failed("missing protocol scheme");
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url {
            scheme: scheme.to_ascii_lowercase(),
            host: "",
            path: "",
            query,
        };
        if !rest.starts_with('/') {
            if scheme.is_empty() {
                return failed("invalid URI for request");
            }
            return Ok(url);
        }
        let mut path = rest;
        if (!scheme.is_empty() || !rest.starts_with("///"))
            && let Some(authority) = rest.strip_prefix("//")
        {
            let end = authority.find('/').unwrap_or(authority.len());
            let (authority, after) = authority.split_at(end);
            url.host = authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host);
            path = after;
            if let Err(problem) = check_host(url.host) {
                return failed(&problem);
            }
        }
        if !percent_is_valid(path) {
            return failed("invalid URL escape");
        }
        url.path = path;
        Ok(url)
    }

    /// Host without port and brackets.
    fn hostname(&self) -> &'t str {
        let (host, _) = split_port(self.host);
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    fn port(&self) -> &'t str {
        split_port(self.host).1
    }
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    }
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = split_port(host);
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid port \":{port}\" after host"));
    }
    if name.starts_with('[') && !name.ends_with(']') {
        return Err("missing ']' in host".into());
    }
    let bad = name
        .chars()
        .find(|c| c.is_ascii() && (c.is_ascii_whitespace() || "\"<>^`{|}\\".contains(*c)));
    match bad {
        Some(' ') => Err("invalid character \" \" in host name".into()),
        Some(bad) => Err(format!("invalid character \"{bad}\" in host name")),
        None => Ok(()),
    }
}

fn percent_is_valid(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Escapes a path as Go does.
fn escaped(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&byte);
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes a key or value of a query; `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let high = digit(rest.next()?)?;
                let low = digit(rest.next()?)?;
                bytes.push((high * 16 + low) as u8);
            }
            byte => bytes.push(byte),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Calls a function on URLs.
pub(crate) fn url(function: Function, operand: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    match (function, look(&view, operand)) {
        (Function::IsUrl, Value::String(_)) => {
            let valid = Url::parse(view.str(operand)).is_ok();
            values.new_bool(valid)
        }
        (Function::ToUrl, Value::String(_)) => {
            let text = view.str(operand).to_owned();
            Url::parse(&text).map_err(FunctionError::Failed)?;
            values.new_opaque(Opaque::Url, &text)
        }
        (_, Value::Opaque(Opaque::Url, text)) => {
            let url = Url::parse(text).map_err(FunctionError::Failed)?;
            let part = match function {
                Function::GetScheme => url.scheme.clone(),
                Function::GetHost => url.host.to_owned(),
                Function::GetHostname => url.hostname().to_owned(),
                Function::GetPort => url.port().to_owned(),
                Function::GetEscapedPath => escaped(url.path),
                Function::GetQuery => {
                    let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
                    for pair in url.query.split('&').filter(|pair| !pair.is_empty()) {
                        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                        let (Some(key), Some(value)) = (decoded(key), decoded(value)) else {
                            continue;
                        };
                        match pairs.iter_mut().find(|(known, _)| *known == key) {
                            Some((_, all)) => all.push(value),
                            None => pairs.push((key, vec![value])),
                        }
                    }
                    let mut members = Vec::new();
                    for (key, all) in pairs {
                        let list = values.new_texts(all)?;
                        members.push((values.label(&key)?, list));
                    }
                    return values.new_map(&members);
                }
                _ => return Err(no_overload()),
            };
            values.new_text(&part)
        }
        _ => Err(no_overload()),
    }
}

/// Reason why a text is not a URL, if it is not.
pub(crate) fn url_problem(text: &str) -> Option<String> {
    Url::parse(text).err()
}
