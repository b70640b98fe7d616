//! URLs as Go's `net/url` parses them (docs/spec/cel.md §3.9).

use crate::quote::go_quote;

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Scheme, in lower case.
    pub scheme: String,
    /// Host with port, unescaped.
    pub host: String,
    /// Path as written.
    pub path: String,
    /// Query as written, without the question mark.
    pub query: String,
}

/// Parts of a URL with different rules for escapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
}

impl Url {
    /// Parses an absolute URI or an absolute path, like `url.ParseRequestURI`. A fragment is
    /// taken for a piece of what it follows.
    ///
    /// # Errors
    /// Go's text, without the name of the operation.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        parse(text, true)
    }

    /// Parses a reference with an optional fragment, like `url.Parse`.
    ///
    /// # Errors
    /// Go's text, without the name of the operation.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let url = parse(text, false)?;
        unescape(fragment, Part::Path)?;
        Ok(url)
    }

    /// Host and port; the port may be empty.
    pub fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (self.host.as_str(), ""),
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }

    /// The path with escapes, as written if it is valid.
    pub fn escaped_path(&self) -> String {
        let allowed = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || is_plain(byte, Part::Path);
        if self.path.bytes().all(allowed) || self.path == "*" {
            return self.path.clone();
        }
        let decoded = unescape(&self.path, Part::Path).unwrap_or_default();
        let mut out = String::new();
        for byte in decoded {
            match is_plain(byte, Part::Path) {
                true => out.push(char::from(byte)),
                false => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }

    /// Parameters of the query in the order of their first mention; invalid ones are left out.
    pub fn parameters(&self) -> Vec<(String, Vec<String>)> {
        let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        for pair in self.query.split('&') {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query))
            else {
                continue;
            };
            let (key, value) = (text(key), text(value));
            match pairs.iter_mut().find(|(known, _)| *known == key) {
                Some((_, all)) => all.push(value),
                None => pairs.push((key, vec![value])),
            }
        }
        pairs
    }
}

fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.is_empty() && is_request {
        return Err("empty url".into());
    }
    let mut url = Url {
        scheme: String::new(),
        host: String::new(),
        path: String::new(),
        query: String::new(),
    };
    if text == "*" {
        url.path = "*".into();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".into());
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|first| first.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let mut path = rest;
    if (!url.scheme.is_empty() || !is_request && !rest.starts_with("///"))
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, after) = after.split_at(end);
        url.host = parse_authority(&url.scheme, authority)?;
        path = after;
    }
    unescape(path, Part::Path)?;
    url.path = path.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<String, String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return parse_host(scheme, authority);
    };
    let host = parse_host(scheme, host)?;
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_valid) {
        return Err("net/url: invalid userinfo".into());
    }
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    unescape(name, Part::User)?;
    unescape(password, Part::User)?;
    Ok(host)
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    let bad_port = |port: &str| format!("invalid port {} after host", go_quote(port));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match host.rfind('[') {
        None => {}
        Some(0) => {
            let Some(close) = host.rfind(']') else {
                return Err("missing ']' in host".into());
            };
            let (name, port) = (&host[1..close], &host[close + 1..]);
            if !is_port(port) {
                return Err(bad_port(port));
            }
            let name = match name.find("%25") {
                Some(zone) => {
                    let mut bytes = unescape(&name[..zone], Part::Host)?;
                    bytes.extend(unescape(&name[zone..], Part::Zone)?);
                    text(bytes)
                }
                None => text(unescape(name, Part::Host)?),
            };
            let address = name.split('%').next().unwrap_or_default();
            return match address.parse::<std::net::IpAddr>() {
                Ok(std::net::IpAddr::V6(_)) => Ok(format!("[{name}]{port}")),
                Ok(std::net::IpAddr::V4(_)) => Err("invalid IP-literal".into()),
                Err(_) => Err(format!(
                    "invalid host: ParseAddr({}): unable to parse IP",
                    go_quote(&name)
                )),
            };
        }
        Some(_) => return Err("invalid IP-literal".into()),
    }
    if let (Some(first), Some(last)) = (host.find(':'), host.rfind(':')) {
        // Colons in the host are an error of these two schemes only.
        let from = match matches!(scheme, "http" | "https") {
            true => first,
            false => last,
        };
        if !is_port(&host[from..]) {
            return Err(bad_port(&host[from..]));
        }
    }
    Ok(text(unescape(host, Part::Host)?))
}

/// Whether a text is empty or a colon followed by digits.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a byte needs no escape.
fn is_plain(byte: u8, part: Part) -> bool {
    let more: &[u8] = match part {
        Part::Path => b"$&+,/:;=@",
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"",
        Part::User | Part::Query => b"$&+,;=",
    };
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || more.contains(&byte)
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let bad = |escape: &[u8]| {
        let escape = String::from_utf8_lossy(escape);
        Err(format!("invalid URL escape {}", go_quote(&escape)))
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| {
            rest.get(at)
                .and_then(|digit| char::from(*digit).to_digit(16))
        };
        match byte {
            b'%' => {
                let escape = rest.get(..3).unwrap_or(rest);
                let (Some(high), Some(low)) = (digit(1), digit(2)) else {
                    return bad(escape);
                };
                let decoded = (high * 16 + low) as u8;
                let is_allowed = match part {
                    Part::Host => high >= 8 || escape == b"%25",
                    Part::Zone => {
                        escape == b"%25" || decoded == b' ' || is_plain(decoded, Part::Host)
                    }
                    Part::Path | Part::User | Part::Query => true,
                };
                if !is_allowed {
                    return bad(escape);
                }
                out.push(decoded);
                rest = rest.get(3..).unwrap_or_default();
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone)
                && byte < 0x80
                && !is_plain(byte, part) =>
            {
                let shown = go_quote(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            byte => out.push(byte),
        }
        rest = after;
    }
    Ok(out)
}
