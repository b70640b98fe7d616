//! Plans and projections as records of the bundle. Everything that is equal is stored once.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use kpvm_format::BundleBuilder;
use kpvm_format::outside::{OutsideDemand, OutsideField};
use kpvm_format::plan::{
    self, END, KindPlan, MAX_PLACES, Plan, PlanBody, PlanSpot, PlanTest, ProjectionPlace, Reading,
    Topic, slot_of,
};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{NONE, Range, Text};
use zerocopy::little_endian::{U16, U32};

use super::demands::{Demand, DemandField};
use super::places::{Place, PlaceNode, Places};
use super::spots::{Spot, SpotNode, Spots};

/// What is known of a kind under the name of a resource: the number of what is known for each
/// operation.
#[derive(Debug)]
pub(super) struct TopicFacts {
    pub(super) kind: u32,
    pub(super) resource: u32,
    pub(super) operations: [u32; 4],
}

/// What is known of a kind under an operation.
#[derive(Debug)]
pub(super) struct KindFacts {
    pub(super) plan: Option<Spots>,
    /// Ascending by rule.
    pub(super) plain: Vec<PlainRule>,
    pub(super) slim: Option<Places>,
    pub(super) full: Option<Places>,
}

/// A rule whose outcome for a passing object depends only on its kinds and its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainRule {
    pub(super) rule: u32,
    /// The list of kind selectors, the first of equal ones.
    pub(super) kinds: u32,
    /// Block of the body.
    pub(super) block: u32,
}

/// Parts of a table, each once.
#[derive(Debug)]
struct Shared<T> {
    table: Vec<T>,
    starts: HashMap<Vec<T>, usize>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            starts: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Shared<T> {
    /// Where a part begins.
    fn start(&mut self, part: Vec<T>) -> usize {
        if let Some(&known) = self.starts.get(&part) {
            return known;
        }
        let start = self.table.len();
        self.table.extend_from_slice(&part);
        self.starts.insert(part, start);
        start
    }

    fn range(&mut self, part: Vec<T>) -> Range {
        let length = part.len();
        Range::new(self.start(part), length)
    }
}

/// The sections while they are made.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) topics: Vec<TopicFacts>,
    kind_plans: Vec<KindPlan>,
    plain_rules: Shared<plan::PlainRule>,
    plans: Vec<PlanImage>,
    plan_numbers: HashMap<PlanImage, u32>,
    plan_tests: Shared<PlanTest>,
    plan_breaks: Shared<U16>,
    /// What each rule asks for, by rule.
    pub(super) demands: Vec<(u32, Demand)>,
    projections: Vec<Vec<ProjectionPlace>>,
    projection_numbers: HashMap<Vec<ProjectionPlace>, u32>,
}

/// A plan with its parts, but for tests, which refer to shared lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PlanImage {
    spots: Vec<PlanSpot>,
    slots: Vec<U16>,
    bodies: Vec<PlanBody>,
    alternatives: usize,
    longest: usize,
    total: usize,
}

impl Sections {
    /// Adds what is known of a kind under an operation; its number.
    pub(super) fn add(&mut self, facts: KindFacts) -> u32 {
        let mut numbers = HashMap::new();
        let (mut number, mut plain) = (NONE, Range::EMPTY);
        if let Some(spots) = &facts.plan {
            let image = self.plan_image(spots, &mut numbers);
            let rules = facts.plain.iter().filter_map(|plain| {
                let bodies = &image.bodies;
                let body = bodies.binary_search_by_key(&plain.block, |body| body.block.get());
                Some(plan::PlainRule {
                    rule: U32::new(plain.rule),
                    kinds: U32::new(plain.kinds),
                    body: U16::new(u16::try_from(body.ok()?).ok()?),
                })
            });
            plain = self.plain_rules.range(rules.collect());
            number = number_of(&mut self.plans, &mut self.plan_numbers, image);
        }
        let mut projection = |places: Option<&Places>| {
            let image = places.and_then(|places| projection_image(places, &numbers));
            image.map_or(NONE, |image| {
                number_of(&mut self.projections, &mut self.projection_numbers, image)
            })
        };
        let kind_plan = KindPlan {
            plan: U32::new(number),
            plain,
            slim: U32::new(projection(facts.slim.as_ref())),
            full: U32::new(projection(facts.full.as_ref())),
        };
        let known = self.kind_plans.iter().position(|known| *known == kind_plan);
        known.unwrap_or_else(|| {
            self.kind_plans.push(kind_plan);
            self.kind_plans.len() - 1
        }) as u32
    }

    /// The records of a plan, spots in breadth-first order; `numbers` gets the new number of
    /// every spot that something is demanded at or below.
    fn plan_image(&mut self, spots: &Spots, numbers: &mut HashMap<Spot, u16>) -> PlanImage {
        let mut order = vec![(Spot::ROOT, 0, 0)];
        let mut records = Vec::new();
        let mut next = 0;
        while let Some(&(spot, parent, bit)) = order.get(next) {
            let own = next as u16;
            next += 1;
            numbers.insert(spot, own);
            let Some(node) = spots.node(spot) else {
                continue;
            };
            let (keys, items, required) = children(spots, node);
            let children = order.len() as u16;
            for (bit, &key) in keys.iter().enumerate() {
                order.push((key, own, bit as u8));
            }
            let items = items.map_or(0, |items| {
                order.push((items, own, 0));
                order.len() as u16 - 1
            });
            let tests: Vec<PlanTest> = node
                .tests
                .iter()
                .map(|(&(kind, operand), breaks)| PlanTest {
                    demand: kind as u8,
                    operand: U32::new(operand),
                    breaks: self.breaks(breaks),
                })
                .collect();
            let missing = match node.required_by.as_slice() {
                [] => U32::new(NONE),
                breaks => self.breaks(breaks),
            };
            records.push(PlanSpot {
                key: U32::new(node.key.map_or(NONE, |key| key.0)),
                parent: U16::new(parent),
                children: U16::new(if keys.is_empty() { 0 } else { children }),
                items: U16::new(items),
                keys: keys.len() as u8,
                required,
                bit,
                test_count: U16::new(tests.len() as u16),
                tests: U32::new(match tests.is_empty() {
                    true => 0,
                    false => self.plan_tests.start(tests) as u32,
                }),
                missing,
            });
        }
        let mut bodies: Vec<PlanBody> = spots
            .bodies
            .iter()
            .map(|body| PlanBody {
                block: U32::new(body.block),
                first: U16::new(body.first),
                alternatives: U16::new(body.alternatives),
            })
            .collect();
        bodies.sort_by_key(|body| body.block.get());
        PlanImage {
            slots: slots(&records),
            spots: records,
            bodies,
            alternatives: spots.alternatives,
            longest: spots.longest,
            total: spots.total,
        }
    }

    fn breaks(&mut self, alternatives: &[u16]) -> U32 {
        let list = alternatives.iter().copied().chain([END]);
        U32::new(self.plan_breaks.start(list.map(U16::new).collect()) as u32)
    }

    /// Puts the sections into a bundle.
    pub(super) fn write(self, bundle: &mut BundleBuilder) {
        bundle.topics = self.topics.iter().map(topic).collect();
        bundle.kind_plans = self.kind_plans;
        bundle.plain_rules = self.plain_rules.table;
        bundle.plan_tests = self.plan_tests.table;
        bundle.plan_breaks = self.plan_breaks.table;
        write_demands(&self.demands, bundle);
        bundle.plans.clear();
        bundle.plan_spots.clear();
        bundle.plan_slots.clear();
        bundle.plan_bodies.clear();
        for image in self.plans {
            bundle.plans.push(Plan {
                spots: append(&mut bundle.plan_spots, &image.spots),
                slots: append(&mut bundle.plan_slots, &image.slots),
                bodies: append(&mut bundle.plan_bodies, &image.bodies),
                alternatives: U32::new(image.alternatives as u32),
                longest: U32::new(image.longest as u32),
                total: U32::new(image.total as u32),
            });
        }
        bundle.projections.clear();
        bundle.projection_places.clear();
        for places in self.projections {
            let range = append(&mut bundle.projection_places, &places);
            bundle.projections.push(range);
        }
    }
}

fn write_demands(demands: &[(u32, Demand)], bundle: &mut BundleBuilder) {
    let mut text: Shared<u8> = Shared::default();
    let mut fields = Shared::default();
    let mut text_of = |part: &str| {
        let range = text.range(part.as_bytes().to_vec());
        Text {
            offset: range.start,
            length: range.length,
        }
    };
    let mut record = |field: &DemandField| OutsideField {
        name: text_of(&field.name),
        value: text_of(&field.value.to_string()),
        computed: u8::from(field.computed),
    };
    bundle.outside_demands = demands
        .iter()
        .map(|(rule, (kind, known))| OutsideDemand {
            rule: U32::new(*rule),
            kind: *kind as u8,
            fields: fields.range(known.iter().map(&mut record).collect()),
        })
        .collect();
    bundle.outside_fields = fields.table;
    bundle.outside_text = text.table;
}

fn append<T: Clone>(table: &mut Vec<T>, part: &[T]) -> Range {
    let start = table.len();
    table.extend_from_slice(part);
    Range::new(start, part.len())
}

fn topic(facts: &TopicFacts) -> Topic {
    Topic {
        kind: U32::new(facts.kind),
        resource: U32::new(facts.resource),
        operations: facts.operations.map(U32::new),
    }
}

fn number_of<T: Clone + Eq + Hash>(
    all: &mut Vec<T>,
    numbers: &mut HashMap<T, u32>,
    image: T,
) -> u32 {
    *numbers.entry(image).or_insert_with_key(|image| {
        all.push(image.clone());
        all.len() as u32 - 1
    })
}

/// The spots below one at which anything is demanded: those under keys, required ones first,
/// and that of items; and how many are required.
fn children(spots: &Spots, node: &SpotNode) -> (Vec<Spot>, Option<Spot>, u8) {
    let is_required = |spot: &Spot| {
        spots
            .node(*spot)
            .is_some_and(|node| !node.required_by.is_empty())
    };
    let keys = node.keys.iter().copied();
    let mut keys: Vec<Spot> = keys.filter(|&key| demands_anything(spots, key)).collect();
    let symbol = |spot: &Spot| spots.node(*spot).and_then(|node| node.key);
    keys.sort_by_key(|spot| (!is_required(spot), symbol(spot)));
    let required = keys.iter().filter(|key| is_required(key)).count();
    let items = node.items.filter(|&items| demands_anything(spots, items));
    (keys, items, required as u8)
}

/// Whether anything is demanded at a spot or below. Spots nest at most 64 deep, so this
/// recurses.
fn demands_anything(spots: &Spots, spot: Spot) -> bool {
    let here = spots
        .node(spot)
        .is_some_and(|node| !node.tests.is_empty() || !node.required_by.is_empty());
    here || spots
        .below(spot)
        .any(|below| demands_anything(spots, below))
}

/// The hash table from spot and key to spot. At most half of it is used.
fn slots(spots: &[PlanSpot]) -> Vec<U16> {
    let keyed = spots.iter().filter(|spot| spot.key.get() != NONE).count();
    let mut slots = vec![U16::ZERO; (keyed * 2).next_power_of_two()];
    let mask = slots.len() - 1;
    for (number, spot) in spots.iter().enumerate() {
        if spot.key.get() == NONE {
            continue;
        }
        let mut place = slot_of(spot.parent.get().into(), SymbolId(spot.key.get()));
        while slots[place & mask] != U16::ZERO {
            place += 1;
        }
        slots[place & mask] = U16::new(number as u16);
    }
    slots
}

/// The records of a projection in breadth-first order, without what is not read and of no
/// interest to a plan; `None` where there are too many.
fn projection_image(places: &Places, spots: &HashMap<Spot, u16>) -> Option<Vec<ProjectionPlace>> {
    let spot_of = |node: &PlaceNode| {
        let spot = node.spot.filter(|_| node.reading == Reading::Unread);
        spot.and_then(|spot| spots.get(&Spot(spot)).copied())
    };
    let is_kept = |place: Place| {
        let node = places.node(place);
        node.is_some_and(|node| node.reading != Reading::Unread || spot_of(node).is_some())
    };
    let mut order: VecDeque<(Option<SymbolId>, Place)> = VecDeque::from([(None, Place::ROOT)]);
    let mut count = 1;
    let mut records = Vec::new();
    while let Some((key, place)) = order.pop_front() {
        let node = places.node(place)?;
        let has_inside = node.reading == Reading::Members;
        let keys = node.keys.iter().filter(|_| has_inside);
        let keys: Vec<_> = keys.filter(|(_, place)| is_kept(**place)).collect();
        let items = node.items.filter(|&items| has_inside && is_kept(items));
        let children = count;
        order.extend(keys.iter().map(|&(&key, &place)| (Some(key), place)));
        count += keys.len();
        let items = items.map_or(0, |items| {
            order.push_back((None, items));
            count += 1;
            count - 1
        });
        if count > MAX_PLACES {
            return None;
        }
        records.push(ProjectionPlace {
            key: U32::new(key.map_or(NONE, |key| key.0)),
            children: U16::new(if keys.is_empty() { 0 } else { children as u16 }),
            keys: U16::new(keys.len() as u16),
            items: U16::new(items as u16),
            spot: U16::new(spot_of(node).unwrap_or(END)),
            reading: node.reading as u8,
        });
    }
    Some(records)
}
