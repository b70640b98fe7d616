//! What the rules for one kind can look at, found by following values through their code.
//!
//! Code goes in, a [`Projection`] leaves. A register holds the places of the object that
//! its value may come from. Operations that go one step down lead from place to
//! place; any other that is given a value may look at everything in it. Messages are
//! left out: they are made where a rule failed, and that may cost more.
//!
//! This need not be exact: an evaluation that looks at something else is done again with
//! the whole object (see [`crate::document::projection`]).

use std::collections::{BTreeMap, BTreeSet};

use kpvm_format::Tables;
use kpvm_format::cel::{Function as CelFunction, Root};
use kpvm_format::function::Function;
use kpvm_format::instruction::{Instruction, Op, OperandKind};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{NONE, Rule};

use crate::cel;
use super::places::{Place, Projection};
use crate::machine::MAX_NESTED_BLOCKS;
use super::{Plan, Spot};

/// Where more places than this meet in a register, they are read as a whole and no longer
/// followed: every way into a block's failures adds one, and a rule can have thousands.
const MOST_PLACES: usize = 32;

/// What the registers hold.
type Registers = Vec<Origin>;

/// A number of a set of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Unions that were asked for, as where ways meet the same are asked for again.
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

    fn len(&self, origin: Origin) -> usize {
        self.sets
            .get(origin.0 as usize)
            .map_or(0, std::collections::BTreeSet::len)
    }

    fn places(&self, origin: Origin) -> Vec<Place> {
        let places = self.sets.get(origin.0 as usize);
        places.into_iter().flatten().copied().collect()
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
        let both = self.places(left).into_iter().chain(self.places(right));
        let union = self.of(both.collect());
        self.unions.insert((left, right), union);
        union
    }
}

/// What rules are looked up by: a kind, and the resource that it goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Topic<'k> {
    pub(super) kind: &'k str,
    /// The symbols of the kind and of its resource, [`NONE`] for what no rule names.
    pub(super) symbols: [u32; 2],
}

impl<'k> Topic<'k> {
    /// The topic of a kind; `resource` is empty where no rule asks for resources.
    pub(super) fn new(tables: &Tables<'_>, kind: &'k str, resource: &str) -> Self {
        let symbol = |name: &str| {
            let symbol = tables.symbols.lookup(name.as_bytes());
            symbol.map_or(NONE, |symbol| symbol.0)
        };
        Self {
            kind,
            symbols: [symbol(kind), symbol(resource)],
        }
    }

    /// The rules that may match what it stands for.
    pub(super) fn rules(&self, tables: &Tables<'_>) -> Vec<u32> {
        let [kind, resource] = self.symbols;
        tables.rules_listed_under(&[kind, resource, NONE])
    }

    /// Those that are tried for whatever it stands for when it comes with an operation.
    pub(super) fn rules_of_every(&self, tables: &Tables<'_>, operation: &str) -> Vec<u32> {
        let [kind, resource] = self.symbols;
        tables.rules_of_every(&[kind, resource, NONE], operation)
    }
}

/// The projection for a kind: what its rules look at, and what every rule needs; of a
/// rule whose body is part of the plan nothing for the body. `None` where that is
/// everything, or where the host may be asked, which happens only once.
pub(super) fn derive(
    tables: &Tables<'_>,
    topic: Topic<'_>,
    plan: Option<&Plan>,
) -> Option<Projection> {
    let mut derivation = Derivation {
        tables,
        projection: Projection::new(),
        origins: Origins::new(),
        entries: BTreeMap::new(),
        depth: 0,
        whole: false,
    };
    derivation.read_metadata();
    for number in topic.rules(tables) {
        if let Some(rule) = tables.rules.get(number as usize) {
            derivation.follow_rule(rule, plan);
        }
        if derivation.whole || derivation.projection.is_whole() {
            return None;
        }
    }
    let mut projection = derivation.projection;
    if let Some(plan) = plan {
        number_spots(&mut projection, Place::ROOT, plan, Spot::ROOT);
    }
    Some(projection)
}

/// Gives what is not read the numbers of the plan's spots. Places nest as deep as plans
/// do, so this recurses.
fn number_spots(projection: &mut Projection, place: Place, plan: &Plan, spot: Spot) {
    for (key, below) in plan.below(spot) {
        let inside = match key {
            Some(key) => projection.under(place, key),
            None => projection.items(place),
        };
        if plan.tests_tags(below) {
            projection.read_whole(inside);
        } else if plan.needs_nodes(below) {
            projection.read_members(inside);
        }
        if projection.number(inside, below.0) {
            number_spots(projection, inside, plan, below);
        }
    }
}

struct Derivation<'t> {
    tables: &'t Tables<'t>,
    projection: Projection,
    origins: Origins,
    /// Context entries that were followed, with what their values are.
    entries: BTreeMap<u32, Origin>,
    /// How many loaders the one at hand is inside of.
    depth: usize,
    /// Something may look at anything.
    whole: bool,
}

impl Derivation<'_> {
    /// What every evaluation looks at: names, and that there are labels.
    fn read_metadata(&mut self) -> Option<Place> {
        let metadata = self.tables.symbols.lookup(b"metadata")?;
        let metadata = self.projection.under(Place::ROOT, metadata);
        self.projection.read_members(metadata);
        Some(metadata)
    }

    /// Labels or annotations of the object, which a rule matches.
    fn read_matched(&mut self, key: &[u8]) {
        if let Some(key) = self.tables.symbols.lookup(key)
            && let Some(metadata) = self.read_metadata()
        {
            let place = self.projection.under(metadata, key);
            self.projection.read_whole(place);
        }
    }

    fn follow_rule(&mut self, rule: &Rule, plan: Option<&Plan>) {
        let blocks = [
            rule.match_block,
            rule.precondition_block,
            rule.properties_block,
        ];
        let exceptions = Tables::range(self.tables.exceptions, rule.exceptions).iter();
        let conditions = exceptions.map(|exception| exception.block);
        let is_planned = plan.is_some_and(|plan| plan.find(rule.body_block.get()).is_some());
        let body = (!is_planned).then_some(rule.body_block);
        for block in blocks.into_iter().chain(body).chain(conditions) {
            let value = self.follow_block(block.get());
            self.read_whole(value);
        }
    }

    /// Goes through a block from its first to its last instruction; what its value is.
    fn follow_block(&mut self, block: u32) -> Origin {
        let mut returned = Origin::NOWHERE;
        let Some(block) = self.tables.blocks.get(block as usize) else {
            return returned;
        };
        let mut registers = vec![Origin::NOWHERE; usize::from(block.registers.get()).max(1)];
        registers[0] = self.root();
        let mut arriving: BTreeMap<u32, Registers> = BTreeMap::new();
        let mut goes_on = true;
        for (number, instruction) in (0..).zip(self.tables.block_code(block)) {
            if let Some(others) = arriving.remove(&number) {
                if goes_on {
                    self.meet(&mut registers, &others);
                } else {
                    registers = others;
                }
            }
            let Some(op) = Op::decode(instruction.op) else {
                return returned;
            };
            if op == Op::ReturnValue {
                let value = registers.get(usize::from(instruction.a)).copied();
                returned = self.union(returned, value.unwrap_or(Origin::NOWHERE));
            } else {
                self.follow(op, instruction, &mut registers);
            }
            goes_on = !op.ends_block();
            let jumps =
                |operand: &&kpvm_format::instruction::Operand| operand.kind == OperandKind::Forward;
            if let Some(target) = op.operands().iter().find(jumps) {
                let target = instruction.operand(target.field);
                match arriving.get_mut(&target) {
                    Some(others) => self.meet(others, &registers),
                    None => {
                        arriving.insert(target, registers.clone());
                    }
                }
            }
        }
        returned
    }

    fn meet(&mut self, registers: &mut Registers, others: &Registers) {
        for (register, other) in registers.iter_mut().zip(others) {
            *register = self.union(*register, *other);
        }
    }

    fn union(&mut self, left: Origin, right: Origin) -> Origin {
        let union = self.origins.union(left, right);
        if self.origins.len(union) <= MOST_PLACES {
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
        if self.depth > MAX_NESTED_BLOCKS {
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
            self.projection.read_members(place);
            place = self.projection.under(place, key);
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

    fn under(&mut self, origin: Origin, key: SymbolId) -> Origin {
        self.read_members(origin);
        let mut inside = BTreeSet::new();
        for place in self.origins.places(origin) {
            match self.tables.symbols.text(key) {
                "object" | "oldObject" if place == Place::REQUEST => inside.insert(Place::ROOT),
                _ if place == Place::REQUEST => false,
                _ => inside.insert(self.projection.under(place, key)),
            };
        }
        self.origins.of(inside)
    }

    fn items(&mut self, origin: Origin) -> Origin {
        self.read_members(origin);
        let places = self.origins.places(origin).into_iter();
        let inside = places.map(|place| self.projection.items(place));
        self.origins.of(inside.collect())
    }

    fn read_members(&mut self, origin: Origin) {
        for place in self.origins.places(origin) {
            self.projection.read_members(place);
        }
    }

    fn read_whole(&mut self, origin: Origin) {
        for place in self.origins.places(origin) {
            let is_request = place == Place::REQUEST;
            let place = if is_request { Place::ROOT } else { place };
            self.projection.read_whole(place);
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
    CelFunction::decode(function).is_some_and(cel::asks_host)
}
