//! All limits in one table. Realistic inputs stay below the defaults, the host can change
//! each, and `kpvm limits` prints them.

/// Limits for reading documents and evaluating rules.
///
/// Exceeding a reading limit rejects the input; exceeding an evaluation limit makes the
/// rule's status `error`. Neither ever passes a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one document.
    pub document_bytes: usize,
    /// Nesting of maps and lists in a document.
    pub document_depth: usize,
    /// Values (map entries and list items) of one document, with aliases expanded.
    pub document_nodes: usize,
    /// Nesting of maps and lists in a policy's pattern.
    pub pattern_depth: usize,
    /// Steps of one rule on one resource.
    pub rule_fuel: u64,
    /// Steps of all rules together on one resource.
    pub request_fuel: u64,
    /// Steps of one CEL expression (docs/spec/cel.md §2.7).
    pub cel_fuel: u64,
    /// Bytes of one rendered message.
    pub message_bytes: usize,
    /// Bytes of one text created by a function.
    pub string_bytes: usize,
    /// Items of one list, or entries of one map, created by an expression.
    pub list_items: usize,
    /// Bytes of one regular expression known only at run time.
    pub regex_bytes: usize,
    /// Bytes of memory of one compiled regular expression.
    pub regex_program_bytes: usize,
    /// Bytes of one bundle.
    pub bundle_bytes: usize,
}

impl Limits {
    /// Defaults of the command line.
    pub const DEFAULT: Limits = Limits {
        document_bytes: 64 << 20,
        document_depth: 1_000,
        document_nodes: 4_000_000,
        pattern_depth: 256,
        rule_fuel: 5_000_000,
        request_fuel: 50_000_000,
        cel_fuel: 1_000_000,
        message_bytes: 4 << 10,
        string_bytes: 1 << 20,
        list_items: 1_000_000,
        regex_bytes: 16 << 10,
        regex_program_bytes: 2 << 20,
        bundle_bytes: 256 << 20,
    };

    /// Name, value and meaning of each limit, in a fixed order.
    pub fn table(&self) -> Vec<(&'static str, u64, &'static str)> {
        vec![
            (
                "document-bytes",
                self.document_bytes as u64,
                "bytes of one document",
            ),
            (
                "document-depth",
                self.document_depth as u64,
                "nesting of maps and lists in a document",
            ),
            (
                "document-nodes",
                self.document_nodes as u64,
                "values of one document, aliases expanded",
            ),
            (
                "pattern-depth",
                self.pattern_depth as u64,
                "nesting of maps and lists in a pattern",
            ),
            (
                "rule-fuel",
                self.rule_fuel,
                "steps of one rule on one resource",
            ),
            (
                "request-fuel",
                self.request_fuel,
                "steps of all rules on one resource",
            ),
            ("cel-fuel", self.cel_fuel, "steps of one CEL expression"),
            (
                "message-bytes",
                self.message_bytes as u64,
                "bytes of one rendered message",
            ),
            (
                "string-bytes",
                self.string_bytes as u64,
                "bytes of one text that a function makes",
            ),
            (
                "list-items",
                self.list_items as u64,
                "items of one list that an expression makes",
            ),
            (
                "regex-bytes",
                self.regex_bytes as u64,
                "bytes of one regular expression known only at run time",
            ),
            (
                "regex-program-bytes",
                self.regex_program_bytes as u64,
                "bytes of memory of one compiled regular expression",
            ),
            (
                "bundle-bytes",
                self.bundle_bytes as u64,
                "bytes of one bundle",
            ),
        ]
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
