//! Rows of the table, and the page that contains it.

use std::fmt::Write;
use std::path::Path;

/// Target of a ratio.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met(self, found: f64) -> bool {
        match self {
            Target::AtMost(bound) => found <= bound,
            Target::AtLeast(bound) => found >= bound,
        }
    }

    fn sign(self) -> (&'static str, f64) {
        match self {
            Target::AtMost(bound) => ("≤", bound),
            Target::AtLeast(bound) => ("≥", bound),
        }
    }
}

/// Measurements.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    figures: String,
    targets: String,
}

impl Rows {
    /// Begins a workload.
    pub(crate) fn group(&mut self, name: &str) {
        println!("{name}");
        let _ = writeln!(self.figures, "| **{name}** | |");
    }

    /// A time in microseconds.
    pub(crate) fn time(&mut self, what: &str, microseconds: f64) {
        self.figure(what, &in_words(microseconds));
    }

    /// Any other figure.
    pub(crate) fn figure(&mut self, what: &str, figure: &str) {
        println!("  {what}: {figure}");
        let _ = writeln!(self.figures, "| {what} | {figure} |");
    }

    /// A ratio that has a target.
    pub(crate) fn target(&mut self, what: &str, target: Target, found: f64) {
        self.target_of(what, target, found, "×");
    }

    /// A figure that has a target.
    pub(crate) fn target_of(&mut self, what: &str, target: Target, found: f64, unit: &str) {
        let (sign, bound) = target.sign();
        let verdict = if target.is_met(found) {
            "met"
        } else {
            "missed"
        };
        println!("  {what}: {found:.2}{unit} ({sign} {bound}{unit}: {verdict})");
        let _ = writeln!(
            self.targets,
            "| {what} | {sign} {bound}{unit} | {found:.2}{unit} | {verdict} |"
        );
    }

    pub(crate) fn to_markdown(&self, machine: &str) -> String {
        format!(
            "{machine}\n\n| target | should be | is | |\n|---|---|---|---|\n{}\n| what | for one |\n|---|---|\n{}",
            self.targets, self.figures
        )
    }
}

/// Formats microseconds for people.
pub(crate) fn in_words(microseconds: f64) -> String {
    match microseconds {
        large if large >= 10_000.0 => format!("{:.1} ms", large / 1000.0),
        large if large >= 100.0 => format!("{large:.0} µs"),
        small => format!("{small:.2} µs"),
    }
}

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";

/// Replaces the table in the page.
pub(crate) fn write_into_page(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (_, after) = rest.split_once(END).expect("the table ends");
    let page = format!("{before}{BEGIN}{table}\n{END}{after}");
    std::fs::write(&path, page).expect("the page can be written");
}
