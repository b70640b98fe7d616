//! Findings: what a block of checks records about a value (docs/spec/pod-security.md). A
//! block runs once over the value itself; for an exclusion it runs again over a part of it,
//! and each finding there removes a corresponding one (docs/spec/pod-security.md §7).
//!
//! Findings are facts. Their text is composed only for a message.

use std::fmt::Write;

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::NoteFlags as How;
use kpvm_format::instruction::{BlockId, ControlId, TextId, TextListId};
use kpvm_format::table::{self, NONE};

use crate::document::{Kind, NodeId, View};
use kpvm_semantics::wildcard;

/// A violation of a control.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    pub(super) control: ControlId,
    pub(super) flags: How,
    /// Index of the text of its general path.
    pub(super) path: TextId,
    /// Indices for the stars in the path.
    pub(super) indices: [u32; 2],
    pub(super) value: NodeId,
    /// The container, if there is one.
    pub(super) owner: NodeId,
}

impl Finding {
    fn is(&self, flags: How) -> bool {
        self.flags.has(flags)
    }

    fn place(&self) -> u8 {
        self.flags.place()
    }
}

/// The findings of the last run of checks, and what remains of them after exclusions.
#[derive(Debug)]
pub(crate) struct Findings {
    block: BlockId,
    subject: Option<NodeId>,
    /// List of texts: the paths of the subject's `spec` and `metadata` in the resource.
    places: TextListId,
    /// The findings of the current run.
    noted: Vec<Finding>,
    /// All findings, in the order of messages.
    found: Vec<Finding>,
    /// The remaining ones: indices into `found`.
    left: Vec<u32>,
    /// How many the last exclusion removed.
    taken: u32,
}

/// What is needed to show findings.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'v> {
    pub(crate) tables: &'v Tables<'v>,
    pub(crate) view: View<'v>,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            block: BlockId(NONE),
            subject: None,
            places: TextListId(NONE),
            noted: Vec::new(),
            found: Vec::new(),
            left: Vec::new(),
            taken: 0,
        }
    }
}

impl Findings {
    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let (mut noted, mut found, mut left) = (
            std::mem::take(&mut self.noted),
            std::mem::take(&mut self.found),
            std::mem::take(&mut self.left),
        );
        noted.clear();
        found.clear();
        left.clear();
        *self = Self {
            noted,
            found,
            left,
            ..Self::default()
        };
    }

    /// Records a finding of the running block.
    pub(super) fn note(&mut self, finding: Finding) {
        self.noted.push(finding);
    }

    /// Begins a run over a value.
    pub(super) fn begin(&mut self, block: BlockId, subject: NodeId, places: TextListId) {
        self.block = block;
        self.subject = Some(subject);
        self.places = places;
        self.begin_probe();
    }

    /// Begins a run for an exclusion.
    pub(super) fn begin_probe(&mut self) {
        self.noted.clear();
    }

    /// The block of checks.
    pub(super) fn block(&self) -> BlockId {
        self.block
    }

    /// The value that the findings concern.
    pub(super) fn subject(&self) -> NodeId {
        self.subject.unwrap_or(NodeId::MISSING)
    }

    /// Makes the recorded findings the result.
    pub(super) fn keep(&mut self, shown: Shown<'_>) {
        self.arrange(shown);
        std::mem::swap(&mut self.noted, &mut self.found);
        self.left.clear();
        self.left.extend(0..self.found.len() as u32);
    }

    /// Sorts the recorded findings by control.
    fn arrange(&mut self, shown: Shown<'_>) {
        let order = |finding: &Finding| {
            let key = if finding.is(How::KEYED) {
                shown.view.key_bytes(finding.value)
            } else {
                &[]
            };
            (finding.control, finding.place(), key)
        };
        let unordered = |pair: &[Finding]| order(&pair[0]) > order(&pair[1]);
        if self.noted.windows(2).any(unordered) {
            self.noted
                .sort_by(|left, right| order(left).cmp(&order(right)));
        }
        let mut control = None;
        self.noted.retain(|finding| {
            // A control's fallback comes last.
            let is_first = control != Some(finding.control);
            let counts = is_first || !finding.is(How::FALLBACK);
            if !finding.is(How::FALLBACK) {
                control = Some(finding.control);
            }
            counts
        });
    }

    /// Whether no findings remain.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The remaining findings, in the order of messages.
    fn remaining(&self) -> impl Iterator<Item = &Finding> {
        self.left
            .iter()
            .filter_map(|&number| self.found.get(number as usize))
    }

    /// Whether a finding of a control with this name remains.
    pub(super) fn concern(&self, name: table::Text, tables: &Tables<'_>) -> bool {
        self.remaining()
            .any(|finding| control_is(finding, name, tables))
    }

    /// The cost of [`Findings::exempt`].
    pub(super) fn steps(&self) -> u64 {
        (self.noted.len() as u64).saturating_mul(1 + self.left.len() as u64 / 8)
    }

    /// Removes the findings that correspond to the recorded ones: for each, the first
    /// remaining one with the same general path, and of a container of the same name if the
    /// exclusion concerns containers (docs/spec/pod-security.md §7.1, §7.4 and §7.5).
    pub(super) fn exempt(&mut self, exclusion: &table::Exclusion, shown: Shown<'_>) {
        self.arrange(shown);
        let before = self.left.len();
        let noted = std::mem::take(&mut self.noted);
        for probe in &noted {
            let applies = control_is(probe, exclusion.name, shown.tables)
                && !probe.is(How::UNLISTED)
                && shown.is_about(probe, exclusion.field)
                && shown.values_allow(probe, exclusion.values.get());
            if applies {
                self.take_away(probe, exclusion.by_owner != 0, shown);
            }
        }
        self.noted = noted;
        self.taken = (before - self.left.len()) as u32;
    }

    /// How many the last exclusion removed.
    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    /// The remaining findings: control, path in the resource, and value.
    pub(super) fn each<'f>(
        &'f self,
        shown: Shown<'f>,
    ) -> impl Iterator<Item = (u32, String, NodeId)> + 'f {
        self.remaining().map(move |finding| {
            let path = self.resource_path(finding, shown);
            (finding.control.0, path, finding.value)
        })
    }

    fn take_away(&mut self, probe: &Finding, by_owner: bool, shown: Shown<'_>) {
        let found = &self.found;
        let control_of = |number: u32| found.get(number as usize).map(|finding| finding.control);
        let stands_for = |number: &u32| {
            found
                .get(*number as usize)
                .is_some_and(|finding| shown.corresponds(probe, finding, by_owner))
        };
        let Some(place) = self.left.iter().position(stands_for) else {
            return;
        };
        // The last finding of the control takes its place.
        let rest = self.left.get(place..).unwrap_or_default();
        let last = place
            + rest
                .iter()
                .take_while(|&&number| control_of(number) == Some(probe.control))
                .count()
                .saturating_sub(1);
        self.left.swap(place, last);
        self.left.remove(last);
    }

    /// The general path, value and container of the first remaining finding.
    pub(crate) fn first(&self, shown: Shown<'_>) -> Option<(String, NodeId)> {
        let finding = self.remaining().next()?;
        Some((self.resource_path(finding, shown), finding.value))
    }

    /// The path of a finding in the resource, with slashes.
    fn resource_path(&self, finding: &Finding, shown: Shown<'_>) -> String {
        let path = shown.path(finding);
        let (word, rest) = path.split_once('.').unwrap_or((&path, ""));
        let place = match word {
            "spec" => shown.place(self.places, 0),
            _ => shown.place(self.places, 1),
        };
        let rest = if finding.is(How::KEYED) {
            let key = shown.view.key_str(finding.value);
            format!("{}/{key}", shown.text(finding.path).replace('.', "/"))
                .split_once('/')
                .map_or_else(String::new, |(_, rest)| rest.to_owned())
        } else {
            rest.replace(['.', '['], "/").replace(']', "")
        };
        format!("/{}/{rest}/", place.replace('.', "/"))
    }

    /// The remaining findings as Kyverno prints them (docs/spec/pod-security.md §8).
    pub(crate) fn message(&self, shown: Shown<'_>, bytes: usize, out: &mut String) {
        let spec = shown.place(self.places, 0);
        let left: Vec<&Finding> = self.remaining().collect();
        for group in left.chunk_by(|a, b| a.control == b.control) {
            let Some(control) = group.first().map(|finding| finding.control) else {
                continue;
            };
            let reason = self.reason(control, shown);
            let _ = write!(out, "(Forbidden reason: {reason}, field error list: [");
            let listed = group.iter().filter(|finding| !finding.is(How::UNLISTED));
            for (index, finding) in listed.enumerate() {
                if out.len() > bytes {
                    return;
                }
                if index > 0 {
                    out.push_str(", ");
                }
                shown.push_path(finding, spec, out);
                shown.push_error(finding, out);
            }
            out.push_str("])");
        }
    }

    /// A control's reason, which may depend on how many different values are bad.
    /// Exclusions do not change it.
    fn reason<'t>(&self, control: ControlId, shown: Shown<'t>) -> &'t str {
        let Some(record) = shown.tables.controls.get(control.index()) else {
            return "";
        };
        let reasons = shown.tables.text(record.reasons);
        if reasons.is_empty() {
            return shown.tables.text(record.reason);
        }
        let own = |finding: &&Finding| finding.control == control;
        let keyed = |finding: &&Finding| finding.is(How::KEYED);
        let keys = self.found.iter().filter(own).filter(keyed).count();
        let mut values: Vec<&str> = self
            .found
            .iter()
            .filter(own)
            .filter(|finding| !finding.is(How::KEYED))
            .map(|finding| shown.view.str(finding.value))
            .collect();
        values.sort_unstable();
        values.dedup();
        match values.len() + keys {
            1 => shown.tables.text(record.reason),
            _ => reasons,
        }
    }

    /// The controls with remaining findings, in order.
    pub(crate) fn controls(&self) -> Vec<ControlId> {
        let mut controls: Vec<ControlId> =
            self.remaining().map(|finding| finding.control).collect();
        controls.dedup();
        controls
    }

    /// The names of the containers in a control's detail, including exempted ones, in the
    /// form in which Kyverno extracts them; `None` if it names none
    /// (docs/spec/pod-security.md §11).
    pub(crate) fn container_names(
        &self,
        control: ControlId,
        shown: Shown<'_>,
    ) -> Option<Vec<String>> {
        let record = shown.tables.controls.get(control.index())?;
        let own = |finding: &&Finding| finding.control == control;
        let owned = |finding: &&Finding| own(finding) && finding.is(How::OWNED);
        let first = self.found.iter().find(owned)?;
        if record.names_images == 0 {
            return None;
        }
        let named = self
            .found
            .iter()
            .filter(owned)
            .filter(|finding| finding.place() == first.place());
        let names: Vec<&str> = named.map(|finding| shown.name(finding.owner)).collect();
        let mut joined = names.join(",");
        let keyed = |finding: &&Finding| finding.is(How::KEYED);
        joined.push_str(match self.found.iter().filter(own).filter(keyed).count() {
            0 => "",
            1 => " and annotation",
            _ => " and annotations",
        });
        joined.retain(|c| c != '"' && c != ' ');
        Some(joined.split(',').map(str::to_owned).collect())
    }
}

fn control_is(finding: &Finding, name: table::Text, tables: &Tables<'_>) -> bool {
    tables
        .controls
        .get(finding.control.index())
        .is_some_and(|control| tables.text(control.name) == tables.text(name))
}

impl<'v> Shown<'v> {
    fn text(&self, text: TextId) -> &'v str {
        super::text_of(self.tables, text)
    }

    fn name(&self, container: NodeId) -> &'v str {
        self.view.str(self.view.get_text(container, b"name"))
    }

    /// The path of `spec` (0) or `metadata` (1) in the resource.
    fn place(&self, places: TextListId, number: usize) -> &'v str {
        self.tables.text_list(places.0).nth(number).unwrap_or("")
    }

    /// The path of a finding.
    fn path(&self, finding: &Finding) -> String {
        let mut parts = self.text(finding.path).split('*');
        let mut path = String::from(parts.next().unwrap_or(""));
        for (part, index) in parts.zip(finding.indices) {
            let _ = write!(path, "{index}{part}");
        }
        if finding.is(How::KEYED) {
            let _ = write!(path, "[{}]", self.view.key_str(finding.value));
        }
        path
    }

    /// The path as a message shows it: Kyverno replaces these words wherever they occur,
    /// `metadata` even for a Pod.
    fn push_path(&self, finding: &Finding, spec: &str, out: &mut String) {
        let start = out.len();
        out.push_str(&self.path(finding));
        let has_metadata = finding.is(How::KEYED);
        if spec != "spec" || has_metadata {
            let path = out.split_off(start).replace("spec", spec);
            out.push_str(&path.replace("metadata", "spec.template.metadata"));
        }
    }

    /// Whether an exclusion of a general path, with stars for all numbers, concerns the
    /// finding.
    fn is_about(&self, finding: &Finding, field: table::Text) -> bool {
        let field = self.tables.text(field);
        let general = self.text(finding.path);
        field.is_empty()
            || if finding.is(How::KEYED) {
                let key = without_numbers(self.view.key_str(finding.value));
                field == format!("{general}[{key}]")
            } else {
                field == general
            }
    }

    fn corresponds(&self, probe: &Finding, finding: &Finding, by_owner: bool) -> bool {
        let same_key = || {
            let key = |finding: &Finding| without_numbers(self.view.key_str(finding.value));
            !finding.is(How::KEYED) || key(probe) == key(finding)
        };
        probe.control == finding.control
            && self.text(probe.path) == self.text(finding.path)
            && same_key()
            && (!by_owner
                || !finding.is(How::OWNED)
                || self.name(probe.owner) == self.name(finding.owner))
    }

    /// Whether every bad value of a finding matches one of the wildcards; true for a
    /// finding without values.
    fn values_allow(&self, finding: &Finding, wildcards: u32) -> bool {
        if wildcards == NONE {
            return true;
        }
        let allowed = |value: &str| {
            self.tables
                .text_list(wildcards)
                .any(|pattern| wildcard::matches(pattern, value))
        };
        let value = finding.value;
        match self.view.kind(value) {
            _ if finding.is(How::REQUIRED) => true,
            None | Some(Kind::Null | Kind::Map) => true,
            Some(Kind::String) => {
                let text = self.view.str(value);
                text.is_empty() || allowed(text)
            }
            Some(Kind::List) => self
                .view
                .children(value)
                .all(|item| allowed(self.view.str(item))),
            Some(Kind::False | Kind::True | Kind::Int | Kind::Float) => {
                let mut text = String::new();
                self.push_value(value, &mut text);
                allowed(&text)
            }
        }
    }

    fn push_error(&self, finding: &Finding, out: &mut String) {
        if finding.is(How::REQUIRED) {
            out.push_str(": Required value");
            return;
        }
        let nothing = match self.view.kind(finding.value) {
            None | Some(Kind::Null | Kind::Map) => true,
            Some(Kind::String) => self.view.text(finding.value).is_empty(),
            Some(_) => false,
        };
        if nothing {
            out.push_str(": Forbidden");
            return;
        }
        out.push_str(" is forbidden, forbidden values found: ");
        self.push_value(finding.value, out);
    }

    /// A value as Go's `%+v` prints it; a list is a set of texts in byte order.
    fn push_value(&self, value: NodeId, out: &mut String) {
        let view = &self.view;
        let _ = match view.kind(value) {
            None | Some(Kind::Null | Kind::Map) => Ok(()),
            Some(Kind::False) => write!(out, "false"),
            Some(Kind::True) => write!(out, "true"),
            Some(Kind::Int) => write!(out, "{}", view.int(value).unwrap_or_default()),
            // Only integers get past the decoder.
            Some(Kind::Float) => write!(out, "{}", view.float(value).unwrap_or_default() as i64),
            Some(Kind::String) => write!(out, "{}", view.str(value)),
            Some(Kind::List) => {
                let mut texts: Vec<&str> =
                    view.children(value).map(|item| view.str(item)).collect();
                texts.sort_unstable();
                texts.dedup();
                write!(out, "[{}]", texts.join(" "))
            }
        };
    }
}

/// A text with a star for every run of digits.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_number = false;
    for c in text.chars() {
        match c {
            '0'..='9' if in_number => {}
            '0'..='9' => out.push('*'),
            c => out.push(c),
        }
        in_number = c.is_ascii_digit();
    }
    out
}
