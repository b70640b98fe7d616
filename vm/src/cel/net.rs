//! Kubernetes' `ip`, `cidr` and `url` (docs/spec/cel.md §3.9).

use std::net::IpAddr;

use kpvm_format::cel::Function;

use super::value::{Value, look, no_overload};
use crate::document::{NodeId, Opaque};
use crate::function::{FunctionError, Values};
use kpvm_semantics::go_netip::{is_zoned, parse_address, parse_prefix};
use kpvm_semantics::go_url::Url;
use kpvm_semantics::quote::go_quote;

type Outcome = Result<NodeId, FunctionError>;

/// Parses an address as Kubernetes does: no zones, no IPv4 inside IPv6.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let address = parse_address(text).map_err(|problem| {
        if is_zoned(text) {
            return format!("IP address \"{text}\" with zone value is not allowed");
        }
        format!("IP Address \"{text}\" parse error during conversion from string: {problem}")
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
        const WHAT: &str = "network address parse error during conversion from string";
        let (address, bits) =
            parse_prefix(text).map_err(|problem| format!("{WHAT}: {WHAT}: {problem}"))?;
        let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        if is_mapped {
            return Err(format!(
                "{WHAT}: IPv4-mapped IPv6 address \"{text}\" is not allowed"
            ));
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
                    // Kubernetes hides why a text is no address.
                    let address = parse_ip(opaque_text(other)).map_err(|_| no_overload())?;
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

/// Parses a URL as Kubernetes does: an absolute URI or path, whose fragment is split off.
fn parse_url(text: &str) -> Result<Url, String> {
    let parsed = Url::parse_request(text).and_then(|_| Url::parse(text));
    parsed.map_err(|problem| format!("parse {}: {problem}", go_quote(text)))
}

/// Calls a function on URLs.
pub(crate) fn url(function: Function, operand: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    match (function, look(&view, operand)) {
        (Function::IsUrl, Value::String(_)) => {
            let valid = Url::parse_request(view.str(operand)).is_ok();
            values.new_bool(valid)
        }
        (Function::ToUrl, Value::String(_)) => {
            let text = view.str(operand).to_owned();
            parse_url(&text).map_err(|problem| {
                let what = "URL parse error during conversion from string";
                FunctionError::Failed(format!("{what}: {problem}"))
            })?;
            values.new_opaque(Opaque::Url, &text)
        }
        (_, Value::Opaque(Opaque::Url, text)) => {
            let url = parse_url(text).map_err(FunctionError::Failed)?;
            let part = match function {
                Function::GetScheme => url.scheme.clone(),
                Function::GetHost => url.host.clone(),
                Function::GetHostname => url.host_and_port().0.to_owned(),
                Function::GetPort => url.host_and_port().1.to_owned(),
                Function::GetEscapedPath => url.escaped_path(),
                Function::GetQuery => {
                    let mut members = Vec::new();
                    for (key, all) in url.parameters() {
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
    let problem = Url::parse_request(text).err()?;
    Some(format!("parse {}: {problem}", go_quote(text)))
}
