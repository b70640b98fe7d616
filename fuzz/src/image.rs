//! Image references: a parsed reference parses to itself.

use std::str::from_utf8;

use kpvm_semantics::image::{ImageDefaults, parse};

use crate::seeds;
use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "image",
    run,
    seeds,
    words: &[
        "docker.io/",
        "library/",
        "localhost:5000/",
        "ghcr.io/",
        ":latest",
        ":1.2.3",
        "@sha256:",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "__",
        "-",
        "..",
        "[::1]:80/",
    ],
    max_bytes: 512,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let without = ImageDefaults {
        mutation: false,
        ..ImageDefaults::KYVERNO
    };
    let (image, unmutated) = (parse(text, ImageDefaults::KYVERNO), parse(text, without));
    assert_eq!(image.is_ok(), unmutated.is_ok());
    let image = match image {
        Ok(image) => image,
        Err(error) => return assert!(error.to_string().starts_with("bad image: ")),
    };
    let tagged = !image.tag.is_empty() || !image.digest.is_empty();
    assert!(
        tagged && !image.path.is_empty() && !image.registry.is_empty(),
        "{image:?}"
    );
    assert!(image.path.ends_with(image.name()));
    let again = parse(&image.reference, ImageDefaults::KYVERNO).expect("a reference is an image");
    assert_eq!(again.reference, image.reference);
    assert_eq!(
        (&again.registry, &again.path),
        (&image.registry, &image.path)
    );
    if image.digest.is_empty() {
        assert_eq!(again, image);
    } else {
        assert_eq!(again.digest, image.digest);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "nginx",
        "nginx:1.2.3",
        "docker.io/library/nginx",
        "localhost/a",
        "localhost:5000/a/b:c",
        "ghcr.io/a/b@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "a/b:c@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "Foo/bar",
        "foo/Bar",
        "a__b.c-d:_x",
        "[::1]:80/a",
        "a@sha512:00",
    ]);
    for case in seeds::recorded("podsecurity", 40) {
        if let Some(image) = case["resource"]["spec"]["containers"][0]["image"].as_str() {
            seeds.push(image.as_bytes().to_vec());
        }
    }
    seeds
}
