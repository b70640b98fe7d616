//! Looking on while rules are evaluated.
//!
//! An observed evaluation runs the same code and comes to the same responses; what it
//! tells are [`Event`]s in the order of execution. It also runs the filters of rules that
//! the match index leaves out, so that every rule that does not apply says why. Events
//! borrow from the session: an observer keeps what it needs. Numbers (of rules, instructions, context entries) are
//! those of the bundle's tables.

use std::fmt;

use kpvm_format::Tables;
use kpvm_format::site::{InstructionId, Segment, Site, SitePathId};

use super::request::UserInfo;
use super::response::RuleResponse;
use crate::document::{Kind, NodeId, View};
use crate::machine::LoopState;
use crate::text;

/// Hears of everything that an evaluation does.
pub trait Observer {
    /// Something was done.
    fn observe(&mut self, event: &Event<'_>);
}

/// Something that an evaluation did. Every rule of the bundle gets either one
/// [`Event::NotTried`], or [`Event::Tried`], what was done for it, and
/// [`Event::Decided`].
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant)] // a borrowed view: short-lived and never stored
pub enum Event<'e> {
    /// A rule was passed over.
    NotTried {
        /// The rule.
        rule: u32,
        /// Why.
        reason: NotTried<'e>,
    },
    /// A rule's turn came.
    Tried {
        /// The rule.
        rule: u32,
        /// The kind of the request.
        kind: &'e str,
    },
    /// A part of the rule began to run.
    Stage(Stage),
    /// Something that the rule asks for was tested.
    Test(Test<'e>),
    /// A conditional or global anchor turned out not to apply: what it stands in is
    /// skipped, not failed.
    AnchorSkips {
        /// The instruction.
        instruction: InstructionId,
        /// The anchor.
        site: &'e Site,
        /// Where the anchored key is in the resource.
        path: Path<'e>,
    },
    /// An alternative of an `anyPattern` did not hold.
    AlternativeFailed {
        /// The instruction.
        instruction: InstructionId,
        /// The alternative.
        site: &'e Site,
        /// Its number.
        index: u32,
        /// Whether it does not apply rather than fail.
        skipped: bool,
    },
    /// A `foreach` came to an element; what follows is about it.
    Element {
        /// The instruction.
        instruction: InstructionId,
        /// The `foreach`.
        site: &'e Site,
        /// The element's number.
        index: u32,
        /// The element.
        value: SeenValue<'e>,
    },
    /// The element passed.
    ElementPassed,
    /// A `foreach` came to the end of its list.
    ElementsEnd {
        /// The `foreach`.
        site: &'e Site,
    },
    /// A control of a `podSecurity` rule is broken.
    Finding {
        /// The control, of the bundle's `controls`.
        control: u32,
        /// Where in the resource.
        path: &'e str,
        /// The value found there.
        value: SeenValue<'e>,
    },
    /// An exclusion of a `podSecurity` rule, or of an exception from it, was looked at.
    Excluded {
        /// The exclusion, of the bundle's `exclusions`.
        exclusion: u32,
        /// How many findings it took away.
        findings: u32,
    },
    /// A context entry began to load; entries that it needs load inside.
    EntryBegins {
        /// The entry.
        entry: u32,
    },
    /// A context entry was loaded.
    EntryEnds {
        /// The entry.
        entry: u32,
        /// What came of it.
        outcome: EntryOutcome<'e>,
    },
    /// An expression could not be evaluated. The text grows while it is passed on:
    /// of several such events in a row the last one says most.
    Failure(&'e str),
    /// The rule came to an end.
    Decided(Verdict<'e>),
}

/// Why a rule was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTried<'e> {
    /// A rule that autogen made takes its place for this kind.
    Generated,
    /// Its policy looks at its own namespace only.
    Namespace {
        /// The namespace of the policy.
        namespace: &'e str,
    },
    /// An earlier rule of its policy decided, and the policy applies one rule only.
    AppliedOne,
}

/// A part of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// `match` and `exclude`.
    Match,
    /// `preconditions`.
    Preconditions,
    /// The values of `reportProperties`.
    Properties,
    /// `match` and `conditions` of an exception, or what it exempts from.
    Exception {
        /// The exception, of the bundle's `exceptions`.
        exception: u32,
    },
    /// What is validated.
    Body,
    /// The message.
    Message,
    /// `match` and `exclude` once more, for the old object: violations that it has too
    /// are allowed.
    OldMatch,
    /// What is validated, for the old object.
    OldBody,
}

/// What became of a rule that was tried.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant)] // a borrowed view: short-lived and never stored
pub enum Verdict<'e> {
    /// Its filters do not select the resource: no response.
    NotMatched,
    /// It has a pattern, which says nothing about a deletion: no response.
    Deletion,
    /// A `foreach` of which no element counted: no response.
    NoElement,
    /// It has a response.
    Response(RuleResponse<'e>),
}

/// What came of a context entry.
#[derive(Debug, Clone, Copy)]
pub enum EntryOutcome<'e> {
    /// Its variable has a value.
    Loaded(SeenValue<'e>),
    /// Its variable stays missing: the host has no such data.
    Missing,
    /// It could not be loaded.
    Failed(&'e str),
}

/// Something that a rule asks for, tested.
#[derive(Debug, Clone, Copy)]
pub struct Test<'e> {
    /// The instruction.
    pub instruction: InstructionId,
    /// What the instruction looks at.
    pub site: &'e Site,
    /// Whether it is as the policy wants it.
    pub held: bool,
    /// What was looked at.
    pub subject: Tested<'e>,
    /// Where in the resource; empty where the test is about no single value.
    pub path: Path<'e>,
}

/// What a test looked at.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant)] // a borrowed view: short-lived and never stored
pub enum Tested<'e> {
    /// A filter: the request and its object.
    Request(Facts<'e>),
    /// A condition: both sides as evaluated.
    Condition {
        /// Its key.
        key: SeenValue<'e>,
        /// Its value.
        value: SeenValue<'e>,
    },
    /// A value of the resource.
    Value {
        /// What was found.
        found: SeenValue<'e>,
        /// The pattern, where variables make it.
        pattern: Option<SeenValue<'e>>,
    },
    /// A label or annotation.
    Tag {
        /// The entry of the bundle's `tag_entries`.
        entry: u32,
        /// The key that it stands for now.
        key: &'e str,
        /// What was found.
        found: SeenValue<'e>,
        /// The pattern, where variables make it.
        pattern: Option<SeenValue<'e>>,
    },
}

/// What filters look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'e> {
    /// API group of the request's kind.
    pub group: &'e str,
    /// API version.
    pub version: &'e str,
    /// Kind.
    pub kind: &'e str,
    /// Name of the kind's resource; empty where no rule asks for resources.
    pub resource: &'e str,
    /// Subresource, usually empty.
    pub subresource: &'e str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'e str,
    /// The object's name, or its `generateName` where it has none.
    pub name: &'e str,
    /// The object's namespace; the name of a Namespace.
    pub namespace: &'e str,
    /// The object's labels.
    pub labels: SeenValue<'e>,
    /// The object's annotations.
    pub annotations: SeenValue<'e>,
    /// Labels of the namespace.
    pub namespace_labels: &'e [(&'e str, &'e str)],
    /// The user, if anything is known of one.
    pub user: Option<UserInfo<'e>>,
}

/// A path in the resource, e.g. `/spec/containers/0/image/`, or through an assertion
/// tree, e.g. `object.spec.~.containers[0].image`.
#[derive(Clone, Copy)]
pub struct Path<'e> {
    pub(crate) tables: &'e Tables<'e>,
    pub(crate) view: View<'e>,
    pub(crate) path: SitePathId,
    /// The loops with the indices that they have now.
    pub(crate) loops: &'e [LoopState],
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        self.tables.path_segments(self.path, &mut |segment| {
            result = result.and_then(|()| match segment {
                Segment::Text(text) => f.write_str(text),
                Segment::Loop(slot) => match self.loops.get(slot as usize) {
                    None => f.write_str("0"),
                    Some(state) => match self.view.key_of(state.item()) {
                        Some(key) => f.write_str(key),
                        None => write!(f, "{}", state.index()),
                    },
                },
            });
        });
        result
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A value that an evaluation saw.
#[derive(Clone, Copy)]
pub struct SeenValue<'e> {
    pub(crate) view: View<'e>,
    pub(crate) node: NodeId,
    /// Whether it belongs to the data of a Secret.
    pub(crate) hidden: bool,
}

impl SeenValue<'_> {
    /// What it is; `None` when there is no value.
    pub fn kind(&self) -> Option<Kind> {
        self.view.kind(self.node)
    }

    /// The value as compact JSON, cut behind about `limit` bytes; `nothing` where
    /// there is none, `***` for the data of a Secret.
    pub fn show(&self, limit: usize) -> String {
        let mut shown = String::new();
        if self.kind().is_none() {
            shown.push_str("nothing");
        } else if self.hidden {
            shown.push_str("***");
        } else if !text::append_shown(&self.view, self.node, &mut shown, limit) {
            shown.push('…');
        }
        shown
    }
}

impl fmt::Debug for SeenValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show(256))
    }
}
