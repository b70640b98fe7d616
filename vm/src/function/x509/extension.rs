//! The extensions of certificates and requests.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::der::{
    BIT_STRING, BOOLEAN, Element, INTEGER, OBJECT_ID, OCTET_STRING, SEQUENCE, elements, expect,
    next, object_id, object_id_of, object_id_text, optional, small_integer, text,
};
use super::{base64, list, put};

pub(super) const SUBJECT_NAMES: &str = "2.5.29.17";

pub(super) struct Extension<'d> {
    pub(super) id: Vec<u64>,
    critical: bool,
    pub(super) content: &'d [u8],
}

impl Extension<'_> {
    pub(super) fn id_text(&self) -> String {
        object_id_text(&self.id)
    }

    pub(super) fn value(&self) -> Value {
        json!({"Id": self.id, "Critical": self.critical, "Value": base64(self.content)})
    }
}

pub(super) fn read_extensions(sequence: Element<'_>) -> Option<Vec<Extension<'_>>> {
    let read = |extension: Element<'_>| {
        let mut rest = extension.content;
        let id = object_id(expect(&mut rest, OBJECT_ID)?.content)?;
        let critical = optional(&mut rest, BOOLEAN);
        Some((id, critical.is_some_and(|flag| flag.content != [0])))
    };
    let mut extensions = Vec::new();
    for extension in elements(sequence.content)? {
        let (id, critical) = read(extension)?;
        let content = elements(extension.content)?
            .into_iter()
            .find(|part| part.tag == OCTET_STRING)?
            .content;
        extensions.push(Extension {
            id,
            critical,
            content,
        });
    }
    Some(extensions)
}

/// Fills the fields of an extension.
pub(super) fn apply(extension: &Extension<'_>, fields: &mut Map<String, Value>) -> Option<()> {
    let mut bytes = extension.content;
    match extension.id_text().as_str() {
        "2.5.29.15" => {
            let usage = expect(&mut bytes, BIT_STRING)?.content.get(1..)?;
            put(fields, json!({"KeyUsage": key_usage(usage)}));
        }
        "2.5.29.19" => basic_constraints(expect(&mut bytes, SEQUENCE)?.content, fields)?,
        SUBJECT_NAMES => subject_names(expect(&mut bytes, SEQUENCE)?.content, fields)?,
        "2.5.29.37" => extended_usage(expect(&mut bytes, SEQUENCE)?.content, fields)?,
        "2.5.29.14" => {
            let id = expect(&mut bytes, OCTET_STRING)?.content;
            put(fields, json!({"SubjectKeyId": base64(id)}));
        }
        "2.5.29.35" => {
            let mut inner = expect(&mut bytes, SEQUENCE)?.content;
            let id = optional(&mut inner, 0x80).map(|id| base64(id.content));
            put(fields, json!({"AuthorityKeyId": id}));
        }
        "2.5.29.31" => {
            let points = urls_inside(expect(&mut bytes, SEQUENCE)?.content)?;
            put(fields, json!({"CRLDistributionPoints": list(points)}));
        }
        "2.5.29.32" => policies(expect(&mut bytes, SEQUENCE)?.content, fields)?,
        "1.3.6.1.5.5.7.1.1" => information_access(expect(&mut bytes, SEQUENCE)?.content, fields)?,
        _ if extension.critical => {
            let unhandled = fields.entry("UnhandledCriticalExtensions");
            let unhandled = unhandled.or_insert(Value::Null);
            match unhandled {
                Value::Array(items) => items.push(json!(extension.id)),
                other => *other = json!([extension.id]),
            }
        }
        _ => {}
    }
    Some(())
}

/// The first nine bits, the first one lowest.
fn key_usage(bytes: &[u8]) -> u32 {
    let bit = |index: usize| {
        let byte = bytes.get(index / 8).copied().unwrap_or(0);
        u32::from(byte >> (7 - index % 8) & 1)
    };
    (0..9).map(|index| bit(index) << index).sum()
}

fn basic_constraints(mut bytes: &[u8], fields: &mut Map<String, Value>) -> Option<()> {
    let authority = optional(&mut bytes, BOOLEAN).is_some_and(|flag| flag.content != [0]);
    let length = match optional(&mut bytes, INTEGER) {
        Some(length) => small_integer(length)?,
        None => -1,
    };
    put(
        fields,
        json!({
            "BasicConstraintsValid": true, "IsCA": authority,
            "MaxPathLen": length, "MaxPathLenZero": length == 0,
        }),
    );
    Some(())
}

fn subject_names(bytes: &[u8], fields: &mut Map<String, Value>) -> Option<()> {
    let (mut dns, mut mail, mut addresses, mut urls) = (vec![], vec![], vec![], vec![]);
    for name in elements(bytes)? {
        match name.tag {
            0x81 => mail.push(text(name).into()),
            0x82 => dns.push(text(name).into()),
            0x86 => urls.push(url(&text(name))),
            0x87 => {
                let four = <[u8; 4]>::try_from(name.content).map(IpAddr::from);
                let sixteen = <[u8; 16]>::try_from(name.content).map(IpAddr::from);
                addresses.push(four.or(sixteen).ok()?.to_string().into());
            }
            _ => {}
        }
    }
    put(
        fields,
        json!({
            "DNSNames": list(dns), "EmailAddresses": list(mail),
            "IPAddresses": list(addresses), "URIs": list(urls),
        }),
    );
    Some(())
}

/// A URL split into the parts of Go's `url.URL`.
fn url(text: &str) -> Value {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let (host, path, opaque) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
            (host, path, "")
        }
        None => ("", "", rest),
    };
    json!({
        "Scheme": scheme.to_ascii_lowercase(), "Opaque": opaque, "User": null, "Host": host,
        "Path": path, "RawPath": "", "OmitHost": false, "ForceQuery": false,
        "RawQuery": query, "Fragment": fragment, "RawFragment": "",
    })
}

fn extended_usage(bytes: &[u8], fields: &mut Map<String, Value>) -> Option<()> {
    const KNOWN: [&str; 14] = [
        "2.5.29.37.0",
        "1.3.6.1.5.5.7.3.1",
        "1.3.6.1.5.5.7.3.2",
        "1.3.6.1.5.5.7.3.3",
        "1.3.6.1.5.5.7.3.4",
        "1.3.6.1.5.5.7.3.5",
        "1.3.6.1.5.5.7.3.6",
        "1.3.6.1.5.5.7.3.7",
        "1.3.6.1.5.5.7.3.8",
        "1.3.6.1.5.5.7.3.9",
        "1.3.6.1.4.1.311.10.3.3",
        "2.16.840.1.113730.4.1",
        "1.3.6.1.4.1.311.2.1.22",
        "1.3.6.1.4.1.311.61.1.1",
    ];
    let (mut known, mut unknown) = (vec![], vec![]);
    for usage in elements(bytes)? {
        let id = object_id(usage.content)?;
        let text = object_id_text(&id);
        match KNOWN.iter().position(|known| *known == text) {
            Some(number) => known.push(json!(number)),
            None => unknown.push(json!(id)),
        }
    }
    put(
        fields,
        json!({"ExtKeyUsage": list(known), "UnknownExtKeyUsage": list(unknown)}),
    );
    Some(())
}

/// The URLs of distribution points: each is `{[0] {[0] {[6] url}}}`.
fn urls_inside(bytes: &[u8]) -> Option<Vec<Value>> {
    let mut urls = Vec::new();
    for point in elements(bytes)? {
        let mut rest = point.content;
        let Some(name) = optional(&mut rest, 0xa0) else {
            continue;
        };
        let mut rest = name.content;
        let Some(full) = optional(&mut rest, 0xa0) else {
            continue;
        };
        let names = elements(full.content)?;
        let found = names.into_iter().filter(|name| name.tag == 0x86);
        urls.extend(found.map(|name| Value::from(text(name))));
    }
    Some(urls)
}

fn policies(bytes: &[u8], fields: &mut Map<String, Value>) -> Option<()> {
    let (mut identifiers, mut texts) = (vec![], vec![]);
    for policy in elements(bytes)? {
        let mut rest = policy.content;
        let id = object_id(expect(&mut rest, OBJECT_ID)?.content)?;
        texts.push(object_id_text(&id).into());
        identifiers.push(json!(id));
    }
    put(
        fields,
        json!({"PolicyIdentifiers": list(identifiers), "Policies": list(texts)}),
    );
    Some(())
}

fn information_access(bytes: &[u8], fields: &mut Map<String, Value>) -> Option<()> {
    let (mut responders, mut issuers) = (vec![], vec![]);
    for access in elements(bytes)? {
        let mut rest = access.content;
        let method = object_id_of(next(&mut rest)?)?;
        let Some(place) = optional(&mut rest, 0x86) else {
            continue;
        };
        match method.as_str() {
            "1.3.6.1.5.5.7.48.1" => responders.push(text(place).into()),
            "1.3.6.1.5.5.7.48.2" => issuers.push(text(place).into()),
            _ => {}
        }
    }
    put(
        fields,
        json!({"OCSPServer": list(responders), "IssuingCertificateURL": list(issuers)}),
    );
    Some(())
}
