//! What rules ask of the program that runs them.
//!
//! The state of the analysis is as much of every value as the code says: constants, and lists,
//! maps and texts that are put together from constants. What differs where paths join, and
//! what any other instruction computes, is computed at run time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;

use kpvm_format::Tables;
use kpvm_format::cel::Function as CelFunction;
use kpvm_format::function::Function;
use kpvm_format::instruction::immediate::{PayloadPart, Provision};
use kpvm_format::instruction::{
    Instruction, ListSlot, Op, OperandKind, Operation, RegisterId, TextSlot,
};
use kpvm_format::outside::OutsideKind;
use kpvm_format::signature::{self, Purity};
use kpvm_format::table::{Block, Constant, ConstantKind, NONE, Rule};
use serde_json::{Map, Value};

use super::flow::{Analysis, Lattice, Onward, Successors, forward, loop_heads};

/// Stands in a text for what is computed when the rule runs.
const COMPUTED: &str = "<computed>";

/// Constants nested deeper than this count as computed; no request needs more.
const MAX_DEPTH: usize = 32;

/// Requests with more parts than this count as computed, and so do longer texts, so that no
/// code can make a request that is much larger than itself.
const MAX_PARTS: usize = 1_000;
const MAX_TEXT: usize = 10_000;

/// Something that a rule asks for, with what is known of it.
pub(super) type Demand = (OutsideKind, Vec<DemandField>);

/// A field of a request for data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DemandField {
    /// Its path, e.g. `service.url`.
    pub(super) name: String,
    /// Its value; `<computed>` stands for what is not known.
    pub(super) value: Value,
    /// Whether the value or a part of it is known only when the rule runs.
    pub(super) computed: bool,
}

/// What a rule asks for, each thing once: in its own blocks, in those of the context
/// entries that they may load, and in those of messages and exceptions.
pub(super) fn of_rule(tables: &Tables<'_>, rule: &Rule) -> Vec<Demand> {
    let mut demands = Vec::new();
    let mut waiting = VecDeque::from([
        rule.match_block.get(),
        rule.precondition_block.get(),
        rule.body_block.get(),
        rule.message_block.get(),
        rule.properties_block.get(),
    ]);
    let exceptions = Tables::range(tables.exceptions, rule.exceptions);
    waiting.extend(exceptions.iter().map(|exception| exception.block.get()));
    let mut seen = BTreeSet::new();
    while let Some(number) = waiting.pop_front() {
        if let Some(block) = tables.blocks.get(number as usize)
            && seen.insert(number)
        {
            waiting.extend(blocks_that_run(tables, block));
            of_block(tables, block, &mut demands);
            if demands.contains(&(OutsideKind::RuntimeExpressions, Vec::new())) {
                // An expression read at run time may name any entry of the rule.
                let entries = Tables::range(tables.entries, rule.entries);
                waiting.extend(entries.iter().map(|entry| entry.block.get()));
            }
        }
    }
    demands
}

/// The blocks that a block may run.
fn blocks_that_run(tables: &Tables<'_>, block: &Block) -> Vec<u32> {
    let mut blocks = Vec::new();
    for instruction in tables.block_code(block) {
        for operand in Op::decode(instruction.op).map_or(&[][..], Op::operands) {
            let value = instruction.operand(operand.field);
            match operand.kind {
                OperandKind::Entry => {
                    let entry = tables.entries.get(value as usize);
                    blocks.extend(entry.map(|entry| entry.block.get()));
                }
                OperandKind::OptionalBlock if value != NONE => blocks.push(value),
                _ => {}
            }
        }
    }
    blocks
}

fn of_block(tables: &Tables<'_>, block: &Block, demands: &mut Vec<Demand>) {
    let code = tables.block_code(block);
    if !code.iter().any(may_ask) {
        return;
    }
    let mut pass = Asking {
        tables,
        code,
        demands,
    };
    let Ok(()) = forward(&mut pass, &loop_heads(code), 0, Frame::default());
}

/// Whether an instruction can be one of those that [`Asking::note`] notes: most blocks have
/// none and need no analysis.
fn may_ask(instruction: &Instruction) -> bool {
    Op::decode(instruction.op).is_some_and(|op| {
        matches!(
            op,
            Op::EvaluateText
                | Op::EvaluateQuery
                | Op::EvaluateOver
                | Op::Call
                | Op::Fetch
                | Op::CelParams
                | Op::CelUnary
                | Op::CelBinary
                | Op::CelCall
                | Op::LoadPayload
                | Op::MatchNamespaceSelector
                | Op::MatchNamespaceLabels
                | Op::MatchRoles
                | Op::MatchClusterRoles
                | Op::MatchSubjects
                | Op::JumpIfNoUser
        )
    })
}

/// As much of a value as the code says.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Computed,
    Value(Value),
    /// A text with computed parts.
    Text(String),
    List(Vec<Rc<Known>>),
    Map(Vec<(String, Rc<Known>)>),
}

impl Known {
    /// Number of values, itself included. Depth: at most [`MAX_PARTS`], since larger values are
    /// never put together.
    fn parts(&self) -> usize {
        1 + match self {
            Known::Computed | Known::Value(_) | Known::Text(_) => 0,
            Known::List(items) => items.iter().map(|item| item.parts()).sum(),
            Known::Map(members) => members.iter().map(|(_, value)| value.parts()).sum(),
        }
    }
}

/// What is known of registers and accumulators. What is not there is computed.
#[derive(Debug, Clone, Default)]
struct Frame {
    registers: BTreeMap<RegisterId, Rc<Known>>,
    lists: BTreeMap<ListSlot, Rc<Vec<Rc<Known>>>>,
    texts: BTreeMap<TextSlot, Rc<String>>,
}

impl Frame {
    fn register(&self, register: RegisterId) -> Rc<Known> {
        let known = self.registers.get(&register).cloned();
        known.unwrap_or_else(|| Rc::new(Known::Computed))
    }

    fn list(&self, list: ListSlot) -> Option<Vec<Rc<Known>>> {
        self.lists.get(&list).map(|items| items.to_vec())
    }
}

struct Asking<'a> {
    tables: &'a Tables<'a>,
    code: &'a [Instruction],
    demands: &'a mut Vec<Demand>,
}

impl Lattice for Asking<'_> {
    type Fact = Frame;

    /// Only what is the same on both paths is known.
    fn join(&mut self, frame: &mut Frame, other: &Frame) -> bool {
        fn keep<K: Ord, V: PartialEq>(
            known: &mut BTreeMap<K, Rc<V>>,
            other: &BTreeMap<K, Rc<V>>,
        ) -> bool {
            let before = known.len();
            known.retain(|key, value| {
                let other = other.get(key);
                other.is_some_and(|other| Rc::ptr_eq(other, value) || other == value)
            });
            known.len() != before
        }
        let registers = keep(&mut frame.registers, &other.registers);
        let lists = keep(&mut frame.lists, &other.lists);
        let texts = keep(&mut frame.texts, &other.texts);
        registers || lists || texts
    }
}

impl Analysis for Asking<'_> {
    type Stop = Infallible;

    fn visit(
        &mut self,
        position: usize,
        mut frame: Frame,
        onward: &mut Onward<Frame>,
    ) -> Result<(), Infallible> {
        let Some(instruction) = self.code.get(position) else {
            return Ok(());
        };
        let Some(operation) = Operation::decode(instruction) else {
            return Ok(());
        };
        self.note(operation, &frame);
        self.follow(operation, &mut frame);
        let successors = Successors::of(instruction, position);
        for target in successors.jump.into_iter().chain(successors.back) {
            onward.send(target, frame.clone());
        }
        if let Some(next) = successors.next {
            onward.send(next, frame);
        }
        Ok(())
    }
}

impl Asking<'_> {
    fn add(&mut self, kind: OutsideKind, fields: Vec<DemandField>) {
        let demand = (kind, fields);
        if !self.demands.contains(&demand) {
            self.demands.push(demand);
        }
    }

    /// Notes what an instruction asks for.
    fn note(&mut self, operation: Operation, frame: &Frame) {
        let kind = match operation {
            Operation::EvaluateText { .. }
            | Operation::EvaluateQuery { .. }
            | Operation::EvaluateOver { .. } => OutsideKind::RuntimeExpressions,
            Operation::Call { list, function, .. } => match asked_by_call(function, list, frame) {
                Some(kind) => kind,
                None => return,
            },
            Operation::Fetch {
                request, provision, ..
            } => {
                let kind = match provision {
                    Provision::ConfigMap => OutsideKind::ConfigMap,
                    Provision::ApiCall => OutsideKind::ApiCall,
                    Provision::GlobalReference => OutsideKind::GlobalReference,
                    Provision::ImageRegistry => OutsideKind::ImageRegistry,
                };
                return self.note_request(kind, request, frame);
            }
            Operation::CelParams { src, .. } => {
                return self.note_request(OutsideKind::Params, src, frame);
            }
            Operation::CelUnary { src, function, .. } => {
                return self.note_cel(function, || vec![frame.register(src)]);
            }
            Operation::CelBinary {
                left,
                right,
                function,
                ..
            } => {
                let arguments = || vec![frame.register(left), frame.register(right)];
                return self.note_cel(function, arguments);
            }
            Operation::CelCall { list, function, .. } => {
                return self.note_cel(function, || frame.list(list).unwrap_or_default());
            }
            Operation::LoadPayload {
                part: PayloadPart::NamespaceLabels,
                ..
            }
            | Operation::MatchNamespaceSelector { .. }
            | Operation::MatchNamespaceLabels { .. } => OutsideKind::NamespaceLabels,
            Operation::LoadPayload {
                part: PayloadPart::AdmissionInfo,
                ..
            }
            | Operation::MatchRoles { .. }
            | Operation::MatchClusterRoles { .. }
            | Operation::MatchSubjects { .. }
            | Operation::JumpIfNoUser { .. } => OutsideKind::UserInfo,
            _ => return,
        };
        self.add(kind, Vec::new());
    }

    /// Notes what a function of CEL asks for, with its arguments as far as they are known.
    fn note_cel(&mut self, function: CelFunction, arguments: impl FnOnce() -> Vec<Rc<Known>>) {
        let kind = match function {
            CelFunction::ResourceGet => OutsideKind::ResourceGet,
            CelFunction::ResourceList => OutsideKind::ResourceList,
            CelFunction::ResourcePost => OutsideKind::ResourcePost,
            CelFunction::GlobalContextGet => OutsideKind::GlobalContextGet,
            CelFunction::ImageMetadata => OutsideKind::ImageMetadata,
            CelFunction::HttpGet => OutsideKind::HttpGet,
            CelFunction::HttpPost => OutsideKind::HttpPost,
            CelFunction::AuthorizeCheck => {
                return self.add(OutsideKind::AccessReview, Vec::new());
            }
            CelFunction::TimeNow => return self.add(OutsideKind::Time, Vec::new()),
            CelFunction::Random | CelFunction::RandomRandom => {
                return self.add(OutsideKind::Randomness, Vec::new());
            }
            _ => return,
        };
        let mut fields = Vec::new();
        add_fields("arguments", &Known::List(arguments()), &mut fields);
        self.add(kind, fields);
    }

    /// Notes a request that is in a register.
    fn note_request(&mut self, kind: OutsideKind, request: RegisterId, frame: &Frame) {
        let mut fields = Vec::new();
        add_fields("", &frame.register(request), &mut fields);
        // The entry's own name is for errors.
        fields.retain(|field| field.name != "entry");
        self.add(kind, fields);
    }

    /// Follows the instructions that requests are made with; what any other writes is computed.
    fn follow(&self, operation: Operation, frame: &mut Frame) {
        let known = match operation {
            Operation::LoadConstant { constant, .. } => known_constant(self.tables, constant.0),
            Operation::Move { src, .. } => {
                let known = frame.registers.get(&src).cloned();
                return set(operation, known, frame);
            }
            Operation::ListBegin { list } => {
                frame.lists.insert(list, Rc::default());
                return;
            }
            Operation::ListPush { list, src } => {
                let item = frame.register(src);
                return push(list, item, frame);
            }
            Operation::ListPushSome { list, .. }
            | Operation::ListExtend { list, .. }
            | Operation::CelPushOptional { list, .. }
            | Operation::CelMapExtend { list, .. } => {
                frame.lists.remove(&list);
                return;
            }
            Operation::ListEnd { list, .. } => frame.list(list).map(Known::List),
            Operation::MapEnd { list, keys, .. } => frame.list(list).map(|values| {
                let keys = self.tables.text_list(keys.0).map(str::to_owned);
                Known::Map(keys.zip(values).collect())
            }),
            Operation::TextBegin { accumulator } => {
                frame.texts.insert(accumulator, Rc::default());
                return;
            }
            Operation::TextLiteral { accumulator, text } => {
                let text = self.tables.texts.get(text.0 as usize);
                let text = text.map_or("", |&text| self.tables.text(text));
                return append(accumulator, text, frame);
            }
            Operation::TextValue { accumulator, .. } => {
                return append(accumulator, COMPUTED, frame);
            }
            Operation::TextEnd { accumulator, .. } => {
                let text = frame.texts.remove(&accumulator);
                text.map(|text| Known::Text(text.to_string()))
            }
            _ => None,
        };
        let known = known.filter(|known| known.parts() <= MAX_PARTS);
        set(operation, known.map(Rc::new), frame);
    }
}

/// Puts what is known into the register that an operation writes.
fn set(operation: Operation, known: Option<Rc<Known>>, frame: &mut Frame) {
    if let Some(register) = operation.destination() {
        match known {
            Some(known) => frame.registers.insert(register, known),
            None => frame.registers.remove(&register),
        };
    }
}

fn push(list: ListSlot, item: Rc<Known>, frame: &mut Frame) {
    if let Some(items) = frame.lists.get_mut(&list) {
        if items.len() < MAX_PARTS {
            Rc::make_mut(items).push(item);
        } else {
            frame.lists.remove(&list);
        }
    }
}

/// What does not fit is left out: the text is not known to its end anyway.
fn append(accumulator: TextSlot, text: &str, frame: &mut Frame) {
    if let Some(whole) = frame.texts.get_mut(&accumulator)
        && whole.len() + text.len() <= MAX_TEXT
    {
        Rc::make_mut(whole).push_str(text);
    }
}

fn asked_by_call(function: Function, list: ListSlot, frame: &Frame) -> Option<OutsideKind> {
    match signature::of(function)?.purity {
        Purity::Clock => Some(OutsideKind::Time),
        Purity::ClockIfThirdEmpty => {
            let arguments = frame.list(list).unwrap_or_default();
            let third = arguments.get(2).map(|third| &**third);
            let is_given =
                matches!(third, Some(Known::Value(Value::String(text))) if !text.is_empty());
            (!is_given).then_some(OutsideKind::Time)
        }
        Purity::Random => Some(OutsideKind::Randomness),
        Purity::Network => Some(OutsideKind::HostAddresses),
        Purity::Pure | Purity::Configuration | Purity::KeyOrder => None,
    }
}

fn known_constant(tables: &Tables<'_>, number: u32) -> Option<Known> {
    let constant = tables.constants.get(number as usize)?;
    constant_value(tables, constant, 0, &mut 0).map(Known::Value)
}

/// `parts` counts the values. Depth: at most [`MAX_DEPTH`].
fn constant_value(
    tables: &Tables<'_>,
    constant: &Constant,
    depth: usize,
    parts: &mut usize,
) -> Option<Value> {
    *parts += 1;
    if depth > MAX_DEPTH || *parts > MAX_PARTS {
        return None;
    }
    let bits = constant.value.get();
    let mut children = Tables::range(tables.constants, constant.children).iter();
    Some(match ConstantKind::ALL.get(usize::from(constant.kind))? {
        // Neither an expression reference nor a value that only CEL has is data that a request
        // could hold.
        ConstantKind::Reference | ConstantKind::Uint | ConstantKind::Bytes | ConstantKind::Type => {
            return None;
        }
        ConstantKind::Null => Value::Null,
        ConstantKind::Bool => Value::Bool(bits != 0),
        ConstantKind::Int => Value::from(bits as i64),
        ConstantKind::Float => Value::from(f64::from_bits(bits)),
        ConstantKind::String => Value::from(tables.text(constant.text)),
        ConstantKind::List => children
            .map(|child| constant_value(tables, child, depth + 1, parts))
            .collect::<Option<Vec<_>>>()?
            .into(),
        ConstantKind::Map => {
            let mut members = Map::new();
            children.try_for_each(|child| {
                let value = constant_value(tables, child, depth + 1, parts)?;
                members.insert(tables.text(child.key).to_owned(), value);
                Some(())
            })?;
            members.into()
        }
    })
}

/// Adds a value field by field, lists as `name[0]`. Depth: that of a template, which the code
/// that makes it bounds, plus that of a constant.
fn add_fields(name: &str, known: &Known, fields: &mut Vec<DemandField>) {
    let inside = |key: &str| match name {
        "" => key.to_owned(),
        _ => format!("{name}.{key}"),
    };
    let mut add = |value: Value, computed: bool| {
        fields.push(DemandField {
            name: name.to_owned(),
            value,
            computed,
        });
    };
    match known {
        Known::Computed => add(Value::from(COMPUTED), true),
        Known::Text(text) => add(Value::from(text.as_str()), true),
        Known::Value(Value::Object(members)) => {
            for (key, value) in members {
                add_fields(&inside(key), &Known::Value(value.clone()), fields);
            }
        }
        Known::Value(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let name = format!("{name}[{index}]");
                add_fields(&name, &Known::Value(item.clone()), fields);
            }
        }
        Known::Value(value) => add(value.clone(), false),
        Known::List(items) => {
            for (index, item) in items.iter().enumerate() {
                add_fields(&format!("{name}[{index}]"), item, fields);
            }
        }
        Known::Map(members) => {
            for (key, value) in members {
                add_fields(&inside(key), value, fields);
            }
        }
    }
}
