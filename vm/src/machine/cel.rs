//! The operations of CEL (docs/spec/cel.md §2 and 3).
//!
//! What only looks at values is done in [`Machine::cel_look`]; what makes a value, in
//! [`Machine::cel_compute`]. An error jumps like any other failure; `CelCatch` makes a
//! value of it and `CelRaise` an error again.

use kpvm_format::Tables;
use kpvm_format::cel::{Function, Root};
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{Constant, ConstantKind};
use smallvec::SmallVec;

use super::value::{Flow, boolean};
use super::{Ending, Machine, NULL, Scene, Setting, World, cel_request};
use crate::cel::access::{self, Found};
use crate::cel::value::{Value, look, no_overload};
use crate::cel::{self};
use crate::document::{Extended, Kind, NodeId, View};
use crate::function::{FunctionError, Values};

/// What CEL keeps between instructions.
#[derive(Debug, Default)]
pub(super) struct CelState {
    /// Fuel that the expression at hand may not use.
    reserve: u64,
    /// Text of the expression at hand, a number of the table of texts.
    expression: Option<u32>,
    /// A limit was crossed: nothing may absorb the error.
    pub(super) refused: bool,
    /// What was made for expressions, by the number of its [`Root`].
    roots: [Option<NodeId>; Root::ALL.len()],
    /// `params`, while an object of them is looked at.
    params: Option<NodeId>,
    /// Numbers of the exceptions that hold for the rule at hand.
    exceptions: Vec<u32>,
}

/// Bit of `CelIfCompare`: the constant is the left operand.
const CONSTANT_IS_LEFT: u8 = 2;

/// Why a test came to nothing.
pub(super) enum Tested {
    /// It failed; the machine has the error.
    Failed,
    /// A value has to be made first.
    Makes,
    /// The block ends.
    Ends(Ending),
}

impl Tested {
    /// What an error does.
    fn of(flow: Flow) -> Self {
        match flow {
            Flow::Next | Flow::Jump => Tested::Failed,
            Flow::End(ending) => Tested::Ends(ending),
        }
    }
}

/// What an expression that takes too many steps comes to.
const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

impl Machine {
    /// Forgets what belongs to the evaluation before.
    pub(super) fn begin_cel(&mut self) {
        self.cel = CelState::default();
    }

    /// Begins an expression: it may take so many steps of those that are left.
    pub(super) fn begin_expression(&mut self, text: u32, most: u64) {
        let all = self.fuel + self.cel.reserve;
        self.fuel = all.min(most);
        self.cel.reserve = all - self.fuel;
        self.cel.expression = Some(text);
        self.cel.refused = false;
    }

    /// Ends a block: the steps that were kept back are there again. An expression that
    /// took all of its own steps has failed.
    pub(super) fn end_expressions(&mut self, ending: Ending) -> Ending {
        let reserve = std::mem::take(&mut self.cel.reserve);
        self.fuel += reserve;
        if ending == Ending::OutOfFuel && reserve > 0 {
            self.fail_with(COST_EXCEEDED);
            self.cel.refused = true;
            return Ending::Failed { depth: 0 };
        }
        ending
    }

    /// The text of the expression that crossed a limit, if that ended the block.
    pub(crate) fn refused_expression(&self) -> Option<u32> {
        self.cel.expression.filter(|_| self.cel.refused)
    }

    fn cel_fail(&mut self, error: FunctionError) -> Flow {
        match error {
            FunctionError::Failed(text) => {
                self.fail_with(&text);
                Flow::Jump
            }
            FunctionError::Refused(_) => {
                self.cel.refused = true;
                self.fail_with(COST_EXCEEDED);
                Flow::End(Ending::Failed { depth: 0 })
            }
        }
    }

    fn cel_set(&mut self, register: u8, outcome: Result<NodeId, FunctionError>) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(error) => self.cel_fail(error),
        }
    }

    fn set_found(&mut self, register: u8, found: NodeId) -> Flow {
        if found.is_missing() {
            return Flow::Jump;
        }
        self.set(register, found)
    }

    /// Runs one of the operations that only look at values. Nothing for any other, and
    /// for one that has to make a value after all.
    #[inline]
    pub(super) fn cel_look(
        &mut self,
        op: Op,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Option<Flow> {
        let (a, b, e) = (instruction.a, instruction.b, instruction.e);
        let (c, view) = (instruction.c.get(), &scene.view);
        Some(match op {
            Op::CelSelect => {
                let source = self.get(b);
                if view.kind(source) == Some(Kind::Map) {
                    return Some(match view.get(source, SymbolId(c)) {
                        NodeId::MISSING => self.no_such_key(scene, c),
                        found => self.set(a, found),
                    });
                }
                match access::select(view, source, SymbolId(c)) {
                    Found::Value(found) => self.set(a, found),
                    Found::NoSuchKey if view.kind(source) == Some(Kind::List) => self.no_fields(),
                    Found::NoSuchKey => self.no_such_key(scene, c),
                    Found::Optional(_) => return None,
                }
            }
            Op::CelPath => self.no_such_path(c, scene),
            Op::CelRequireFields => match view.kind(self.get(b)) {
                Some(Kind::List) => self.no_fields(),
                _ => Flow::Next,
            },
            Op::CelHas => {
                let has = access::has(view, self.get(b), SymbolId(c));
                self.set(a, boolean(has))
            }
            Op::CelFind => {
                let found = access::find(view, self.get(b), SymbolId(c));
                self.set_found(a, found)
            }
            Op::CelFindIndex => {
                let found = access::find_index(view, self.get(b), self.get(e));
                self.set_found(a, found)
            }
            Op::CelUnwrap => {
                let source = self.get(b);
                match view.extended(source) {
                    Some(Extended::Optional(Some(inner))) => self.set(a, inner),
                    Some(Extended::Optional(None)) => {
                        self.set(a, NULL);
                        Flow::Jump
                    }
                    _ if e == 0 => self.set(a, source),
                    _ => return None,
                }
            }
            Op::CelBinary => {
                let function = Function::decode(c)?;
                let (left, right) = (self.get(b), self.get(e));
                if function == Function::Index {
                    return match access::find_index(view, left, right) {
                        found if !found.is_missing() && !is_optional(view, left) => {
                            Some(self.set(a, found))
                        }
                        _ => None,
                    };
                }
                match cel::predicate(function, left, right, view, &mut self.fuel)? {
                    Ok(value) => self.set(a, boolean(value)),
                    Err(error) => self.cel_fail(error),
                }
            }
            Op::CelRange if e == 0 && view.kind(self.get(b)) == Some(Kind::List) => {
                self.set(a, self.get(b))
            }
            Op::CelRequireBool => match view.bool(self.get(a)) {
                Some(_) => Flow::Next,
                None => self.cel_fail(no_overload()),
            },
            Op::CelCatch => match view.extended(self.get(a)) {
                Some(Extended::Error(_)) => Flow::Next,
                _ => return None,
            },
            Op::CelRaise => match view.extended(self.get(a)) {
                Some(Extended::Error(text)) => {
                    self.fail_with(view.piece_str(text));
                    Flow::Jump
                }
                _ => Flow::Next,
            },
            Op::CelVariable => {
                let record = scene.tables.entries.get(c as usize)?;
                let value = self.variable(record.slot.get())?;
                match view.extended(value) {
                    Some(Extended::Error(text)) => {
                        self.fail_with(view.piece_str(text));
                        Flow::Jump
                    }
                    _ => self.set(a, value),
                }
            }
            Op::CelRoot => {
                let request = scene.request;
                let found = match Root::decode(c)? {
                    Root::Object => request.object.unwrap_or(NULL),
                    Root::OldObject => request.old_object.unwrap_or(NULL),
                    Root::ObjectOrEmpty if request.object.is_some() => request.object?,
                    Root::OldObjectOrEmpty if request.old_object.is_some() => request.old_object?,
                    Root::Params => self.cel.params.unwrap_or(NULL),
                    Root::Authorizer | Root::AuthorizerRequestResource => return None,
                    root => (*self.cel.roots.get(root as usize)?)?,
                };
                self.set(a, found)
            }
            _ => return None,
        })
    }

    fn no_such_key(&mut self, scene: &Scene<'_>, key: u32) -> Flow {
        let key = scene.tables.symbols.text(SymbolId(key));
        self.fail_with("no such key: ");
        self.failure_text.push_str(key);
        Flow::Jump
    }

    fn no_fields(&mut self) -> Flow {
        self.fail_with("unsupported index type 'string' in list");
        Flow::Jump
    }

    /// Puts the value at a static path of the object into a register; whether there is one.
    #[inline]
    pub(super) fn finds_path(&mut self, register: u8, path: u32, scene: &Scene<'_>) -> bool {
        let found = match scene.request.object {
            Some(object) if object == scene.subject.root => self.load_path(path, scene),
            Some(object) => follow(path, object, scene),
            None => NodeId::MISSING,
        };
        self.holds(register, found)
    }

    /// The error of the first field of a path that is not there.
    #[cold]
    fn no_such_path(&mut self, path: u32, scene: &Scene<'_>) -> Flow {
        let mut value = scene.request.object.unwrap_or(NULL);
        for key in keys_of(path, scene) {
            value = match scene.view.kind(value) {
                Some(Kind::List) => return self.no_fields(),
                _ => scene.view.get(value, key),
            };
            if value.is_missing() {
                return self.no_such_key(scene, key.0);
            }
        }
        Flow::End(Ending::OutOfFuel)
    }

    /// Whether a field is there, which the register has then.
    #[inline]
    pub(super) fn cel_has(
        &mut self,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Result<bool, Tested> {
        let (a, source) = (instruction.a, self.get(instruction.b));
        let (key, view) = (SymbolId(instruction.c.get()), &scene.view);
        let found = match view.kind(source) {
            Some(Kind::Map) => view.get(source, key),
            Some(Kind::List) => return Err(Tested::of(self.no_fields())),
            _ => match access::select(view, source, key) {
                Found::Value(found) => found,
                Found::NoSuchKey | Found::Optional(None) => return Ok(false),
                Found::Optional(Some(_)) => return Err(Tested::Makes),
            },
        };
        if !found.is_missing() {
            self.set(a, found);
        }
        Ok(!found.is_missing())
    }

    /// As [`Machine::cel_has`], for what an optional holds.
    #[inline]
    pub(super) fn cel_find(
        &mut self,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Result<bool, Tested> {
        let (a, mut source) = (instruction.a, self.get(instruction.b));
        let (key, view) = (SymbolId(instruction.c.get()), &scene.view);
        let found = match view.kind(source) {
            Some(Kind::Map) => view.get(source, key),
            _ => {
                if let Some(Extended::Optional(inner)) = view.extended(source)
                    && instruction.e != 0
                {
                    source = inner.unwrap_or(NodeId::MISSING);
                }
                if view.kind(source) == Some(Kind::List) {
                    return Err(Tested::of(self.no_fields()));
                }
                access::find(view, source, key)
            }
        };
        if !found.is_missing() {
            self.set(a, found);
        }
        Ok(!found.is_missing())
    }

    /// Whether a comparison with a constant holds.
    #[inline]
    pub(super) fn cel_compare(
        &mut self,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Result<bool, Tested> {
        let (value, view) = (self.get(instruction.a), &scene.view);
        let constant = scene.tables.constants.get(instruction.c.get() as usize);
        let function = Function::decode(u32::from(instruction.e));
        let (Some(constant), Some(function)) = (constant, function) else {
            return Err(Tested::Ends(Ending::OutOfFuel));
        };
        // Most constants are texts, and most values that they are compared with too.
        if constant.kind == ConstantKind::String as u8 && view.kind(value) == Some(Kind::String) {
            let text = view.text(value);
            let constant = scene.tables.text(constant.text).as_bytes();
            match function {
                Function::Equal => return Ok(text == constant),
                Function::NotEqual => return Ok(text != constant),
                Function::StartsWith if instruction.b & CONSTANT_IS_LEFT == 0 => {
                    return Ok(text.starts_with(constant));
                }
                Function::EndsWith if instruction.b & CONSTANT_IS_LEFT == 0 => {
                    return Ok(text.ends_with(constant));
                }
                _ => {}
            }
        }
        let is_left = instruction.b & CONSTANT_IS_LEFT != 0;
        match compare(function, value, constant, is_left, scene, &mut self.fuel) {
            Some(Ok(holds)) => Ok(holds),
            Some(Err(error)) => Err(Tested::of(self.cel_fail(error))),
            None => Err(Tested::Ends(Ending::OutOfFuel)),
        }
    }

    /// Whether a value that has to be a boolean is true.
    #[inline]
    pub(super) fn cel_truth(
        &mut self,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Result<bool, Tested> {
        match scene.view.bool(self.get(instruction.a)) {
            Some(value) => Ok(value),
            None => Err(Tested::of(self.cel_fail(no_overload()))),
        }
    }

    /// Runs one of the other operations of CEL.
    pub(super) fn cel_compute(
        &mut self,
        op: Op,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let (a, b, e) = (instruction.a, instruction.b, instruction.e);
        let c = instruction.c.get();
        match op {
            Op::CelSelect => {
                let found = access::select(&setting.view(world), self.get(b), SymbolId(c));
                let inner = match found {
                    Found::Optional(inner) => inner,
                    Found::Value(_) | Found::NoSuchKey => None,
                };
                let outcome = self.with_values(setting, world, |values| values.new_optional(inner));
                self.cel_set(a, outcome)
            }
            // The optional that a field of an optional is.
            Op::CelIfHas => {
                let found = access::select(&setting.view(world), self.get(b), SymbolId(c));
                let Found::Optional(Some(inner)) = found else {
                    return Flow::End(Ending::OutOfFuel);
                };
                let outcome =
                    self.with_values(setting, world, |values| values.new_optional(Some(inner)));
                self.cel_set(a, outcome)
            }
            Op::CelUnwrap => {
                let outcome = self.new_error(setting, world, "no such overload");
                match self.cel_set(a, outcome) {
                    Flow::Next => Flow::Jump,
                    other => other,
                }
            }
            Op::CelWrap => {
                let inner = Some(self.get(b));
                let outcome = self.with_values(setting, world, |values| values.new_optional(inner));
                self.cel_set(a, outcome)
            }
            Op::CelNone => {
                let outcome = self.with_values(setting, world, |values| values.new_optional(None));
                self.cel_set(a, outcome)
            }
            Op::CelUnary => {
                let arguments = [self.get(b)];
                self.cel_call(a, c, &arguments, setting, world)
            }
            Op::CelBinary => {
                let arguments = [self.get(b), self.get(e)];
                self.cel_call(a, c, &arguments, setting, world)
            }
            Op::CelCall => {
                let arguments = std::mem::take(self.list(b));
                let flow = self.cel_call(a, c, &arguments, setting, world);
                *self.list(b) = arguments;
                flow
            }
            Op::CelRange => {
                let source = self.get(b);
                let outcome = self.with_values(setting, world, |values| {
                    access::range(values, source, e != 0)
                });
                self.cel_set(a, outcome)
            }
            Op::CelMapEnd => {
                let pairs = std::mem::take(self.list(b));
                let outcome = self.with_values(setting, world, |values| {
                    access::make_map(values, &pairs, c != 0)
                });
                *self.list(b) = pairs;
                self.cel_set(a, outcome)
            }
            Op::CelMapExtend => {
                let map = self.get(b);
                let pairs = self.with_values(setting, world, |values| access::pairs(values, map));
                match pairs {
                    Ok(pairs) => {
                        self.list(a).extend(pairs);
                        Flow::Next
                    }
                    Err(error) => self.cel_fail(error),
                }
            }
            Op::CelPushOptional => match setting.view(world).extended(self.get(b)) {
                Some(Extended::Optional(inner)) => {
                    self.list(a).extend(inner);
                    Flow::Next
                }
                _ => self.cel_fail(no_overload()),
            },
            Op::CelCatch => {
                let text = std::mem::take(&mut self.failure_text);
                let outcome = self.new_error(setting, world, &text);
                self.failure_text = text;
                self.cel_set(a, outcome)
            }
            Op::CelRaiseAll => {
                let errors = std::mem::take(self.list(a));
                let view = setting.view(world);
                let mut texts: Vec<&str> = Vec::new();
                for &error in &errors {
                    if let Some(Extended::Error(text)) = view.extended(error) {
                        let text = view.piece_str(text);
                        if b != 0 || !texts.contains(&text) {
                            texts.push(text);
                        }
                    }
                }
                let flow = match texts.as_slice() {
                    [] => Flow::Next,
                    [only] => {
                        self.fail_with(only);
                        Flow::Jump
                    }
                    several if b != 0 => {
                        self.fail_with(&several.join("; "));
                        Flow::Jump
                    }
                    several => {
                        self.fail_with(&format!("[{}]", several.join(", ")));
                        Flow::Jump
                    }
                };
                *self.list(a) = errors;
                flow
            }
            Op::CelRoot => self.cel_root(a, c, setting, world),
            Op::CelVariable => self.cel_variable(a, c, setting, world),
            Op::CelParams => self.collect_params(a, b, e != 0, setting, world),
            Op::CelBindParams => {
                self.cel.params = Some(self.get(a));
                self.forget_variables();
                Flow::Next
            }
            Op::ReturnErrorText => {
                self.show_failure();
                Flow::End(Ending::CelError)
            }
            Op::ReturnFailText => Flow::End(Ending::FailText(c)),
            Op::ReturnFailError => {
                self.show_failure();
                Flow::End(Ending::FailError)
            }
            Op::ReturnFailValue => {
                let value = self.get(a);
                let view = setting.view(world);
                let is_message = match b {
                    0 => is_usable_message(&view, value),
                    _ => view.kind(value) != Some(Kind::String) || !view.text(value).is_empty(),
                };
                match is_message {
                    true => Flow::End(Ending::FailValue(value)),
                    false => Flow::Next,
                }
            }
            // The others are not handed over.
            _ => Flow::End(Ending::OutOfFuel),
        }
    }

    fn new_error(
        &mut self,
        setting: Setting<'_>,
        world: &mut World<'_>,
        text: &str,
    ) -> Result<NodeId, FunctionError> {
        self.with_values(setting, world, |values| {
            values.check_text(text.len())?;
            values.charge(1 + text.len() as u64 / Values::BYTES_PER_STEP)?;
            let piece = values.buffer.copy_text(text.as_bytes())?;
            values.new_extended(Extended::Error(piece))
        })
    }

    fn cel_call(
        &mut self,
        register: u8,
        function: u32,
        arguments: &[NodeId],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(function) = Function::decode(function) else {
            return Flow::End(Ending::OutOfFuel);
        };
        let outcome = self.with_values(setting, world, |values| {
            cel::call(function, arguments, values)
        });
        self.cel_set(register, outcome)
    }

    /// A variable of the rule: computed once, the error too (docs/spec/cel.md §2.5).
    fn cel_variable(
        &mut self,
        register: u8,
        entry: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(record) = setting.tables.entries.get(entry as usize) else {
            return Flow::End(Ending::OutOfFuel);
        };
        let slot = record.slot.get();
        let value = match self.variable(slot) {
            Some(value) => value,
            None => {
                let value = match self.run_loader(entry, record, setting, world) {
                    Ending::Value(value) => value,
                    Ending::Failed { .. } if !self.cel.refused => {
                        let text = std::mem::take(&mut self.failure_text);
                        match self.new_error(setting, world, &text) {
                            Ok(error) => error,
                            Err(error) => return self.cel_fail(error),
                        }
                    }
                    ending => return Flow::End(ending),
                };
                self.set_variable(slot, value);
                value
            }
        };
        let view = setting.view(world);
        match view.extended(value) {
            Some(Extended::Error(text)) => {
                self.fail_with(view.piece_str(text));
                Flow::Jump
            }
            _ => self.set(register, value),
        }
    }

    /// The exceptions that hold for the rule that is about to run.
    pub(crate) fn set_exceptions(&mut self, numbers: &[u32]) {
        self.cel.exceptions.clear();
        self.cel.exceptions.extend(numbers);
        if let Some(known) = self.cel.roots.get_mut(Root::Exceptions as usize) {
            *known = None;
        }
    }

    /// What has to be made for expressions: when it is first needed.
    fn cel_root(
        &mut self,
        register: u8,
        root: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(kind) = Root::decode(root) else {
            return Flow::End(Ending::OutOfFuel);
        };
        let exceptions = std::mem::take(&mut self.cel.exceptions);
        let (request, subject, tables) = (setting.request, setting.subject, setting.tables);
        let outcome = self.with_values(setting, world, |values| match kind {
            Root::Request => cel_request::request(request, subject, values),
            Root::FullRequest => cel_request::full_request(request, subject, values),
            Root::Namespace => cel_request::namespace(subject, values),
            Root::GivenNamespace => cel_request::given_namespace(request, subject, values),
            Root::ResourceRequest => cel_request::resource_request(request, subject, values),
            Root::LabelledNamespace => cel_request::labelled_namespace(request, subject, values),
            Root::Exceptions => cel_request::exceptions(&exceptions, tables, values),
            Root::ObjectOrEmpty | Root::OldObjectOrEmpty => values.new_map(&[]),
            Root::Authorizer => cel_request::authorizer(request, subject, true, values),
            Root::AuthorizerRequestResource => {
                cel_request::authorizer(request, subject, false, values)
            }
            Root::Object | Root::OldObject | Root::Params => values.new_null(),
        });
        self.cel.exceptions = exceptions;
        if let (Ok(value), Some(known)) = (&outcome, self.cel.roots.get_mut(kind as usize)) {
            *known = Some(*value);
        }
        self.cel_set(register, outcome)
    }
}

/// The keys of a static path, in order.
fn keys_of(path: u32, scene: &Scene<'_>) -> SmallVec<[SymbolId; 8]> {
    let mut keys = SmallVec::new();
    let mut next = path;
    // INVARIANT: parents have smaller numbers, and the verifier bounds the depth.
    while let Some(entry) = scene.tables.paths.get(next as usize) {
        keys.push(SymbolId(entry.symbol.get()));
        next = entry.parent.get();
    }
    keys.reverse();
    keys
}

/// The value at a static path of a value.
fn follow(path: u32, value: NodeId, scene: &Scene<'_>) -> NodeId {
    let keys = keys_of(path, scene);
    keys.into_iter()
        .fold(value, |value, key| scene.view.get(value, key))
}

/// Compares a value with a constant; `None` where the steps do not suffice, or the constant is
/// nothing that code is made for.
fn compare(
    function: Function,
    value: NodeId,
    constant: &Constant,
    constant_is_left: bool,
    scene: &Scene<'_>,
    fuel: &mut u64,
) -> Option<Result<bool, FunctionError>> {
    let (tables, view) = (scene.tables, &scene.view);
    let looked = look(view, value);
    if function == Function::In && !constant_is_left {
        let items = Tables::range(tables.constants, constant.children);
        for item in items {
            *fuel = fuel.checked_sub(1)?;
            if cel::scalar_predicate(Function::Equal, &looked, &scalar(item, tables)?, fuel)?
                .ok()?
            {
                return Some(Ok(true));
            }
        }
        return Some(Ok(false));
    }
    let constant = scalar(constant, tables)?;
    match function {
        Function::In => access::is_scalar_in(view, &constant, value, fuel),
        _ if constant_is_left => cel::scalar_predicate(function, &constant, &looked, fuel),
        _ => cel::scalar_predicate(function, &looked, &constant, fuel),
    }
}

/// What a constant is that neither is a container nor has to be made.
fn scalar<'t>(constant: &Constant, tables: &Tables<'t>) -> Option<Value<'t>> {
    let bits = constant.value.get();
    Some(match ConstantKind::ALL.get(usize::from(constant.kind))? {
        ConstantKind::Null => Value::Null,
        ConstantKind::Bool => Value::Bool(bits != 0),
        ConstantKind::Int => Value::Int(bits as i64),
        ConstantKind::Uint => Value::Uint(bits),
        ConstantKind::Float => Value::Double(f64::from_bits(bits)),
        ConstantKind::String => Value::String(tables.text(constant.text).as_bytes()),
        ConstantKind::List
        | ConstantKind::Map
        | ConstantKind::Reference
        | ConstantKind::Bytes
        | ConstantKind::Type => return None,
    })
}

fn is_optional(view: &View<'_>, id: NodeId) -> bool {
    matches!(view.extended(id), Some(Extended::Optional(_)))
}

/// What is a message at all (docs/spec/cel.md §2.3).
fn is_usable_message(view: &View<'_>, value: NodeId) -> bool {
    let text = view.str(value).trim();
    view.kind(value) == Some(Kind::String)
        && !text.is_empty()
        && text.len() <= 5120
        && !text.contains('\n')
}
