//! What the rules for a kind can read of an object.
//!
//! The state of the analysis is the set of places that each register's value can come from. An
//! instruction that goes one step down leads from place to place; any other that takes a value
//! may read everything in it. Messages are left out: they are made only where a rule failed, and
//! that may cost more.
//!
//! This need not be exact: an evaluation that looks at something else is repeated with the
//! whole object.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use kpvm_format::Tables;
use kpvm_format::cel::{Function as CelFunction, Root};
use kpvm_format::function::Function;
use kpvm_format::instruction::{Instruction, Op, OperandKind};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{NONE, Rule};

use super::flow::{Analysis, Lattice, Onward, Successors, forward};
use super::places::{Place, Places};

/// Most places that a register is followed with. Where more meet, all of them are read as a
/// whole: every jump to a failure adds one, and a rule can have thousands.
const MOST_PLACES: usize = 32;

/// Most context loaders that are followed inside one another, as many as the machine runs.
const MAX_NESTED_LOADERS: usize = 64;

/// Number of a set of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Origin(u32);

impl Origin {
    /// No place.
    const NOWHERE: Origin = Origin(0);
}

/// The sets of places, each once.
#[derive(Debug)]
struct Origins {
    sets: Vec<BTreeSet<Place>>,
    numbers: BTreeMap<BTreeSet<Place>, Origin>,
    /// Unions that were asked for: where ways meet, the same are asked for again.
    unions: BTreeMap<(Origin, Origin), Origin>,
}

impl Origins {
    fn new() -> Self {
        Self {
            sets: vec![BTreeSet::new()],
            numbers: BTreeMap::from([(BTreeSet::new(), Origin::NOWHERE)]),
            unions: BTreeMap::new(),
        }
    }

    fn of(&mut self, places: BTreeSet<Place>) -> Origin {
        if let Some(known) = self.numbers.get(&places) {
            return *known;
        }
        let number = Origin(self.sets.len() as u32);
        self.sets.push(places.clone());
        self.numbers.insert(places, number);
        number
    }

    fn places(&self, origin: Origin) -> impl Iterator<Item = Place> {
        let places = self.sets.get(origin.0 as usize);
        places.into_iter().flatten().copied()
    }

    fn union(&mut self, left: Origin, right: Origin) -> Origin {
        if left == right || right == Origin::NOWHERE {
            return left;
        }
        if left == Origin::NOWHERE {
            return right;
        }
        if let Some(known) = self.unions.get(&(left, right)) {
            return *known;
        }
        let both = self.places(left).chain(self.places(right)).collect();
        let union = self.of(both);
        self.unions.insert((left, right), union);
        union
    }
}

/// What the registers hold.
type Registers = Vec<Origin>;

/// What the rules listed under some kinds can read; of a rule whose body `is_planned` nothing
/// for the body. `None` where that is everything, or where the host can be asked, which must
/// happen only once.
pub(super) fn of_rules(
    tables: &Tables<'_>,
    rules: &[u32],
    is_planned: &dyn Fn(u32) -> bool,
) -> Option<Places> {
    let mut reading = ReadingRules {
        tables,
        places: Places::new(),
        origins: Origins::new(),
        entries: BTreeMap::new(),
        depth: 0,
        whole: false,
    };
    reading.read_metadata();
    for &number in rules {
        if let Some(rule) = tables.rules.get(number as usize) {
            reading.follow_rule(rule, is_planned);
        }
        if reading.whole || reading.places.is_whole() {
            return None;
        }
    }
    Some(reading.places)
}

/// What has been found out about some rules.
struct ReadingRules<'t> {
    tables: &'t Tables<'t>,
    places: Places,
    origins: Origins,
    /// Context entries that were followed, with what their values are.
    entries: BTreeMap<u32, Origin>,
    /// How many loaders the one at hand is inside of.
    depth: usize,
    /// Something may look at anything.
    whole: bool,
}

/// The pass over one block.
struct ReadingBlock<'r, 't> {
    rules: &'r mut ReadingRules<'t>,
    code: &'t [Instruction],
    returned: Origin,
}

impl Lattice for ReadingBlock<'_, '_> {
    type Fact = Registers;

    fn join(&mut self, registers: &mut Registers, others: &Registers) -> bool {
        let mut changed = false;
        for (register, other) in registers.iter_mut().zip(others) {
            let union = self.rules.union(*register, *other);
            changed |= *register != union;
            *register = union;
        }
        changed
    }
}

impl Analysis for ReadingBlock<'_, '_> {
    type Stop = Infallible;

    fn visit(
        &mut self,
        position: usize,
        mut registers: Registers,
        onward: &mut Onward<Registers>,
    ) -> Result<(), Infallible> {
        let Some(instruction) = self.code.get(position) else {
            return Ok(());
        };
        let Some(op) = Op::decode(instruction.op) else {
            return Ok(());
        };
        if op == Op::ReturnValue {
            let value = registers.get(usize::from(instruction.a)).copied();
            let value = value.unwrap_or(Origin::NOWHERE);
            self.returned = self.rules.union(self.returned, value);
        } else {
            self.rules.follow(op, instruction, &mut registers);
        }
        // A round of a loop begins with what the loop began with: what a round leaves in
        // registers for the next need not be known.
        let successors = Successors::of(instruction, position);
        if let Some(target) = successors.jump {
            onward.send(target, registers.clone());
        }
        if let Some(next) = successors.next {
            onward.send(next, registers);
        }
        Ok(())
    }
}

impl ReadingRules<'_> {
    /// What every evaluation looks at: names, and that there are labels.
    fn read_metadata(&mut self) -> Option<Place> {
        let metadata = self.tables.symbols.lookup(b"metadata")?;
        let metadata = self.places.under(Place::ROOT, metadata);
        self.places.read_members(metadata);
        Some(metadata)
    }

    /// Labels or annotations of the object, which a rule matches.
    fn read_matched(&mut self, key: &[u8]) {
        if let Some(key) = self.tables.symbols.lookup(key)
            && let Some(metadata) = self.read_metadata()
        {
            let place = self.places.under(metadata, key);
            self.places.read_whole(place);
        }
    }

    fn follow_rule(&mut self, rule: &Rule, is_planned: &dyn Fn(u32) -> bool) {
        let blocks = [
            rule.match_block,
            rule.precondition_block,
            rule.properties_block,
        ];
        let exceptions = Tables::range(self.tables.exceptions, rule.exceptions).iter();
        let conditions = exceptions.map(|exception| exception.block);
        let body = (!is_planned(rule.body_block.get())).then_some(rule.body_block);
        for block in blocks.into_iter().chain(body).chain(conditions) {
            let value = self.follow_block(block.get());
            self.read_whole(value);
        }
    }

    /// Follows a block; what its value is.
    fn follow_block(&mut self, block: u32) -> Origin {
        let tables = self.tables;
        let Some(block) = tables.blocks.get(block as usize) else {
            return Origin::NOWHERE;
        };
        let mut registers = vec![Origin::NOWHERE; usize::from(block.registers.get()).max(1)];
        registers[0] = self.root();
        let mut pass = ReadingBlock {
            rules: self,
            code: tables.block_code(block),
            returned: Origin::NOWHERE,
        };
        let Ok(()) = forward(&mut pass, &[], 0, registers);
        pass.returned
    }

    fn union(&mut self, left: Origin, right: Origin) -> Origin {
        let union = self.origins.union(left, right);
        if self.origins.places(union).count() <= MOST_PLACES {
            return union;
        }
        self.read_whole(union);
        Origin::NOWHERE
    }

    /// The object itself.
    fn root(&mut self) -> Origin {
        self.origins.of(BTreeSet::from([Place::ROOT]))
    }

    fn follow(&mut self, op: Op, instruction: &Instruction, registers: &mut Registers) {
        let get = |register: u8| {
            let origin = registers.get(usize::from(register));
            origin.copied().unwrap_or(Origin::NOWHERE)
        };
        let (a, b, e) = (instruction.a, instruction.b, instruction.e);
        let c = instruction.c.get();
        let (value, source) = (get(a), get(b));
        let (register, origin) = match op {
            Op::LoadPath | Op::CelPath => (a, self.path(c)),
            Op::LoadField
            | Op::GetKey
            | Op::CelSelect
            | Op::CelFind
            | Op::CelIfHas
            | Op::CelIfFind => (a, self.under(source, SymbolId(c))),
            Op::LoadIndex | Op::GetItem => (a, self.items(source)),
            Op::LoopBegin => (e, self.items(source)),
            Op::Move | Op::CelUnwrap | Op::CelWrap => (a, source),
            // A list itself; that of a map's keys comes from nowhere.
            Op::CelRange => {
                self.read_members(source);
                (a, source)
            }
            Op::CelUnary if is_cel(c, CelFunction::Size) => {
                self.read_members(source);
                (a, Origin::NOWHERE)
            }
            // The items of two lists.
            Op::CelBinary if is_cel(c, CelFunction::Add) => {
                self.read_members(source);
                self.read_members(get(e));
                (a, self.union(source, get(e)))
            }
            Op::CelUnary | Op::CelBinary | Op::CelCall if asks_host(c) => return self.whole = true,
            Op::CelHas => {
                self.read_members(source);
                (a, Origin::NOWHERE)
            }
            Op::LoadRequestObject => (a, self.root()),
            Op::CelRoot => match Root::ALL.get(c as usize) {
                Some(
                    Root::Object | Root::OldObject | Root::ObjectOrEmpty | Root::OldObjectOrEmpty,
                ) => (a, self.root()),
                Some(Root::FullRequest) => (a, self.origins.of(BTreeSet::from([Place::REQUEST]))),
                Some(
                    Root::Namespace
                    | Root::GivenNamespace
                    | Root::LabelledNamespace
                    | Root::Params
                    | Root::Request
                    | Root::ResourceRequest
                    | Root::Exceptions,
                ) => (a, Origin::NOWHERE),
                _ => return self.whole = true,
            },
            Op::LoadPayload if matches!(b, 1 | 2) => (a, self.root()),
            // The request with its objects, or values of which nothing is known.
            Op::LoadPayload if b == 0 => return self.whole = true,
            Op::LoadBase if self.is_of_objects(c) => return self.whole = true,
            Op::LoadVariable if self.slot_is_of_objects(c) => return self.whole = true,
            Op::LoadImages
            | Op::LoadContext
            | Op::EvaluateText
            | Op::EvaluateQuery
            | Op::EvaluateOver
            | Op::CelParams
            | Op::Fetch => return self.whole = true,
            Op::Call if is_random(c) => return self.whole = true,
            Op::MatchSelector | Op::MatchObjectLabels | Op::MatchNamespaceLabels => {
                return self.read_matched(b"labels");
            }
            Op::MatchAnnotations => return self.read_matched(b"annotations"),
            Op::CelVariable => (a, self.follow_entry(c)),
            Op::EnsureEntry | Op::RefreshEntry => {
                let value = self.follow_entry(c);
                return self.read_whole(value);
            }
            // That the value is there, and what it is, its place says.
            Op::RequireMap
            | Op::RequireList
            | Op::RequireExistenceList
            | Op::RequirePresent
            | Op::RequireScope
            | Op::JumpIfMissing
            | Op::JumpIfNull
            | Op::JumpIfNotList
            | Op::JumpIfNotMap
            | Op::JumpIfNoSubject
            | Op::JumpUnlessSet
            | Op::LoopNext
            | Op::CatchMissing
            | Op::CelRequireFields
            | Op::CelRequireBool
            | Op::CelTest
            | Op::CelIf
            | Op::CelOnError
            | Op::CelCatch
            | Op::CelRaise => return,
            Op::RequireLength
            | Op::RecordAnchor
            | Op::JumpIfTrue
            | Op::JumpIfFalse
            | Op::JumpIfShorter => {
                return self.read_members(value);
            }
            Op::Not => {
                self.read_members(source);
                (a, Origin::NOWHERE)
            }
            Op::ExpandTags => return self.read_tags(value, c),
            // The element, or what the subject was.
            Op::SelectSubject => {
                self.read_members(source);
                (a, self.union(source, get(e)))
            }
            _ => {
                for operand in op.operands() {
                    if operand.kind == OperandKind::Source {
                        self.read_whole(get(instruction.operand(operand.field) as u8));
                    }
                }
                return self.forget(op, instruction, registers);
            }
        };
        if let Some(register) = registers.get_mut(usize::from(register)) {
            *register = origin;
        }
    }

    /// What an operation writes comes from nowhere that is not read.
    fn forget(&self, op: Op, instruction: &Instruction, registers: &mut Registers) {
        for operand in op.operands() {
            if operand.kind == OperandKind::Destination {
                let register = instruction.operand(operand.field) as usize;
                if let Some(register) = registers.get_mut(register) {
                    *register = Origin::NOWHERE;
                }
            }
        }
    }

    /// A context entry's loader, once; what its value is. Of more loaders inside one another
    /// than may run, nothing is known.
    fn follow_entry(&mut self, entry: u32) -> Origin {
        if let Some(&known) = self.entries.get(&entry) {
            return known;
        }
        self.entries.insert(entry, Origin::NOWHERE);
        let Some(record) = self.tables.entries.get(entry as usize) else {
            return Origin::NOWHERE;
        };
        if self.depth > MAX_NESTED_LOADERS {
            self.whole = true;
            return Origin::NOWHERE;
        }
        self.depth += 1;
        let value = self.follow_block(record.block.get());
        self.depth -= 1;
        self.entries.insert(entry, value);
        value
    }

    /// The place of a static path; parents have smaller numbers.
    fn path(&mut self, path: u32) -> Origin {
        let mut keys = Vec::new();
        let mut next = path;
        while let Some(step) = self.tables.paths.get(next as usize)
            && keys.len() < self.tables.paths.len()
        {
            keys.push(SymbolId(step.symbol.get()));
            next = step.parent.get();
        }
        let mut place = Place::ROOT;
        for key in keys.into_iter().rev() {
            self.places.read_members(place);
            place = self.places.under(place, key);
        }
        self.origins.of(BTreeSet::from([place]))
    }

    /// The labels or annotations that keys with wildcards are looked for in.
    fn read_tags(&mut self, map: Origin, pattern: u32) {
        if let Some(pattern) = self.tables.tag_patterns.get(pattern as usize) {
            let metadata = self.under(map, SymbolId(pattern.metadata.get()));
            let tags = self.under(metadata, SymbolId(pattern.tag.get()));
            self.read_members(tags);
        }
    }

    fn places_of(&self, origin: Origin) -> Vec<Place> {
        self.origins.places(origin).collect()
    }

    fn under(&mut self, origin: Origin, key: SymbolId) -> Origin {
        self.read_members(origin);
        let mut inside = BTreeSet::new();
        for place in self.places_of(origin) {
            match self.tables.symbols.text(key) {
                "object" | "oldObject" if place == Place::REQUEST => inside.insert(Place::ROOT),
                _ if place == Place::REQUEST => false,
                _ => inside.insert(self.places.under(place, key)),
            };
        }
        self.origins.of(inside)
    }

    fn items(&mut self, origin: Origin) -> Origin {
        self.read_members(origin);
        let places = self.places_of(origin).into_iter();
        let inside = places.map(|place| self.places.items(place)).collect();
        self.origins.of(inside)
    }

    fn read_members(&mut self, origin: Origin) {
        for place in self.places_of(origin) {
            self.places.read_members(place);
        }
    }

    fn read_whole(&mut self, origin: Origin) {
        for place in self.places_of(origin) {
            let is_request = place == Place::REQUEST;
            let place = if is_request { Place::ROOT } else { place };
            self.places.read_whole(place);
        }
    }

    /// Whether a value of the context holds the request's objects.
    fn is_of_objects(&self, name: u32) -> bool {
        matches!(
            self.tables.symbols.text(SymbolId(name)),
            "request" | "images"
        )
    }

    fn slot_is_of_objects(&self, slot: u32) -> bool {
        let name = self.tables.slots.get(slot as usize);
        self.is_of_objects(name.map_or(NONE, |slot| slot.name.get()))
    }
}

fn is_random(function: u32) -> bool {
    Function::ALL.get(function as usize) == Some(&Function::Random)
}

fn is_cel(function: u32, wanted: CelFunction) -> bool {
    CelFunction::decode(function) == Some(wanted)
}

fn asks_host(function: u32) -> bool {
    CelFunction::decode(function).is_some_and(CelFunction::asks_host)
}
