//! Image references (docs/spec/conditions.md §7).
//!
//! Splits the text of an image into its parts, or returns Kyverno's error text.

use std::fmt;

/// Defaults for the registry of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageDefaults<'a> {
    /// `defaultRegistry`; may contain a path.
    pub registry: &'a str,
    /// `enableDefaultRegistryMutation`: whether it is shown as the registry.
    pub mutation: bool,
}

impl ImageDefaults<'static> {
    /// Kyverno's defaults, which its command line always uses (docs/spec/conditions.md
    /// §7.2).
    pub const KYVERNO: ImageDefaults<'static> = ImageDefaults {
        registry: "docker.io",
        mutation: true,
    };
}

/// A parsed image (docs/spec/conditions.md §7.2). Absent parts are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// The registry's host and port.
    pub registry: String,
    /// The repository within the registry.
    pub path: String,
    /// The tag; `latest` if neither tag nor digest was written.
    pub tag: String,
    /// The digest with its algorithm.
    pub digest: String,
    /// Registry and path with the digest, or with the tag if there is no digest.
    pub reference: String,
    /// Registry and path with the tag, which may be empty after its colon.
    pub reference_with_tag: String,
}

impl ImageReference {
    /// The last component of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.path.rsplit_once('/') {
            Some((_, name)) => name,
            None => &self.path,
        }
    }
}

/// Reason why a text is not an image, in Kyverno's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageError {
    /// The image including the default registry, if that was added.
    full: String,
    registry: String,
    mutation: bool,
    /// The problem.
    pub reason: ReferenceError,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            full,
            registry,
            mutation,
            reason,
            ..
        } = self;
        write!(
            f,
            "bad image: {full}, defaultRegistry: {registry}, enableDefaultRegistryMutation: {mutation}: {reason}"
        )
    }
}

impl std::error::Error for ImageError {}

/// Problem of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceError {
    /// The text does not follow the grammar.
    Format,
    /// The text would follow the grammar if it were lower-case.
    Uppercase,
    /// The path is too long.
    NameTooLong,
    /// The digest contains characters that its algorithm does not use.
    DigestFormat,
    /// The digest does not have the length of its algorithm.
    DigestLength,
    /// The digest's algorithm is unknown.
    DigestAlgorithm,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => f.write_str("invalid reference format"),
            Self::Uppercase => f.write_str("repository name must be lowercase"),
            Self::NameTooLong => {
                f.write_str("repository name must not be more than 255 characters")
            }
            Self::DigestFormat => f.write_str("invalid checksum digest format"),
            Self::DigestLength => f.write_str("invalid checksum digest length"),
            Self::DigestAlgorithm => f.write_str("unsupported digest algorithm"),
        }
    }
}

impl std::error::Error for ReferenceError {}

/// Parses an image (docs/spec/conditions.md §7.2).
///
/// # Errors
/// An [`ImageError`] with Kyverno's text.
pub fn parse(image: &str, defaults: ImageDefaults<'_>) -> Result<ImageReference, ImageError> {
    let gets_default = lacks_registry(image);
    let full = if gets_default {
        format!("{}/{image}", defaults.registry)
    } else {
        image.to_owned()
    };
    match Parts::parse(&full) {
        Ok(parts) => Ok(parts.into_reference(gets_default && !defaults.mutation)),
        Err(reason) => Err(ImageError {
            full,
            registry: defaults.registry.to_owned(),
            mutation: defaults.mutation,
            reason,
        }),
    }
}

/// Whether the default registry is added: the text before the first slash, if any, does not
/// look like a host.
fn lacks_registry(image: &str) -> bool {
    match image.split_once('/') {
        None => true,
        Some((first, _)) => {
            let is_lower = |letter: char| letter.to_lowercase().eq([letter]);
            !first.contains(['.', ':']) && first != "localhost" && first.chars().all(is_lower)
        }
    }
}

/// Parts of a reference according to the grammar of distribution's references.
struct Parts<'t> {
    domain: &'t str,
    path: &'t str,
    tag: &'t str,
    digest: &'t str,
}

impl<'t> Parts<'t> {
    fn parse(text: &'t str) -> Result<Parts<'t>, ReferenceError> {
        let Some(parts) = Parts::split(text) else {
            return Err(match Parts::split(&lower_case(text)) {
                Some(_) => ReferenceError::Uppercase,
                None => ReferenceError::Format,
            });
        };
        if parts.path.len() > 255 {
            return Err(ReferenceError::NameTooLong);
        }
        if !parts.digest.is_empty() {
            check_digest(parts.digest)?;
        }
        Ok(parts)
    }

    /// Splits a text that follows the grammar.
    fn split(text: &'t str) -> Option<Parts<'t>> {
        let (text, digest) = match text.split_once('@') {
            Some((text, digest)) => (text, is_digest(digest).then_some(digest)?),
            None => (text, ""),
        };
        // A colon before the last slash belongs to a port.
        let last_component = text.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match text.get(last_component..)?.find(':') {
            Some(colon) => {
                let (name, tag) = text.split_at_checked(last_component + colon)?;
                (name, tag.get(1..).filter(|tag| is_tag(tag))?)
            }
            None => (text, ""),
        };
        let (domain, path) = match name.split_once('/') {
            Some((domain, path)) if is_domain(domain) && is_path(path) => (domain, path),
            _ if is_path(name) => ("", name),
            _ => return None,
        };
        Some(Parts {
            domain,
            path,
            tag,
            digest,
        })
    }

    fn into_reference(self, hides_registry: bool) -> ImageReference {
        let tag = match (self.tag, self.digest) {
            ("", "") => "latest",
            (tag, _) => tag,
        };
        let (mut registry, mut path) = (self.domain, self.path);
        if hides_registry {
            registry = "";
        }
        let slash = if registry.is_empty() { "" } else { "/" };
        let with_tag = format!("{registry}{slash}{path}:{tag}");
        let reference = match self.digest {
            "" => with_tag.clone(),
            digest => format!("{registry}{slash}{path}@{digest}"),
        };
        // A first component with an underscore still counts as the registry, but not in the
        // references.
        if registry.is_empty()
            && let Some((first, rest)) = path.split_once('/')
            && first.contains('_')
        {
            (registry, path) = (first, rest);
        }
        ImageReference {
            registry: registry.to_owned(),
            path: path.to_owned(),
            tag: tag.to_owned(),
            digest: self.digest.to_owned(),
            reference,
            reference_with_tag: with_tag,
        }
    }
}

/// Lower-cases a text like Go's `ToLower`, as far as the grammar is concerned: two letters
/// outside ASCII become ASCII.
fn lower_case(text: &str) -> String {
    let lower = |letter: char| match letter {
        'İ' => 'i',
        '\u{212A}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    text.chars().map(lower).collect()
}

/// A host name or an address in square brackets, with an optional port.
fn is_domain(text: &str) -> bool {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let Some((address, rest)) = inner.split_once(']') else {
                return false;
            };
            let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
            if address.is_empty() || !address.bytes().all(is_allowed) {
                return false;
            }
            (None, rest)
        }
        None => {
            let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (Some(host), rest)
        }
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.is_none_or(|host| host.split('.').all(is_host_component))
        && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn is_host_component(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty()
        && text.bytes().all(is_allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_path(text: &str) -> bool {
    text.split('/').all(is_path_component)
}

/// Runs of lower-case letters and digits, separated by a period, one or two underscores, or
/// hyphens.
fn is_path_component(text: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut runs = text
        .as_bytes()
        .chunk_by(|a, b| is_letter(a) == is_letter(b));
    let is_run = |run: &[u8]| run.first().is_some_and(is_letter);
    let is_separator =
        |run: &[u8]| matches!(run, b"." | b"_" | b"__") || run.iter().all(|&byte| byte == b'-');
    // Runs alternate, so the first and the last one determine both ends.
    runs.next().is_some_and(is_run)
        && runs.next_back().is_none_or(is_run)
        && runs.all(|run| is_run(run) || is_separator(run))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.len() <= 128
        && text.as_bytes().first().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(&byte) || matches!(byte, b'.' | b'-'))
}

/// Words separated by one of `-_+.`, a colon, and at least 32 hexadecimal digits.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let is_word = |word: &str| {
        word.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_word)
        && digits.len() >= 32
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks a digest that follows the grammar against its algorithm.
fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let is_upper = |byte: u8| byte.is_ascii_uppercase();
    let (algorithm, digits) = digest.split_once(':').unwrap_or((digest, ""));
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        other if other.bytes().any(is_upper) => return Err(ReferenceError::DigestFormat),
        _ => return Err(ReferenceError::DigestAlgorithm),
    };
    if digits.len() != length {
        return Err(ReferenceError::DigestLength);
    }
    if digits.bytes().any(is_upper) {
        return Err(ReferenceError::DigestFormat);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Image, registry, path, name, tag, digest, reference, reference with tag.
    type Row = [&'static str; 8];

    const F: &str = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

    fn parts(image: &str, defaults: ImageDefaults<'_>) -> Result<[String; 7], String> {
        let image = parse(image, defaults).map_err(|error| error.reason.to_string())?;
        let name = image.name().to_owned();
        Ok([
            image.registry,
            image.path,
            name,
            image.tag,
            image.digest.replace(F, "F"),
            image.reference.replace(F, "F"),
            image.reference_with_tag,
        ])
    }

    fn check(rows: &[Row], defaults: ImageDefaults<'_>) {
        for [image, expected @ ..] in rows {
            let found = parts(&image.replace('F', F), defaults);
            assert_eq!(found, Ok(expected.map(str::to_owned)), "{image}");
        }
    }

    #[test]
    fn section_7_2_fields() {
        check(
            &[
                [
                    "nginx",
                    "docker.io",
                    "nginx",
                    "nginx",
                    "latest",
                    "",
                    "docker.io/nginx:latest",
                    "docker.io/nginx:latest",
                ],
                [
                    "test/nginx:v1",
                    "docker.io",
                    "test/nginx",
                    "nginx",
                    "v1",
                    "",
                    "docker.io/test/nginx:v1",
                    "docker.io/test/nginx:v1",
                ],
                [
                    "localhost:4443/a/b",
                    "localhost:4443",
                    "a/b",
                    "b",
                    "latest",
                    "",
                    "localhost:4443/a/b:latest",
                    "localhost:4443/a/b:latest",
                ],
                [
                    "r.io:1/i:t@F",
                    "r.io:1",
                    "i",
                    "i",
                    "t",
                    "F",
                    "r.io:1/i@F",
                    "r.io:1/i:t",
                ],
                [
                    "docker.io/t/c@F",
                    "docker.io",
                    "t/c",
                    "c",
                    "",
                    "F",
                    "docker.io/t/c@F",
                    "docker.io/t/c:",
                ],
                [
                    "index.docker.io/busybox:1",
                    "index.docker.io",
                    "busybox",
                    "busybox",
                    "1",
                    "",
                    "index.docker.io/busybox:1",
                    "index.docker.io/busybox:1",
                ],
                // Allowed by the grammar: an address in brackets, separators in a path.
                [
                    "[2001:db8::1]:5000/a",
                    "[2001:db8::1]:5000",
                    "a",
                    "a",
                    "latest",
                    "",
                    "[2001:db8::1]:5000/a:latest",
                    "[2001:db8::1]:5000/a:latest",
                ],
                [
                    "a--b/c__d.e_f",
                    "docker.io",
                    "a--b/c__d.e_f",
                    "c__d.e_f",
                    "latest",
                    "",
                    "docker.io/a--b/c__d.e_f:latest",
                    "docker.io/a--b/c__d.e_f:latest",
                ],
            ],
            ImageDefaults::KYVERNO,
        );
    }

    #[test]
    fn section_7_2_other_defaults() {
        let with_path = ImageDefaults {
            registry: "acct.dkr.ecr/docker",
            mutation: true,
        };
        check(
            &[[
                "test/nginx",
                "acct.dkr.ecr",
                "docker/test/nginx",
                "nginx",
                "latest",
                "",
                "acct.dkr.ecr/docker/test/nginx:latest",
                "acct.dkr.ecr/docker/test/nginx:latest",
            ]],
            with_path,
        );
        let hidden = ImageDefaults {
            registry: "docker.io",
            mutation: false,
        };
        check(
            &[
                [
                    "nginx",
                    "",
                    "nginx",
                    "nginx",
                    "latest",
                    "",
                    "nginx:latest",
                    "nginx:latest",
                ],
                [
                    "docker.io/nginx",
                    "docker.io",
                    "nginx",
                    "nginx",
                    "latest",
                    "",
                    "docker.io/nginx:latest",
                    "docker.io/nginx:latest",
                ],
                // An underscore makes a registry, after the references have been built.
                ["a_b/c:1", "a_b", "c", "c", "1", "", "a_b/c:1", "a_b/c:1"],
                [
                    "a_b",
                    "",
                    "a_b",
                    "a_b",
                    "latest",
                    "",
                    "a_b:latest",
                    "a_b:latest",
                ],
            ],
            hidden,
        );
    }

    #[test]
    fn what_is_no_image_says_why() {
        let long = "a".repeat(256);
        let rows = [
            ("++".to_owned(), ReferenceError::Format),
            ("nginx:".to_owned(), ReferenceError::Format),
            ("nginx@sha256:abc".to_owned(), ReferenceError::Format),
            (" nginx".to_owned(), ReferenceError::Format),
            ("a___b".to_owned(), ReferenceError::Format),
            ("a._b".to_owned(), ReferenceError::Format),
            ("-a".to_owned(), ReferenceError::Format),
            ("a-".to_owned(), ReferenceError::Format),
            ("a//b".to_owned(), ReferenceError::Format),
            ("r.io:x/a".to_owned(), ReferenceError::Format),
            ("-r.io/a".to_owned(), ReferenceError::Format),
            ("[::1/a".to_owned(), ReferenceError::Format),
            (format!("a:{}", "t".repeat(129)), ReferenceError::Format),
            ("UPPER".to_owned(), ReferenceError::Uppercase),
            ("x/UPPER".to_owned(), ReferenceError::Uppercase),
            (long, ReferenceError::NameTooLong),
            (format!("a@{}f", F), ReferenceError::DigestLength),
            (
                format!("a@sha256:{}", "a".repeat(32)),
                ReferenceError::DigestLength,
            ),
            (
                format!("a@sha256:{}", "A".repeat(64)),
                ReferenceError::DigestFormat,
            ),
            (
                format!("a@SHA256:{}", "a".repeat(64)),
                ReferenceError::DigestFormat,
            ),
            (
                format!("a@md5:{}", "a".repeat(32)),
                ReferenceError::DigestAlgorithm,
            ),
        ];
        for (image, expected) in rows {
            let error = parse(&image, ImageDefaults::KYVERNO).unwrap_err();
            assert_eq!(error.reason, expected, "{image}");
        }
        assert!(parse(&"a".repeat(255), ImageDefaults::KYVERNO).is_ok());
        assert!(parse(&format!("a:{}", "t".repeat(128)), ImageDefaults::KYVERNO).is_ok());
    }
}
