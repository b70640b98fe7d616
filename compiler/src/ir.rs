//! The intermediate representation: what front ends build, passes rewrite, and emission turns
//! into a bundle.
//!
//! A [`Module`] holds policies, rules, blocks, and the tables that these refer to by typed
//! numbers. A block is a list of instructions of the bundle's instruction set with any number
//! of registers (each written in one place) and jumps to labels. Control flow is structured by
//! construction: jumps go forward, loops are nested.

use kpvm_format::instruction::{Field, Op, OperandKind};
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
    LoopIndex(u32),
}

/// What an instruction looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What the instruction does for the policy.
    pub kind: SiteKind,
    /// The place in the resource.
    pub path: Vec<Segment>,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    pub part: String,
    /// What is written there, see [`kpvm_format::table::SiteLabel::written`].
    pub written: String,
    /// Where that is.
    pub location: Location,
}

impl Site {
    /// A site at no path, where nothing needs to be said of what is written.
    pub fn new(kind: SiteKind, part: &str, location: Location) -> Self {
        Self {
            kind,
            path: Vec::new(),
            part: part.to_owned(),
            written: String::new(),
            location,
        }
    }

    /// With the place in the resource.
    #[must_use]
    pub fn path(mut self, path: Vec<Segment>) -> Self {
        self.path = path;
        self
    }

    /// With what is written, cut where it is long.
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

/// One instruction; operands as in the instruction set, `d` a label for jumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// Operand `a`.
    pub a: u32,
    /// Operand `b`.
    pub b: u32,
    /// Operand `e`.
    pub e: u32,
    /// Operand `c`.
    pub c: u32,
    /// Operand `d`; the number of a label where the operation jumps.
    pub d: u32,
    /// What it looks at.
    pub site: Option<Site>,
}

impl Instruction {
    /// An instruction with all operands zero.
    pub fn new(op: Op) -> Self {
        Self {
            op,
            a: 0,
            b: 0,
            e: 0,
            c: 0,
            d: 0,
            site: None,
        }
    }

    /// With operand `a`.
    #[must_use]
    pub fn a(mut self, a: impl Operand) -> Self {
        self.a = a.number();
        self
    }

    /// With operand `b`.
    #[must_use]
    pub fn b(mut self, b: impl Operand) -> Self {
        self.b = b.number();
        self
    }

    /// With operand `e`.
    #[must_use]
    pub fn e(mut self, e: impl Operand) -> Self {
        self.e = e.number();
        self
    }

    /// With operand `c`.
    #[must_use]
    pub fn c(mut self, c: impl Operand) -> Self {
        self.c = c.number();
        self
    }

    /// With operand `d`.
    #[must_use]
    pub fn d(mut self, d: impl Operand) -> Self {
        self.d = d.number();
        self
    }

    /// With a jump target.
    #[must_use]
    pub fn target(self, label: Label) -> Self {
        self.d(label.0)
    }

    /// With what it looks at.
    #[must_use]
    pub fn site(mut self, site: Site) -> Self {
        self.site = Some(site);
        self
    }

    /// The operand in `field`.
    pub fn field(&self, field: Field) -> u32 {
        match field {
            Field::A => self.a,
            Field::B => self.b,
            Field::E => self.e,
            Field::C => self.c,
            Field::D => self.d,
        }
    }

    /// The operand in `field`, to change it.
    pub fn field_mut(&mut self, field: Field) -> &mut u32 {
        match field {
            Field::A => &mut self.a,
            Field::B => &mut self.b,
            Field::E => &mut self.e,
            Field::C => &mut self.c,
            Field::D => &mut self.d,
        }
    }

    /// The label it may jump to.
    pub fn jump(&self) -> Option<Label> {
        self.op
            .operands()
            .iter()
            .find(|operand| matches!(operand.kind, OperandKind::Forward | OperandKind::Backward))
            .map(|operand| Label(self.field(operand.field)))
    }

    /// The registers it reads.
    pub fn reads(&self) -> impl Iterator<Item = Register> + '_ {
        self.registers(OperandKind::Source)
    }

    /// The registers it writes.
    pub fn writes(&self) -> impl Iterator<Item = Register> + '_ {
        self.registers(OperandKind::Destination)
    }

    fn registers(&self, kind: OperandKind) -> impl Iterator<Item = Register> + '_ {
        self.op
            .operands()
            .iter()
            .filter(move |operand| operand.kind == kind)
            .map(|operand| Register(self.field(operand.field)))
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

/// Slots that are given out and taken back like a stack.
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

    /// A register of its own.
    pub fn register(&mut self) -> Register {
        self.registers += 1;
        Register(self.registers - 1)
    }

    /// A label that is not placed yet.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Takes the next free loop slot.
    pub fn enter_loop(&mut self) -> u32 {
        self.loops.take()
    }

    /// Gives back the loop slot taken last.
    pub fn leave_loop(&mut self) {
        self.loops.used -= 1;
    }

    /// Takes the next free fold slot.
    pub fn enter_fold(&mut self) -> u32 {
        self.folds.take()
    }

    /// Gives back the fold slot taken last.
    pub fn leave_fold(&mut self) {
        self.folds.used -= 1;
    }

    /// Takes the next free list accumulator.
    pub fn enter_list(&mut self) -> u32 {
        self.lists.take()
    }

    /// Gives back the list accumulator taken last.
    pub fn leave_list(&mut self) {
        self.lists.used -= 1;
    }

    /// Takes the next free text accumulator.
    pub fn enter_accumulator(&mut self) -> u32 {
        self.accumulators.take()
    }

    /// Gives back the text accumulator taken last.
    pub fn leave_accumulator(&mut self) {
        self.accumulators.used -= 1;
    }

    /// Most list accumulators in use at a time.
    pub fn list_accumulators(&self) -> u32 {
        self.lists.most
    }

    /// Most text accumulators in use at a time.
    pub fn text_accumulators(&self) -> u32 {
        self.accumulators.most
    }

    /// Most loop slots in use at a time.
    pub fn loop_slots(&self) -> u32 {
        self.loops.most
    }

    /// Most fold slots in use at a time.
    pub fn fold_slots(&self) -> u32 {
        self.folds.most
    }

    /// Appends an instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.items.push(Item::Instruction(instruction));
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        self.items.push(Item::Label(label));
    }

    /// Appends a jump.
    pub fn jump(&mut self, label: Label) {
        self.push(Instruction::new(Op::Jump).target(label));
    }
}
