//! Names of the rules that autogen generates.

/// Whether a computed rule is a written rule or generated from it (docs/spec/cli.md §4.3).
pub fn is_computed_from(computed: &str, written: &str) -> bool {
    let generated = computed.strip_prefix("autogen-");
    computed == written
        || generated.is_some_and(|rule| rule == written)
        || generated.and_then(|rule| rule.strip_prefix("cronjob-")) == Some(written)
}
