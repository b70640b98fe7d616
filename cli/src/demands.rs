//! What rules ask of the program that runs them: data from outside, the time,
//! randomness, names of hosts, and expressions read at run time.
//!
//! The code of a rule comes in, and is read, never run: what a request is made of is
//! known as far as it is constant. Code that no jump can reach is read as well, so a
//! rule never asks for more than is said here.

use std::collections::{BTreeSet, HashMap, VecDeque};

use kpvm_format::Tables;
use kpvm_format::cel;
use kpvm_format::function::Function;
use kpvm_format::instruction::{Instruction, Op, OperandKind};
use kpvm_format::signature::{self, Purity};
use kpvm_format::table::{Block, Constant, ConstantKind, NONE, Rule};
use serde::Serialize;
use serde_json::{Map, Value};

/// Stands in a text for what is computed when the rule runs.
const COMPUTED: &str = "<computed>";

/// Constants nested deeper than this count as computed; no request needs more.
const MAX_DEPTH: usize = 32;

/// Requests with more parts than this count as computed, and so do longer texts, so
/// that no code can make a request that is much larger than itself.
const MAX_PARTS: usize = 1_000;
const MAX_TEXT: usize = 10_000;

/// What a rule asks for.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Demands {
    /// Data from outside, each request once.
    pub external_data: Vec<Request>,
    /// Whether a text becomes an expression only when the rule runs.
    pub runtime_expressions: bool,
    /// Whether it reads the clock.
    pub time: bool,
    /// Whether it draws random numbers.
    pub randomness: bool,
    /// Whether it asks for the addresses of hosts.
    pub host_addresses: bool,
}

/// A request for data from outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// `configMap`, `apiCall`, `globalReference`, `imageRegistry`, `params` or
    /// `accessReview`.
    pub kind: &'static str,
    /// What is asked for, field by field.
    pub fields: Vec<RequestField>,
}

/// A field of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestField {
    /// Its path, e.g. `service.url`.
    pub name: String,
    /// Its value; `<computed>` stands for what is not known.
    pub value: Value,
    /// Whether the value or a part of it is known only when the rule runs.
    pub computed: bool,
}

/// What a rule asks for: in its own blocks, in those of the context entries that they
/// may load, and in those of messages and exceptions.
pub fn of_rule(tables: &Tables<'_>, rule: &Rule) -> Demands {
    let mut demands = Demands::default();
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
            waiting.extend(blocks_behind(tables, block));
            Reader::new(tables, block).read(block, &mut demands);
            if demands.runtime_expressions {
                // An expression read at run time may name any entry of the rule.
                let entries = Tables::range(tables.entries, rule.entries);
                waiting.extend(entries.iter().map(|entry| entry.block.get()));
            }
        }
    }
    demands
}

/// The blocks that a block may run.
fn blocks_behind(tables: &Tables<'_>, block: &Block) -> Vec<u32> {
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

/// As much of a value as the code says.
#[derive(Debug, Clone, PartialEq)]
enum Known {
    Computed,
    Value(Value),
    /// A text with computed parts.
    Text(String),
    List(Vec<Known>),
    Map(Vec<(String, Known)>),
}

impl Known {
    /// The value, or that it is computed if it has too many parts.
    fn bounded(self) -> Self {
        match self.parts() {
            0..=MAX_PARTS => self,
            _ => Known::Computed,
        }
    }

    /// Depth: at most [`MAX_PARTS`], since larger values are never put together.
    fn parts(&self) -> usize {
        1 + match self {
            Known::Computed | Known::Value(_) | Known::Text(_) => 0,
            Known::List(items) => items.iter().map(Known::parts).sum(),
            Known::Map(members) => members.iter().map(|(_, value)| value.parts()).sum(),
        }
    }
}

/// Reads a block from its beginning to its end.
struct Reader<'t> {
    tables: &'t Tables<'t>,
    registers: HashMap<u32, (Known, usize)>,
    /// `None` for a list of unknown length.
    lists: HashMap<u32, Option<Vec<Known>>>,
    texts: HashMap<u32, String>,
    /// For a position that is jumped to, the first position that jumps there.
    jumps: HashMap<usize, usize>,
}

impl<'t> Reader<'t> {
    fn new(tables: &'t Tables<'t>, block: &Block) -> Self {
        let mut jumps = HashMap::new();
        for (position, instruction) in tables.block_code(block).iter().enumerate() {
            for operand in Op::decode(instruction.op).map_or(&[][..], Op::operands) {
                if operand.kind == OperandKind::Forward {
                    let target = instruction.operand(operand.field) as usize;
                    jumps.entry(target).or_insert(position);
                }
            }
        }
        Self {
            tables,
            registers: HashMap::new(),
            lists: HashMap::new(),
            texts: HashMap::new(),
            jumps,
        }
    }

    fn read(mut self, block: &Block, demands: &mut Demands) {
        for (position, instruction) in self.tables.block_code(block).iter().enumerate() {
            let Some(op) = Op::decode(instruction.op) else {
                continue;
            };
            // Where ways meet, what was written on one of them is not known.
            if let Some(&jump) = self.jumps.get(&position) {
                self.registers.retain(|_, (_, written)| *written < jump);
            }
            self.note(op, instruction, demands);
            self.follow(op, instruction, position);
        }
    }

    /// Notes what the instruction asks for.
    fn note(&self, op: Op, instruction: &Instruction, demands: &mut Demands) {
        match op {
            Op::EvaluateText | Op::EvaluateQuery | Op::EvaluateOver => {
                demands.runtime_expressions = true;
            }
            Op::Call => self.note_call(instruction, demands),
            Op::Fetch => {
                let kinds = ["configMap", "apiCall", "globalReference", "imageRegistry"];
                let kind = kinds.get(usize::from(instruction.e)).copied();
                self.note_request(kind.unwrap_or("unknown"), instruction, demands);
            }
            Op::CelParams => self.note_request("params", instruction, demands),
            Op::CelBinary if instruction.c.get() == cel::Function::AuthorizeCheck as u32 => {
                let kind = "accessReview";
                let fields = Vec::new();
                let request = Request { kind, fields };
                if !demands.external_data.contains(&request) {
                    demands.external_data.push(request);
                }
            }
            Op::CelUnary | Op::CelBinary | Op::CelCall => {
                self.note_cel_call(op, instruction, demands);
            }
            _ => {}
        }
    }

    /// Notes what a function of CEL asks for, with its arguments as far as they are known.
    fn note_cel_call(&self, op: Op, instruction: &Instruction, demands: &mut Demands) {
        use cel::Function as F;
        let kind = match F::decode(instruction.c.get()) {
            Some(F::ResourceGet) => "resource.Get",
            Some(F::ResourceList) => "resource.List",
            Some(F::ResourcePost) => "resource.Post",
            Some(F::GlobalContextGet) => "globalContext.Get",
            Some(F::ImageMetadata) => "image.GetMetadata",
            Some(F::HttpGet) => "http.Get",
            Some(F::HttpPost) => "http.Post",
            Some(F::TimeNow) => return demands.time = true,
            Some(F::Random | F::RandomRandom) => return demands.randomness = true,
            _ => return,
        };
        let (b, e) = (u32::from(instruction.b), u32::from(instruction.e));
        let arguments = match op {
            Op::CelUnary => vec![self.register(b)],
            Op::CelBinary => vec![self.register(b), self.register(e)],
            _ => self.lists.get(&b).cloned().flatten().unwrap_or_default(),
        };
        let mut fields = Vec::new();
        add_fields("arguments", &Known::List(arguments), &mut fields);
        let request = Request { kind, fields };
        if !demands.external_data.contains(&request) {
            demands.external_data.push(request);
        }
    }

    /// Notes a request that stands in register `b`.
    fn note_request(&self, kind: &'static str, instruction: &Instruction, demands: &mut Demands) {
        let mut fields = Vec::new();
        add_fields("", &self.register(u32::from(instruction.b)), &mut fields);
        // The entry's own name is for errors.
        fields.retain(|field| field.name != "entry");
        let request = Request { kind, fields };
        if !demands.external_data.contains(&request) {
            demands.external_data.push(request);
        }
    }

    fn note_call(&self, instruction: &Instruction, demands: &mut Demands) {
        let number = u8::try_from(instruction.c.get()).ok();
        let function = number.and_then(Function::decode).and_then(signature::of);
        match function.map(|function| function.purity) {
            Some(Purity::Clock) => demands.time = true,
            Some(Purity::ClockIfThirdEmpty) => demands.time |= !self.has_third_text(instruction),
            Some(Purity::Random) => demands.randomness = true,
            Some(Purity::Network) => demands.host_addresses = true,
            Some(Purity::Pure | Purity::Configuration | Purity::KeyOrder) | None => {}
        }
    }

    /// Whether the third argument of a call is a text that is not empty.
    fn has_third_text(&self, instruction: &Instruction) -> bool {
        let arguments = self.lists.get(&u32::from(instruction.b));
        let third = arguments.and_then(|list| list.as_ref()?.get(2));
        matches!(third, Some(Known::Value(Value::String(text))) if !text.is_empty())
    }

    fn register(&self, register: u32) -> Known {
        let known = self.registers.get(&register);
        known.map_or(Known::Computed, |(known, _)| known.clone())
    }

    /// Follows the instructions that requests are made with; what any other writes is
    /// computed.
    fn follow(&mut self, op: Op, instruction: &Instruction, position: usize) {
        let (a, b) = (u32::from(instruction.a), u32::from(instruction.b));
        let known = match op {
            Op::LoadConstant => constant(self.tables, instruction.c.get()),
            Op::ListBegin => return drop(self.lists.insert(a, Some(Vec::new()))),
            Op::ListPush => {
                let item = self.register(b);
                return self.push(a, item);
            }
            Op::ListPushSome | Op::ListExtend => return drop(self.lists.insert(a, None)),
            Op::ListEnd => self.list(b).map_or(Known::Computed, Known::List),
            Op::MapEnd => self.map(b, instruction.c.get()),
            Op::TextBegin => return drop(self.texts.insert(a, String::new())),
            Op::TextLiteral => {
                let text = self.tables.texts.get(instruction.c.get() as usize);
                return self.append(a, text.map_or("", |&text| self.tables.text(text)));
            }
            Op::TextValue => return self.append(a, COMPUTED),
            Op::TextEnd => Known::Text(self.texts.remove(&b).unwrap_or_default()),
            _ => Known::Computed,
        };
        let known = known.bounded();
        for operand in op.operands() {
            if operand.kind == OperandKind::Destination {
                let register = instruction.operand(operand.field);
                self.registers.insert(register, (known.clone(), position));
            }
        }
    }

    fn push(&mut self, list: u32, item: Known) {
        let items = self.lists.entry(list).or_default();
        match items {
            Some(known) if known.len() < MAX_PARTS => known.push(item),
            _ => *items = None,
        }
    }

    /// What does not fit is left out: the text is not known to its end anyway.
    fn append(&mut self, accumulator: u32, text: &str) {
        let whole = self.texts.entry(accumulator).or_default();
        if whole.len() + text.len() <= MAX_TEXT {
            whole.push_str(text);
        }
    }

    fn list(&mut self, list: u32) -> Option<Vec<Known>> {
        self.lists.get(&list).cloned().flatten()
    }

    fn map(&mut self, list: u32, keys: u32) -> Known {
        match self.list(list) {
            Some(values) => Known::Map(
                self.tables
                    .text_list(keys)
                    .map(str::to_owned)
                    .zip(values)
                    .collect(),
            ),
            None => Known::Computed,
        }
    }
}

fn constant(tables: &Tables<'_>, number: u32) -> Known {
    let constant = tables.constants.get(number as usize);
    let value = constant.and_then(|constant| constant_value(tables, constant, 0, &mut 0));
    value.map_or(Known::Computed, Known::Value)
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
        // Neither an expression reference nor what only CEL has is data that a request
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

/// Adds a value field by field, lists as `name[0]`. Depth: that of a template, which
/// the code that makes it bounds, plus that of a constant.
fn add_fields(name: &str, known: &Known, fields: &mut Vec<RequestField>) {
    let inside = |key: &str| match name {
        "" => key.to_owned(),
        _ => format!("{name}.{key}"),
    };
    let mut add = |value: Value, computed: bool| {
        fields.push(RequestField {
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
