//! Names of images as go-containerregistry parses them (`pkg/name`), for CEL's `image`
//! (docs/spec/cel.md §6.7). JMESPath and rules use [`crate::image`] instead.

use crate::go_url::Url;

const DEFAULT_REGISTRY: &str = "index.docker.io";

/// A parsed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// Registry with port.
    pub registry: String,
    /// Repository, with `library/` if that is implied.
    pub repository: String,
    /// Tag as written; `latest` if there is neither a tag nor a digest.
    pub tag: String,
    /// Digest; empty if there is none.
    pub digest: String,
}

impl ImageName {
    /// Parses a name; `None` if it is not one.
    pub fn parse(text: &str) -> Option<ImageName> {
        with_tag(text).or_else(|| with_digest(text))
    }

    /// What selects the image in its repository.
    pub fn identifier(&self) -> String {
        match (self.tag.as_str(), self.digest.as_str()) {
            (tag, "") => tag.to_owned(),
            ("", digest) => digest.to_owned(),
            (tag, digest) => format!("{tag}@{digest}"),
        }
    }

    /// Digest or else tag, with the mark in front of it.
    pub fn identifier_with_separator(&self) -> String {
        match self.digest.as_str() {
            "" => format!(":{}", self.tag),
            digest => format!("@{digest}"),
        }
    }
}

fn with_tag(text: &str) -> Option<ImageName> {
    let (base, tag) = match text.rsplit_once(':') {
        Some((_, "")) => return None,
        Some((base, tag)) if !tag.contains('/') => (base, tag),
        _ => (text, ""),
    };
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if tag.chars().count() > 128 || !tag.chars().all(is_valid) {
        return None;
    }
    let tag = if tag.is_empty() { "latest" } else { tag };
    let (registry, repository) = split_repository(base)?;
    Some(ImageName {
        registry,
        repository,
        tag: tag.to_owned(),
        digest: String::new(),
    })
}

fn with_digest(text: &str) -> Option<ImageName> {
    let (base, digest) = text.split_once('@')?;
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hex.len() != 64 || !hex.bytes().all(is_hex) {
        return None;
    }
    let (registry, repository) = match with_tag(base) {
        Some(image) => (image.registry, image.repository),
        None => split_repository(base)?,
    };
    let tag = match base.rsplit_once(':') {
        Some((_, tag)) if !tag.contains('/') => tag,
        _ => "",
    };
    Some(ImageName {
        registry,
        repository,
        tag: tag.to_owned(),
        digest: digest.to_owned(),
    })
}

/// Registry and repository.
fn split_repository(text: &str) -> Option<(String, String)> {
    let (registry, repository) = match text.split_once('/') {
        Some((registry, rest)) if registry == "localhost" || registry.contains(['.', ':']) => {
            (registry, rest)
        }
        _ => ("", text),
    };
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c);
    if !(2..=255).contains(&repository.chars().count()) || !repository.chars().all(is_valid) {
        return None;
    }
    let is_authority = Url::parse(&format!("//{registry}")).is_ok_and(|url| url.host == registry);
    if !is_authority {
        return None;
    }
    let registry = match registry {
        "" | "docker.io" => DEFAULT_REGISTRY,
        other => other,
    };
    let repository = match registry == DEFAULT_REGISTRY && !repository.contains('/') {
        true => format!("library/{repository}"),
        false => repository.to_owned(),
    };
    Some((registry.to_owned(), repository))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// go-containerregistry v0.21.8, `pkg/name`, asked through Kyverno 1.19.1.
    #[test]
    fn names_are_those_of_go_containerregistry() {
        for text in [
            "",
            "x",
            "LOCALHOST/ab",
            "ab:",
            "e.com/AB",
            "ab:a b",
            "ab@sha256:0",
        ] {
            assert_eq!(ImageName::parse(text), None, "{text}");
        }
        for (text, registry, repository, tag) in [
            ("nginx", "index.docker.io", "library/nginx", "latest"),
            ("docker.io/nginx:1", "index.docker.io", "library/nginx", "1"),
            ("a..b", "index.docker.io", "library/a..b", "latest"),
            ("localhost/ab", "localhost", "ab", "latest"),
            ("http://a.b/cd", "http:", "/a.b/cd", "latest"),
            ("e.com:5000/a/b:x", "e.com:5000", "a/b", "x"),
        ] {
            let image = ImageName::parse(text);
            let parts = image.map(|image| (image.registry, image.repository, image.tag));
            let expected = [registry, repository, tag].map(str::to_owned);
            assert_eq!(parts, Some(expected.into()), "{text}");
        }
    }
}
