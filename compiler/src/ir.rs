//! The intermediate representation: what front ends build, passes rewrite, and emission turns
//! into a bundle.
//!
//! A [`Module`] holds policies, rules, blocks, and the tables that these refer to by typed
//! numbers. A block is a list of instructions of the bundle's instruction set with any number
//! of registers (each written in one place) and jumps to labels. Control flow is structured by
//! construction: jumps go forward, loops are nested.

use kpvm_format::instruction::{
    self, FoldSlot, ListSlot, LoopSlot, Op, Representation, TextSlot, Translate,
};
pub use kpvm_format::table::SiteKind;

use crate::source::Location;

mod id;
mod intern;
mod module;
pub mod print;
mod record;
mod rule;

pub use self::id::*;
pub use self::module::*;
pub use self::record::*;
pub use self::rule::*;

/// A virtual register; 0 is the root of the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

impl Register {
    /// The subject itself.
    pub const SUBJECT: Register = Register(0);
}

/// A place in the code of a block to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// A piece of the path that an error shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Text.
    Text(String),
    /// The index of the item in the loop with this slot.
    LoopIndex(LoopSlot),
}

/// What an instruction tests or loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The instruction's purpose in the policy.
    pub kind: SiteKind,
    /// The place in the resource.
    pub path: Vec<Segment>,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    pub part: String,
    /// The text written there, see [`kpvm_format::table::Site::written`].
    pub written: String,
    /// The place of that text.
    pub location: Location,
}

impl Site {
    /// A site without a path or written text.
    pub fn new(kind: SiteKind, part: &str, location: Location) -> Self {
        Self {
            kind,
            path: Vec::new(),
            part: part.to_owned(),
            written: String::new(),
            location,
        }
    }

    /// Sets the place in the resource.
    #[must_use]
    pub fn path(mut self, path: Vec<Segment>) -> Self {
        self.path = path;
        self
    }

    /// Sets the written text, shortened if it is long.
    #[must_use]
    pub fn written(mut self, text: &str) -> Self {
        const CHARACTERS: usize = 200;
        self.written = text.chars().take(CHARACTERS).collect();
        if self.written.len() < text.len() {
            self.written.push('…');
        }
        self
    }
}

/// The representation of instructions in the IR: virtual registers and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Virtual;

impl Representation for Virtual {
    type Register = Register;
    type Target = Label;

    fn register_number(register: Register) -> u32 {
        register.0
    }

    fn target_number(label: Label) -> u32 {
        label.0
    }
}

/// An operation with its operands.
pub type Operation = instruction::Operation<Virtual>;

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub operation: Operation,
    /// Its site.
    pub site: Option<Site>,
}

impl From<Operation> for Instruction {
    fn from(operation: Operation) -> Self {
        Self {
            operation,
            site: None,
        }
    }
}

impl Instruction {
    /// Which operation it is.
    pub fn op(&self) -> Op {
        self.operation.op()
    }

    /// The label it may jump to.
    pub fn jump(&self) -> Option<Label> {
        self.operation.target()
    }

    /// The registers it reads.
    pub fn reads(&self) -> impl Iterator<Item = Register> + use<> {
        self.operation.sources()
    }

    /// The register it writes.
    pub fn writes(&self) -> Option<Register> {
        self.operation.destination()
    }
}

/// Adds a site to an operation.
pub trait AtSite {
    /// The instruction that looks at `site`.
    fn site(self, site: Site) -> Instruction;
}

impl AtSite for Operation {
    fn site(self, site: Site) -> Instruction {
        Instruction {
            operation: self,
            site: Some(site),
        }
    }
}

/// Renames the operands of an instruction.
pub struct Rename<S, D, T> {
    /// Of a register that is read.
    pub source: S,
    /// Of a register that is written.
    pub destination: D,
    /// Of a label.
    pub target: T,
}

impl<S, D, T> Translate<Virtual, Virtual> for Rename<S, D, T>
where
    S: FnMut(Register) -> Register,
    D: FnMut(Register) -> Register,
    T: FnMut(Label) -> Label,
{
    fn source(&mut self, register: Register) -> Register {
        (self.source)(register)
    }

    fn destination(&mut self, register: Register) -> Register {
        (self.destination)(register)
    }

    fn target(&mut self, target: Label) -> Label {
        (self.target)(target)
    }
}

/// An instruction, or a label before one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An instruction.
    Instruction(Instruction),
    /// A label.
    Label(Label),
}

/// A block under construction.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Instructions and labels in order.
    pub items: Vec<Item>,
    registers: u32,
    labels: u32,
    loops: Slots,
    folds: Slots,
    lists: Slots,
    accumulators: Slots,
}

/// Slots that are allocated and released like a stack.
#[derive(Debug, Clone, Default)]
struct Slots {
    used: u32,
    most: u32,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.used += 1;
        self.most = self.most.max(self.used);
        self.used - 1
    }
}

impl Block {
    /// A block without instructions.
    pub fn new() -> Self {
        Self {
            registers: 1,
            ..Self::default()
        }
    }

    /// A new register.
    pub fn register(&mut self) -> Register {
        self.registers += 1;
        Register(self.registers - 1)
    }

    /// A label that is not placed yet.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Allocates the next loop slot.
    pub fn enter_loop(&mut self) -> LoopSlot {
        LoopSlot(self.loops.take())
    }

    /// Releases the loop slot allocated last.
    pub fn leave_loop(&mut self) {
        self.loops.used -= 1;
    }

    /// Allocates the next fold slot.
    pub fn enter_fold(&mut self) -> FoldSlot {
        FoldSlot(self.folds.take())
    }

    /// Releases the fold slot allocated last.
    pub fn leave_fold(&mut self) {
        self.folds.used -= 1;
    }

    /// Allocates the next list accumulator.
    pub fn enter_list(&mut self) -> ListSlot {
        ListSlot(self.lists.take())
    }

    /// Releases the list accumulator allocated last.
    pub fn leave_list(&mut self) {
        self.lists.used -= 1;
    }

    /// Allocates the next text accumulator.
    pub fn enter_accumulator(&mut self) -> TextSlot {
        TextSlot(self.accumulators.take())
    }

    /// Releases the text accumulator allocated last.
    pub fn leave_accumulator(&mut self) {
        self.accumulators.used -= 1;
    }

    /// The largest number of list accumulators in use at a time.
    pub fn list_accumulators(&self) -> u32 {
        self.lists.most
    }

    /// The largest number of text accumulators in use at a time.
    pub fn text_accumulators(&self) -> u32 {
        self.accumulators.most
    }

    /// The largest number of loop slots in use at a time.
    pub fn loop_slots(&self) -> u32 {
        self.loops.most
    }

    /// The largest number of fold slots in use at a time.
    pub fn fold_slots(&self) -> u32 {
        self.folds.most
    }

    /// Appends an instruction.
    pub fn push(&mut self, instruction: impl Into<Instruction>) {
        self.items.push(Item::Instruction(instruction.into()));
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    /// Appends a jump.
    pub fn jump(&mut self, label: Label) {
        self.push(Operation::Jump { target: label });
    }
}
