//! `x509_decode`: the fields of a PEM certificate or certificate request, named as in Go's
//! `crypto/x509` (docs/spec/jmespath.md §12).
//!
//! A small DER reader borrows from the bytes and never goes deeper than the structures
//! named here. Nothing is verified, neither signatures nor names.

use num_bigint::BigInt;
use serde_json::{Map, Value, json};

use self::der::{
    BIT_STRING, Element, INTEGER, OBJECT_ID, SEQUENCE, SET, bits, elements, expect, integer, next,
    object_id, object_id_of, object_id_text, optional, small_integer, text,
};
use self::extension::{Extension, SUBJECT_NAMES, apply, read_extensions};
use super::encoding::{decode_base64, encode_base64};
use super::values::Values;
use super::{Outcome, layout};
use crate::document::{NodeId, Numbers};
use kpvm_semantics::FunctionError;

mod der;
mod extension;

pub(super) fn x509_decode(values: &mut Values<'_>, a: NodeId) -> Outcome {
    // Covers decoding, several base64 copies of most parts, and a tree of everything.
    values.charge(50 + values.view().text(a).len() as u64 / 4)?;
    let decoded = decode(values.str(a)).map_err(FunctionError::failed)?;
    Ok(values
        .buffer
        .push_value(&decoded, &values.symbols, Numbers::Float)?)
}

fn decode(text: &str) -> Result<Value, String> {
    let (kind, bytes) = first_pem_block(text).ok_or("failed to decode PEM block")?;
    match kind {
        "CERTIFICATE" => {
            let parts = certificate(&bytes).ok_or("x509: malformed certificate")?;
            with_public_key(parts)
        }
        "CERTIFICATE REQUEST" => {
            let parts = request(&bytes).ok_or_else(|| request_problem(&bytes))?;
            with_public_key(parts)
        }
        _ => Err("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST".into()),
    }
}

/// Go's text for bytes that are not a request.
fn request_problem(bytes: &[u8]) -> String {
    match bytes.split_first() {
        Some((tag, rest)) if *tag != SEQUENCE => format!(
            "asn1: structure error: tags don't match (16 vs {{class:{} tag:{} length:{} \
             isCompound:{}}}) {{optional:false explicit:false application:false private:false \
             defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} \
             certificateRequest @2",
            tag >> 6,
            tag & 0x1f,
            rest.first().copied().unwrap_or(0),
            tag & 0x20 != 0
        ),
        _ => "asn1: syntax error: data truncated".into(),
    }
}

/// Type and bytes of the first block that can be decoded.
fn first_pem_block(text: &str) -> Option<(&str, Vec<u8>)> {
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once("-----BEGIN ")?;
        rest = after;
        if !before.is_empty() && !before.ends_with('\n') {
            continue;
        }
        let Some((first_line, body)) = after.split_once('\n') else {
            continue;
        };
        let Some(kind) = first_line.trim_end().strip_suffix("-----") else {
            continue;
        };
        let Some(end) = body.find(&format!("-----END {kind}-----")) else {
            continue;
        };
        let body = without_headers(body.get(..end)?);
        let digits: Vec<u8> = body
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        if let Ok(bytes) = decode_base64(&digits) {
            return Some((kind, bytes));
        }
    }
}

/// The text after `Key: value` lines.
fn without_headers(mut body: &str) -> &str {
    while let Some((line, rest)) = body.split_once('\n') {
        if !line.contains(':') {
            break;
        }
        body = rest;
    }
    body
}

fn base64(bytes: &[u8]) -> Value {
    encode_base64(bytes).into()
}

/// A list; null where Go has none.
fn list(items: Vec<Value>) -> Value {
    if items.is_empty() {
        Value::Null
    } else {
        items.into()
    }
}

/// A big number as the float that it finally becomes.
fn as_float(number: &BigInt) -> Value {
    json!(number.to_string().parse::<f64>().unwrap_or(0.0))
}

/// A distinguished name.
fn name(element: Element<'_>) -> Option<Value> {
    const LISTS: [(&str, &str); 7] = [
        ("2.5.4.6", "Country"),
        ("2.5.4.10", "Organization"),
        ("2.5.4.11", "OrganizationalUnit"),
        ("2.5.4.7", "Locality"),
        ("2.5.4.8", "Province"),
        ("2.5.4.9", "StreetAddress"),
        ("2.5.4.17", "PostalCode"),
    ];
    let mut lists: [Vec<Value>; 7] = Default::default();
    let (mut common_name, mut serial_number, mut names) = (String::new(), String::new(), vec![]);
    for set in elements(element.content)? {
        if set.tag != SET {
            return None;
        }
        for attribute in elements(set.content)? {
            let mut rest = attribute.content;
            let kind = object_id(expect(&mut rest, OBJECT_ID)?.content)?;
            let value = text(next(&mut rest)?);
            names.push(json!({"Type": kind, "Value": value}));
            let kind = object_id_text(&kind);
            match kind.as_str() {
                "2.5.4.3" => common_name = value,
                "2.5.4.5" => serial_number = value,
                kind => {
                    let place = LISTS.iter().position(|(known, _)| *known == kind);
                    if let Some(list) = place.and_then(|place| lists.get_mut(place)) {
                        list.push(value.into());
                    }
                }
            }
        }
    }
    let mut result = Map::new();
    for ((_, field), values) in LISTS.iter().zip(lists) {
        result.insert((*field).into(), list(values));
    }
    result.insert("SerialNumber".into(), serial_number.into());
    result.insert("CommonName".into(), common_name.into());
    result.insert("Names".into(), list(names));
    result.insert("ExtraNames".into(), Value::Null);
    Some(result.into())
}

/// UTCTime or GeneralizedTime as RFC 3339.
fn time(element: Element<'_>) -> Option<String> {
    let digits = std::str::from_utf8(element.content).ok()?;
    // Two-digit years from 50 on belong to the previous century.
    let digits = match element.tag {
        0x17 if digits.starts_with(['5', '6', '7', '8', '9']) => format!("19{digits}"),
        0x17 => format!("20{digits}"),
        0x18 => digits.to_owned(),
        _ => return None,
    };
    let time = layout::parse("20060102150405Z0700", &digits).ok()?;
    Some(time.text())
}

/// Go's number of a signature algorithm; 0 if unknown.
fn signature_algorithm(algorithm: Element<'_>) -> Option<u32> {
    let mut rest = algorithm.content;
    let id = object_id_of(expect(&mut rest, OBJECT_ID)?)?;
    Some(match id.as_str() {
        "1.2.840.113549.1.1.4" => 2,
        "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" => 3,
        "1.2.840.113549.1.1.11" => 4,
        "1.2.840.113549.1.1.12" => 5,
        "1.2.840.113549.1.1.13" => 6,
        "1.2.840.10040.4.3" => 7,
        "2.16.840.1.101.3.4.3.2" => 8,
        "1.2.840.10045.4.1" => 9,
        "1.2.840.10045.4.3.2" => 10,
        "1.2.840.10045.4.3.3" => 11,
        "1.2.840.10045.4.3.4" => 12,
        "1.3.101.112" => 16,
        _ => 0,
    })
}

/// The RSA key's modulus and exponent; the error is Kyverno's.
fn rsa_key(key_info: Element<'_>) -> Result<Value, String> {
    const UNREADABLE: &str = "failed to parse subject public key info";
    let mut rest = key_info.content;
    let algorithm = expect(&mut rest, SEQUENCE).ok_or(UNREADABLE)?;
    let key = expect(&mut rest, BIT_STRING).ok_or(UNREADABLE)?;
    let mut algorithm = algorithm.content;
    let id = expect(&mut algorithm, OBJECT_ID).and_then(object_id_of);
    if id.as_deref() != Some("1.2.840.113549.1.1.1") {
        return Err("certificate should use rsa algorithm".into());
    }
    let key = bits(key).and_then(|mut bytes| {
        let mut numbers = expect(&mut bytes, SEQUENCE)?.content;
        let modulus = integer(expect(&mut numbers, INTEGER)?).to_string();
        let exponent = small_integer(expect(&mut numbers, INTEGER)?)?;
        Some(json!({"N": modulus, "E": exponent}))
    });
    key.ok_or_else(|| UNREADABLE.into())
}

/// A decoded structure and its key, which is examined last.
struct Parts<'d> {
    fields: Map<String, Value>,
    key_info: Element<'d>,
}

fn with_public_key(parts: Parts<'_>) -> Result<Value, String> {
    let mut fields = parts.fields;
    let key = rsa_key(parts.key_info)?;
    fields.insert("PublicKeyAlgorithm".into(), json!(1));
    fields.insert("PublicKey".into(), key);
    Ok(fields.into())
}

/// Merges the members of an object into the fields.
fn put(fields: &mut Map<String, Value>, members: Value) {
    if let Value::Object(members) = members {
        fields.extend(members);
    }
}

/// Body, signature algorithm and signature, common to both structures.
fn signed(mut bytes: &[u8]) -> Option<(Element<'_>, Map<String, Value>)> {
    let outer = expect(&mut bytes, SEQUENCE)?;
    if !bytes.is_empty() {
        return None;
    }
    let mut rest = outer.content;
    let body = expect(&mut rest, SEQUENCE)?;
    let algorithm = expect(&mut rest, SEQUENCE)?;
    let signature = bits(expect(&mut rest, BIT_STRING)?)?;
    let mut fields = Map::new();
    put(
        &mut fields,
        json!({
            "Raw": base64(outer.whole),
            "Signature": base64(signature),
            "SignatureAlgorithm": signature_algorithm(algorithm)?,
        }),
    );
    Some((body, fields))
}

fn certificate(bytes: &[u8]) -> Option<Parts<'_>> {
    let (body, mut fields) = signed(bytes)?;
    let mut rest = body.content;
    let version = match optional(&mut rest, 0xa0) {
        Some(version) => {
            let mut inner = version.content;
            small_integer(expect(&mut inner, INTEGER)?)? + 1
        }
        None => 1,
    };
    let serial = integer(expect(&mut rest, INTEGER)?);
    expect(&mut rest, SEQUENCE)?;
    let issuer = expect(&mut rest, SEQUENCE)?;
    let mut validity = expect(&mut rest, SEQUENCE)?.content;
    let subject = expect(&mut rest, SEQUENCE)?;
    let key_info = expect(&mut rest, SEQUENCE)?;
    optional(&mut rest, 0x81);
    optional(&mut rest, 0x82);
    let extensions = match optional(&mut rest, 0xa3) {
        Some(wrapper) => {
            let mut inner = wrapper.content;
            read_extensions(expect(&mut inner, SEQUENCE)?)?
        }
        None => Vec::new(),
    };
    put(
        &mut fields,
        json!({
            "RawTBSCertificate": base64(body.whole),
            "RawSubjectPublicKeyInfo": base64(key_info.whole),
            "RawSubject": base64(subject.whole),
            "RawIssuer": base64(issuer.whole),
            "Version": version,
            "SerialNumber": as_float(&serial),
            "Issuer": name(issuer)?,
            "Subject": name(subject)?,
            "NotBefore": time(next(&mut validity)?)?,
            "NotAfter": time(next(&mut validity)?)?,
        }),
    );
    put(&mut fields, unset_fields());
    for extension in &extensions {
        apply(extension, &mut fields)?;
    }
    let extensions = extensions.iter().map(Extension::value).collect();
    fields.insert("Extensions".into(), list(extensions));
    Some(Parts { fields, key_info })
}

/// Values of the fields that extensions fill, for a certificate without extensions. Name
/// and policy constraints are not read and keep these values.
fn unset_fields() -> Value {
    json!({
        "KeyUsage": 0, "ExtraExtensions": null, "UnhandledCriticalExtensions": null,
        "ExtKeyUsage": null, "UnknownExtKeyUsage": null, "BasicConstraintsValid": false,
        "IsCA": false, "MaxPathLen": 0, "MaxPathLenZero": false, "SubjectKeyId": null,
        "AuthorityKeyId": null, "OCSPServer": null, "IssuingCertificateURL": null,
        "DNSNames": null, "EmailAddresses": null, "IPAddresses": null, "URIs": null,
        "PermittedDNSDomainsCritical": false, "PermittedDNSDomains": null,
        "ExcludedDNSDomains": null, "PermittedIPRanges": null, "ExcludedIPRanges": null,
        "PermittedEmailAddresses": null, "ExcludedEmailAddresses": null,
        "PermittedURIDomains": null, "ExcludedURIDomains": null,
        "CRLDistributionPoints": null, "PolicyIdentifiers": null, "Policies": null,
        "InhibitAnyPolicy": 0, "InhibitAnyPolicyZero": false, "InhibitPolicyMapping": 0,
        "InhibitPolicyMappingZero": false, "PolicyMappings": null,
        "RequireExplicitPolicy": 0, "RequireExplicitPolicyZero": false,
    })
}

fn request(bytes: &[u8]) -> Option<Parts<'_>> {
    let (body, mut fields) = signed(bytes)?;
    let mut rest = body.content;
    let version = small_integer(expect(&mut rest, INTEGER)?)?;
    let subject = expect(&mut rest, SEQUENCE)?;
    let key_info = expect(&mut rest, SEQUENCE)?;
    let attributes = optional(&mut rest, 0xa0).map_or(&[][..], |attributes| attributes.content);
    put(
        &mut fields,
        json!({
            "RawTBSCertificateRequest": base64(body.whole),
            "RawSubjectPublicKeyInfo": base64(key_info.whole),
            "RawSubject": base64(subject.whole),
            "Version": version,
            "Subject": name(subject)?,
            "ExtraExtensions": null, "DNSNames": null, "EmailAddresses": null,
            "IPAddresses": null, "URIs": null,
        }),
    );
    let (mut shown, mut extensions) = (Vec::new(), Vec::new());
    for attribute in elements(attributes)? {
        let mut rest = attribute.content;
        let kind = object_id(expect(&mut rest, OBJECT_ID)?.content)?;
        let mut values = expect(&mut rest, SET)?.content;
        if object_id_text(&kind) == "1.2.840.113549.1.9.14" {
            extensions = read_extensions(expect(&mut values, SEQUENCE)?)?;
            let list: Vec<_> = extensions
                .iter()
                .map(|one| json!({"Type": one.id, "Value": base64(one.content)}))
                .collect();
            shown.push(json!({"Type": kind, "Value": [list]}));
        }
    }
    for extension in extensions
        .iter()
        .filter(|one| one.id_text() == SUBJECT_NAMES)
    {
        apply(extension, &mut fields)?;
    }
    fields.insert("Attributes".into(), list(shown));
    let extensions = extensions.iter().map(Extension::value).collect();
    fields.insert("Extensions".into(), list(extensions));
    Some(Parts { fields, key_info })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with openssl, like the request and the EC certificate below, and the expected
    /// values.
    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIICpTCCAg6gAwIBAgICEjQwDQYJKoZIhvcNAQELBQAwOTELMAkGA1UEBhMCTkwx
EDAOBgNVBAoMB0V4YW1wbGUxGDAWBgNVBAMMD3dlYi5leGFtcGxlLmNvbTAeFw0y
NjExMjAxMjA3MDVaFw0zNjExMTcxMjA3MDVaMDkxCzAJBgNVBAYTAk5MMRAwDgYD
VQQKDAdFeGFtcGxlMRgwFgYDVQQDDA93ZWIuZXhhbXBsZS5jb20wgZ8wDQYJKoZI
hvcNAQEBBQADgY0AMIGJAoGBAKmHlOaDaPy7W09iYL4FmAhok91795y3Xx1FSZ0+
R7a/k6ZRkkkehHmQb6g8wGaE/m7gbbjQ3v5gz/wsIk7TrH98RS0PlryvOaAWAMms
hly5QkXQsnS8xTkv/ABa+h/shXkPvmnM9/DTXpQhdtMbeeuAYc07i8SfaryVEXxV
xvbRAgMBAAGjgbswgbgwVAYDVR0RBE0wS4IPd2ViLmV4YW1wbGUuY29tgg0qLmV4
YW1wbGUuY29thwQKAAABhhRzcGlmZmU6Ly9leGFtcGxlL3dlYoENYUBleGFtcGxl
LmNvbTASBgNVHRMBAf8ECDAGAQH/AgEAMA4GA1UdDwEB/wQEAwIChDAdBgNVHSUE
FjAUBggrBgEFBQcDAQYIKwYBBQUHAwIwHQYDVR0OBBYEFLtPdXzMeHRD/SMjCi9/
JsXA3DK9MA0GCSqGSIb3DQEBCwUAA4GBAGSRSWU/Mk1phTVXRZa7opGPd2c4R82d
AY4mCGdQQ3rhFjltl2PJBTJMRDOumfL+mezCP8ShhTs/qVj0QGnudGW26AXuMH/c
ynKoxd5F4mPV7DiCpjhRVhRiSdjX6oqBr9VbecullVBKjT9rOFNEE5IOom49Fc6K
Y1xlwLgpNIWu
-----END CERTIFICATE-----
";

    const REQUEST: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIICJzCCAZACAQAwOTELMAkGA1UEBhMCTkwxEDAOBgNVBAoMB0V4YW1wbGUxGDAW
BgNVBAMMD3dlYi5leGFtcGxlLmNvbTCBnzANBgkqhkiG9w0BAQEFAAOBjQAwgYkC
gYEAqYeU5oNo/LtbT2JgvgWYCGiT3Xv3nLdfHUVJnT5Htr+TplGSSR6EeZBvqDzA
ZoT+buBtuNDe/mDP/CwiTtOsf3xFLQ+WvK85oBYAyayGXLlCRdCydLzFOS/8AFr6
H+yFeQ++acz38NNelCF20xt564BhzTuLxJ9qvJURfFXG9tECAwEAAaCBrTCBqgYJ
KoZIhvcNAQkOMYGcMIGZMFQGA1UdEQRNMEuCD3dlYi5leGFtcGxlLmNvbYINKi5l
eGFtcGxlLmNvbYcECgAAAYYUc3BpZmZlOi8vZXhhbXBsZS93ZWKBDWFAZXhhbXBs
ZS5jb20wEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAoQwHQYDVR0l
BBYwFAYIKwYBBQUHAwEGCCsGAQUFBwMCMA0GCSqGSIb3DQEBCwUAA4GBAGv9VRrD
1F1hWfEZfN25r0EnGjtC9s6wuWM6Qee6BQJnr4EkYPNiB8M8VwVljamgVTw1jeAD
loBWphQMbX9YgaMGKgyv0XtmGGMo7CRZOogiNlVRFp6i+qf1mfVoKmXDeetjuq0s
J8pUzRJ1Ya+GxElHyalpS8LRxCLmoeE0PIsB
-----END CERTIFICATE REQUEST-----
";

    const EC_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBbjCCARMCFCFVwXSfW5/0jqO0X9DdWkgav8c4MAoGCCqGSM49BAMCMDkxCzAJ
BgNVBAYTAk5MMRAwDgYDVQQKDAdFeGFtcGxlMRgwFgYDVQQDDA93ZWIuZXhhbXBs
ZS5jb20wHhcNMjYxMTIwMTIwNzA1WhcNMjYxMTMwMTIwNzA1WjA5MQswCQYDVQQG
EwJOTDEQMA4GA1UECgwHRXhhbXBsZTEYMBYGA1UEAwwPd2ViLmV4YW1wbGUuY29t
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEv1BiJ09YKI1CUGdS5AX34QxdKNc0
+g61VaLYyuuCnr1r9X6U7tKYght7D59iiKtqnbloQLhwVXigprd7h/rcwTAKBggq
hkjOPQQDAgNJADBGAiEAm9vwyojbmFZsYr2rVhqRzOWNy+O/MUSxzuhyYQ/rJ74C
IQDhieAfxbXddBgmrxZpCR+wNT6skSNE5Rp3Q+D702U3yQ==
-----END CERTIFICATE-----
";

    const MODULUS: &str = "119047744711847878226694188562716588149604815111460555490209766611979077734621434126966521970064970533578186771024727878325499573458892295956392266995387933216900536765467396225610340533725313627705828436292571831574357832806015705700328508877792498213110234652135404020929433506965509423768817282966620665553";

    #[test]
    fn a_certificate_has_the_fields_of_go() {
        // docs/spec/jmespath.md §12, names and kinds of the fields.
        let decoded = decode(CERTIFICATE).unwrap();
        for (field, expected) in [
            ("PublicKey", json!({"N": MODULUS, "E": 65537})),
            ("PublicKeyAlgorithm", json!(1)),
            ("SignatureAlgorithm", json!(4)),
            ("Version", json!(3)),
            ("SerialNumber", json!(4660.0)),
            ("NotBefore", json!("2026-11-20T12:07:05Z")),
            ("NotAfter", json!("2036-11-17T12:07:05Z")),
            ("KeyUsage", json!(0b10_0001)),
            ("ExtKeyUsage", json!([1, 2])),
            ("BasicConstraintsValid", json!(true)),
            ("IsCA", json!(true)),
            ("MaxPathLen", json!(0)),
            ("MaxPathLenZero", json!(true)),
            ("DNSNames", json!(["web.example.com", "*.example.com"])),
            ("EmailAddresses", json!(["a@example.com"])),
            ("IPAddresses", json!(["10.0.0.1"])),
            ("SubjectKeyId", json!("u091fMx4dEP9IyMKL38mxcDcMr0=")),
            ("Policies", json!(null)),
        ] {
            assert_eq!(decoded.get(field), Some(&expected), "{field}");
        }
        let subject = &decoded["Subject"];
        assert_eq!(subject["CommonName"], "web.example.com");
        assert_eq!(subject["Country"], json!(["NL"]));
        assert_eq!(subject["Locality"], Value::Null);
        assert_eq!(
            subject["Names"][1],
            json!({"Type": [2, 5, 4, 10], "Value": "Example"})
        );
        assert_eq!(decoded["URIs"][0]["Scheme"], "spiffe");
        assert_eq!(decoded["URIs"][0]["Host"], "example");
        assert_eq!(decoded["URIs"][0]["Path"], "/web");
        // Exactly the fields listed there.
        assert_eq!(decoded.as_object().unwrap().len(), 52);
    }

    #[test]
    fn a_request_has_the_fields_of_go() {
        let decoded = decode(REQUEST).unwrap();
        assert_eq!(decoded["PublicKey"]["N"], MODULUS);
        assert_eq!(decoded["Version"], 0);
        assert_eq!(
            decoded["DNSNames"],
            json!(["web.example.com", "*.example.com"])
        );
        assert_eq!(decoded["Subject"]["Organization"], json!(["Example"]));
        assert_eq!(decoded.as_object().unwrap().len(), 17);
    }

    #[test]
    fn other_keys_and_other_bytes_are_refused() {
        // docs/spec/jmespath.md §12.
        assert_eq!(
            decode(EC_CERTIFICATE),
            Err("certificate should use rsa algorithm".into())
        );
        assert_eq!(decode("x"), Err("failed to decode PEM block".into()));
        // Truncated or modified at any position, the certificate is an error or a value.
        let (_, bytes) = first_pem_block(CERTIFICATE).unwrap();
        for end in 0..bytes.len() {
            assert!(certificate(&bytes[..end]).is_none(), "{end}");
            let mut changed = bytes.clone();
            changed[end] ^= 0xff;
            let _no_panic = certificate(&changed).map(with_public_key);
            let _no_panic = request(&changed).map(with_public_key);
        }
    }
}
