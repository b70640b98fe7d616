//! `image_normalize`: the full name of an image (docs/spec/jmespath.md §12).

use super::Outcome;
use super::regex::compile;
use super::values::Values;
use crate::document::NodeId;
use kpvm_semantics::FunctionError;

/// Registry of images that name none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// `name[:tag][@digest]`, with the name's registry in its own group.
const REFERENCE: &str = concat!(
    r"^(?:((?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])",
    r"(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[(?:[a-fA-F0-9:]+)\])",
    r"(?::[0-9]+)?)/)?",
    r"([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)",
    r"(?::([\w][\w.-]{0,127}))?",
    r"(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$",
);

/// Maximum length of a repository's path, in bytes.
const MAX_PATH: usize = 255;

/// Whether the part before the first `/` cannot be a registry.
fn lacks_registry(image: &str) -> bool {
    match image.split_once('/') {
        None => true,
        Some((first, _)) => {
            !first.contains(['.', ':']) && first != "localhost" && first.to_lowercase() == first
        }
    }
}

pub(super) fn image_normalize(values: &mut Values<'_>, image: NodeId) -> Outcome {
    let image = values.str(image);
    let image = if lacks_registry(image) {
        format!("{DEFAULT_REGISTRY}/{image}")
    } else {
        image.to_owned()
    };
    match normalize(values, &image)? {
        Ok(normal) => values.new_text(&normal),
        Err(problem) => Err(FunctionError::of(
            "image_normalize",
            format!(
                "bad image: {image}, defaultRegistry: {DEFAULT_REGISTRY}, \
                 enableDefaultRegistryMutation: true: {problem}"
            ),
        )),
    }
}

/// The full name; the inner error describes the problem of the image.
fn normalize(
    values: &mut Values<'_>,
    image: &str,
) -> Result<Result<String, &'static str>, FunctionError> {
    let pattern = compile(values, REFERENCE)?;
    values.charge(1 + image.len() as u64)?;
    let mut groups = pattern.regex.create_captures();
    pattern.regex.captures(image, &mut groups);
    if !groups.is_match() {
        values.charge(1 + image.len() as u64)?;
        return Ok(Err(if pattern.regex.is_match(&image.to_lowercase()) {
            "repository name must be lowercase"
        } else {
            "invalid reference format"
        }));
    }
    let group = |index| {
        let span = groups.get_group(index)?;
        image.get(span.range())
    };
    let path = group(2).unwrap_or_default();
    if path.len() > MAX_PATH {
        return Ok(Err("repository name must not be more than 255 characters"));
    }
    let name = match group(1) {
        Some(registry) => format!("{registry}/{path}"),
        None => path.to_owned(),
    };
    Ok(match group(4) {
        Some(digest) => check_digest(digest).map(|()| format!("{name}@{digest}")),
        None => Ok(format!("{name}:{}", group(3).unwrap_or("latest"))),
    })
}

/// Digests have a known algorithm and the right number of lower-case digits.
fn check_digest(digest: &str) -> Result<(), &'static str> {
    let (algorithm, digits) = digest.split_once(':').unwrap_or((digest, ""));
    let wanted = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err("unsupported digest algorithm"),
    };
    if digits.len() != wanted {
        return Err("invalid checksum digest length");
    }
    if digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err("invalid checksum digest format");
    }
    Ok(())
}
