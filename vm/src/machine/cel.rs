//! The operations of CEL (docs/spec/cel.md §2 and §3).
//!
//! An error jumps like any other failure; `CelCatch` turns it into a value and `CelRaise`
//! back into an error.

use kpvm_format::Tables;
use kpvm_format::cel::{Function, Root};
use kpvm_format::instruction::immediate::{ErrorList, ForeachDepth, MessageForm, RangeOver};
use kpvm_format::instruction::{ConstantId, EntryId, ListSlot, PathId, RegisterId, SlotId, TextId};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{Constant, ConstantKind};
use smallvec::SmallVec;

use super::failure::Flow;
use super::{Ending, Machine, NULL, RequestFacts, Scene, Setting, World, boolean, cel_request};
use crate::cel::access::{self, Found};
use crate::cel::value::{Value, look, no_overload};
use crate::cel::{self};
use crate::document::{Extended, Kind, NodeId, View};
use crate::function::{FunctionError, Values};

/// CEL's state between instructions.
#[derive(Debug, Default)]
pub(super) struct CelState {
    /// Fuel that the current expression may not use.
    reserve: u64,
    /// Text of the current expression, an index into the table of texts.
    expression: Option<TextId>,
    /// A limit was exceeded: nothing may absorb the error.
    pub(super) refused: bool,
    /// Values built for expressions, by the number of their [`Root`].
    roots: [Option<NodeId>; Root::ALL.len()],
    /// `params`, while one of its objects is being evaluated.
    params: Option<NodeId>,
    /// Numbers of the exceptions that apply to the current rule.
    exceptions: Vec<u32>,
}

/// The result of a test, or where its error continues.
pub(super) type Tested = Result<bool, Flow>;

/// Whether a field is present.
pub(super) enum Has {
    /// It is known.
    Known(Tested),
    /// It is a field of an optional, which must be built.
    Optional,
}

impl Flow {
    /// As a test: a value that was built is present.
    pub(super) fn into_test(self) -> Tested {
        match self {
            Flow::Next => Ok(true),
            other => Err(other),
        }
    }
}

/// The error of an expression that takes too many steps.
const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

impl Machine {
    /// Forgets the state of the previous evaluation.
    pub(super) fn begin_cel(&mut self) {
        self.cel = CelState::default();
    }

    /// Forgets what belongs to the previous rule alone.
    pub(super) fn begin_cel_rule(&mut self) {
        self.cel.params = None;
        self.set_exceptions(&[]);
    }

    /// Forgets the expression of the previous run.
    pub(super) fn begin_cel_run(&mut self) {
        self.cel.expression = None;
        self.cel.refused = false;
    }

    /// Begins an expression, which may take at most this many of the remaining steps.
    pub(super) fn begin_expression(&mut self, text: TextId, most: u64) {
        let all = self.fuel + self.cel.reserve;
        self.fuel = all.min(most);
        self.cel.reserve = all - self.fuel;
        self.cel.expression = Some(text);
        self.cel.refused = false;
    }

    /// Ends a block: the reserved steps are available again. An expression that used all of
    /// its own steps has failed.
    pub(super) fn end_expressions(&mut self, ending: Ending) -> Ending {
        let reserve = std::mem::take(&mut self.cel.reserve);
        self.fuel += reserve;
        if ending == Ending::OutOfFuel && reserve > 0 {
            self.fail_with(COST_EXCEEDED);
            self.cel.refused = true;
            return Ending::Failed {
                depth: ForeachDepth::default(),
            };
        }
        ending
    }

    /// The text of the expression that exceeded a limit, if that ended the block.
    pub(crate) fn refused_expression(&self) -> Option<TextId> {
        self.cel.expression.filter(|_| self.cel.refused)
    }

    fn cel_fail(&mut self, error: FunctionError) -> Flow {
        match error {
            FunctionError::Failed(text) => self.fail(&text),
            FunctionError::Refused(_) => {
                self.cel.refused = true;
                self.fail_with(COST_EXCEEDED);
                Flow::End(Ending::Failed {
                    depth: ForeachDepth::default(),
                })
            }
        }
    }

    fn cel_set(&mut self, register: RegisterId, outcome: Result<NodeId, FunctionError>) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(error) => self.cel_fail(error),
        }
    }

    /// A field, unless a value must be built for it.
    pub(super) fn cel_select(
        &mut self,
        register: RegisterId,
        source: NodeId,
        key: SymbolId,
        scene: &Scene<'_>,
    ) -> Option<Flow> {
        let view = &scene.view;
        if view.kind(source) == Some(Kind::Map) {
            return Some(self.no_such_key(scene, key));
        }
        Some(match access::select(view, source, key) {
            Found::Value(found) => self.set(register, found),
            Found::NoSuchKey if view.kind(source) == Some(Kind::List) => self.no_fields(),
            Found::NoSuchKey => self.no_such_key(scene, key),
            Found::Optional(_) => return None,
        })
    }

    /// Builds the optional that a field of an optional is.
    pub(super) fn make_selected(
        &mut self,
        register: RegisterId,
        source: NodeId,
        key: SymbolId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let inner = match access::select(&setting.view(world), source, key) {
            Found::Optional(inner) => inner,
            Found::Value(_) | Found::NoSuchKey => None,
        };
        self.make_optional(register, inner, setting, world)
    }

    pub(super) fn make_optional(
        &mut self,
        register: RegisterId,
        inner: Option<NodeId>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.with_values(setting, world, |values| values.new_optional(inner));
        self.cel_set(register, outcome)
    }

    /// Fails for a list, which has no fields.
    pub(super) fn require_fields(&mut self, value: NodeId, view: &View<'_>) -> Flow {
        match view.kind(value) {
            Some(Kind::List) => self.no_fields(),
            _ => Flow::Next,
        }
    }

    /// The value of an optional, or another value itself; `None` if that is an error.
    pub(super) fn cel_unwrap(
        &mut self,
        register: RegisterId,
        source: NodeId,
        strict: bool,
        view: &View<'_>,
    ) -> Option<Flow> {
        Some(match view.extended(source) {
            Some(Extended::Optional(Some(inner))) => self.set(register, inner),
            Some(Extended::Optional(None)) => {
                self.put(register, NULL);
                Flow::Jump
            }
            _ if strict => return None,
            _ => self.set(register, source),
        })
    }

    /// Sets the error for the value in the register, which is not an optional.
    pub(super) fn refuse_unwrapped(
        &mut self,
        register: RegisterId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.new_error(setting, world, "no such overload");
        match self.cel_set(register, outcome) {
            Flow::Next => Flow::Jump,
            other => other,
        }
    }

    /// Calls a function of two arguments that builds no value; `None` if it may build one.
    #[inline]
    pub(super) fn cel_predicate(
        &mut self,
        register: RegisterId,
        function: Function,
        [left, right]: [NodeId; 2],
        view: &View<'_>,
    ) -> Option<Flow> {
        if function == Function::Index {
            return match access::find_index(view, left, right) {
                Ok(found) if !found.is_missing() && !is_optional(view, left) => {
                    Some(self.set(register, found))
                }
                _ => None,
            };
        }
        Some(
            match cel::predicate(function, left, right, view, &mut self.fuel)? {
                Ok(value) => self.set(register, boolean(value)),
                Err(error) => self.cel_fail(error),
            },
        )
    }

    pub(super) fn require_bool(&mut self, value: NodeId, view: &View<'_>) -> Flow {
        match view.bool(value) {
            Some(_) => Flow::Next,
            None => self.cel_fail(no_overload()),
        }
    }

    /// Continues with the error if the value is one.
    pub(super) fn raise(&mut self, value: NodeId, view: &View<'_>) -> Flow {
        match view.extended(value) {
            Some(Extended::Error(text)) => self.fail(view.piece_str(text)),
            _ => Flow::Next,
        }
    }

    /// A variable that has been computed already.
    #[inline]
    pub(super) fn known_cel_variable(
        &mut self,
        register: RegisterId,
        entry: EntryId,
        scene: &Scene<'_>,
    ) -> Option<Flow> {
        let record = scene.tables.entries.get(entry.index())?;
        let value = self.variable(SlotId(record.slot.get()))?;
        Some(match scene.view.extended(value) {
            Some(Extended::Error(text)) => self.fail(scene.view.piece_str(text)),
            _ => self.set(register, value),
        })
    }

    /// A root that need not be built.
    pub(super) fn known_root(
        &mut self,
        register: RegisterId,
        root: Root,
        request: &RequestFacts<'_>,
    ) -> Option<Flow> {
        let found = match root {
            Root::Object => request.object.unwrap_or(NULL),
            Root::OldObject => request.old_object.unwrap_or(NULL),
            Root::ObjectOrEmpty if request.object.is_some() => request.object?,
            Root::OldObjectOrEmpty if request.old_object.is_some() => request.old_object?,
            Root::Params => self.cel.params.unwrap_or(NULL),
            Root::Authorizer | Root::AuthorizerRequestResource => return None,
            Root::ObjectOrEmpty
            | Root::OldObjectOrEmpty
            | Root::Request
            | Root::Namespace
            | Root::FullRequest
            | Root::GivenNamespace
            | Root::Exceptions
            | Root::ResourceRequest
            | Root::LabelledNamespace => (*self.cel.roots.get(root as usize)?)?,
        };
        Some(self.set(register, found))
    }

    fn no_such_key(&mut self, scene: &Scene<'_>, key: SymbolId) -> Flow {
        let key = scene.tables.symbols.text(key);
        self.fail_with("no such key: ");
        self.failure_text.push_str(key);
        Flow::Jump
    }

    fn no_fields(&mut self) -> Flow {
        self.fail("unsupported index type 'string' in list")
    }

    /// Sets the register to the value at a static path of the object; returns whether there
    /// is one.
    #[inline]
    pub(super) fn finds_path(
        &mut self,
        register: RegisterId,
        path: PathId,
        scene: &Scene<'_>,
    ) -> bool {
        let found = match scene.request.object {
            Some(object) if object == scene.subject.root => self.load_path(path, scene),
            Some(object) => follow(path, object, scene),
            None => NodeId::MISSING,
        };
        self.holds(register, found)
    }

    /// The error for the first missing field of a path.
    #[cold]
    pub(super) fn no_such_path(&mut self, path: PathId, scene: &Scene<'_>) -> Flow {
        let mut value = scene.request.object.unwrap_or(NULL);
        for key in keys_of(path, scene) {
            value = match scene.view.kind(value) {
                Some(Kind::List) => return self.no_fields(),
                _ => scene.view.get(value, key),
            };
            if value.is_missing() {
                return self.no_such_key(scene, key);
            }
        }
        Flow::End(Ending::OutOfFuel)
    }

    /// Whether a field is present; if so the register is set to it.
    #[inline]
    pub(super) fn cel_has(
        &mut self,
        register: RegisterId,
        source: NodeId,
        key: SymbolId,
        scene: &Scene<'_>,
    ) -> Has {
        let view = &scene.view;
        let found = match view.kind(source) {
            Some(Kind::Map) => view.get(source, key),
            Some(Kind::List) => return Has::Known(Err(self.no_fields())),
            _ => match access::select(view, source, key) {
                Found::Value(found) => found,
                Found::NoSuchKey | Found::Optional(None) => return Has::Known(Ok(false)),
                Found::Optional(Some(_)) => return Has::Optional,
            },
        };
        Has::Known(Ok(self.holds(register, found)))
    }

    /// Like [`Machine::cel_has`]; with `unwrap`, for the value of an optional.
    #[inline]
    pub(super) fn cel_find(
        &mut self,
        register: RegisterId,
        mut source: NodeId,
        unwrap: bool,
        key: SymbolId,
        scene: &Scene<'_>,
    ) -> Tested {
        let view = &scene.view;
        let found = match view.kind(source) {
            Some(Kind::Map) => view.get(source, key),
            _ => {
                if let Some(Extended::Optional(inner)) = view.extended(source)
                    && unwrap
                {
                    source = inner.unwrap_or(NodeId::MISSING);
                }
                if view.kind(source) == Some(Kind::List) {
                    return Err(self.no_fields());
                }
                access::find(view, source, key)
            }
        };
        Ok(self.holds(register, found))
    }

    /// Whether a comparison with a constant is true.
    #[inline]
    pub(super) fn cel_compare(
        &mut self,
        value: NodeId,
        function: Function,
        constant: ConstantId,
        is_left: bool,
        scene: &Scene<'_>,
    ) -> Tested {
        let view = &scene.view;
        let Some(constant) = scene.tables.constants.get(constant.index()) else {
            return Err(Flow::End(Ending::OutOfFuel));
        };
        // Most constants are texts, and so are most values compared with them.
        if constant.kind == ConstantKind::String as u8 && view.kind(value) == Some(Kind::String) {
            let text = view.text(value);
            let constant = scene.tables.text(constant.text).as_bytes();
            match function {
                Function::Equal => return Ok(text == constant),
                Function::NotEqual => return Ok(text != constant),
                Function::StartsWith if !is_left => return Ok(text.starts_with(constant)),
                Function::EndsWith if !is_left => return Ok(text.ends_with(constant)),
                _ => {}
            }
        }
        match compare(function, value, constant, is_left, scene, &mut self.fuel) {
            Some(Ok(holds)) => Ok(holds),
            Some(Err(error)) => Err(self.cel_fail(error)),
            None => Err(Flow::End(Ending::OutOfFuel)),
        }
    }

    /// Whether a value, which must be a boolean, is true.
    #[inline]
    pub(super) fn cel_truth(&mut self, value: NodeId, view: &View<'_>) -> Tested {
        view.bool(value).ok_or_else(|| self.cel_fail(no_overload()))
    }

    pub(super) fn cel_call_with_list(
        &mut self,
        register: RegisterId,
        list: ListSlot,
        function: Function,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let arguments = std::mem::take(self.list(list));
        let flow = self.cel_call(register, function, &arguments, setting, world);
        *self.list(list) = arguments;
        flow
    }

    pub(super) fn make_range(
        &mut self,
        register: RegisterId,
        source: NodeId,
        over: RangeOver,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let indices = over == RangeOver::Indices;
        let outcome = self.with_values(setting, world, |values| {
            access::range(values, source, indices)
        });
        self.cel_set(register, outcome)
    }

    /// A map from alternating keys and values; with `joined`, from the members of several
    /// maps.
    pub(super) fn end_cel_map(
        &mut self,
        register: RegisterId,
        list: ListSlot,
        joined: bool,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let pairs = std::mem::take(self.list(list));
        let outcome = self.with_values(setting, world, |values| {
            access::make_map(values, &pairs, joined)
        });
        *self.list(list) = pairs;
        self.cel_set(register, outcome)
    }

    pub(super) fn extend_with_members(
        &mut self,
        list: ListSlot,
        map: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match self.with_values(setting, world, |values| access::pairs(values, map)) {
            Ok(pairs) => {
                self.list(list).extend(pairs);
                Flow::Next
            }
            Err(error) => self.cel_fail(error),
        }
    }

    pub(super) fn push_optional(
        &mut self,
        list: ListSlot,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match setting.view(world).extended(value) {
            Some(Extended::Optional(inner)) => {
                self.list(list).extend(inner);
                Flow::Next
            }
            _ => self.cel_fail(no_overload()),
        }
    }

    /// Turns the error into a value.
    pub(super) fn catch_error(
        &mut self,
        register: RegisterId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let text = std::mem::take(&mut self.failure_text);
        let outcome = self.new_error(setting, world, &text);
        self.failure_text = text;
        self.cel_set(register, outcome)
    }

    /// Continues with the errors in a list, if any.
    pub(super) fn raise_all(
        &mut self,
        list: ListSlot,
        form: ErrorList,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let errors = std::mem::take(self.list(list));
        let view = setting.view(world);
        let mut texts: Vec<&str> = Vec::new();
        for &error in &errors {
            if let Some(Extended::Error(text)) = view.extended(error) {
                let text = view.piece_str(text);
                if form == ErrorList::Joined || !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        let flow = match (texts.as_slice(), form) {
            ([], _) => Flow::Next,
            ([only], _) => self.fail(only),
            (several, ErrorList::Joined) => self.fail(&several.join("; ")),
            (several, ErrorList::Distinct) => self.fail(&format!("[{}]", several.join(", "))),
        };
        *self.list(list) = errors;
        flow
    }

    /// Binds `params`; variables are computed again.
    pub(super) fn bind_params(&mut self, value: NodeId) {
        self.cel.params = Some(value);
        self.forget_variables();
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

    pub(super) fn cel_call(
        &mut self,
        register: RegisterId,
        function: Function,
        arguments: &[NodeId],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.with_values(setting, world, |values| {
            cel::call(function, arguments, values)
        });
        self.cel_set(register, outcome)
    }

    /// A variable of the rule: computed once, including its error (docs/spec/cel.md §2.5).
    pub(super) fn cel_variable(
        &mut self,
        register: RegisterId,
        entry: EntryId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(record) = setting.tables.entries.get(entry.index()) else {
            return Flow::End(Ending::OutOfFuel);
        };
        let slot = SlotId(record.slot.get());
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
            Some(Extended::Error(text)) => self.fail(view.piece_str(text)),
            _ => self.set(register, value),
        }
    }

    /// Sets the exceptions that apply to the rule that is about to run.
    pub(crate) fn set_exceptions(&mut self, numbers: &[u32]) {
        self.cel.exceptions.clear();
        self.cel.exceptions.extend(numbers);
        if let Some(known) = self.cel.roots.get_mut(Root::Exceptions as usize) {
            *known = None;
        }
    }

    /// Builds a root when it is first needed.
    pub(super) fn make_root(
        &mut self,
        register: RegisterId,
        kind: Root,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
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
fn keys_of(path: PathId, scene: &Scene<'_>) -> SmallVec<[SymbolId; 8]> {
    let mut keys = SmallVec::new();
    let mut next = path.0;
    // INVARIANT: parents have smaller numbers, and the verifier bounds the depth.
    while let Some(entry) = scene.tables.paths.get(next as usize) {
        keys.push(SymbolId(entry.symbol.get()));
        next = entry.parent.get();
    }
    keys.reverse();
    keys
}

/// The value at a static path of a value.
fn follow(path: PathId, value: NodeId, scene: &Scene<'_>) -> NodeId {
    let keys = keys_of(path, scene);
    keys.into_iter()
        .fold(value, |value, key| scene.view.get(value, key))
}

/// Compares a value with a constant; `None` if there are not enough steps, or no code is
/// generated for this kind of constant.
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
            // A comparison that is an error finds nothing.
            let item = scalar(item, tables)?;
            let is_equal = cel::scalar_predicate(Function::Equal, &looked, &item, fuel)?;
            if is_equal.unwrap_or(false) {
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

/// The value of a constant that is neither a container nor must be built.
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

pub(super) fn is_error(view: &View<'_>, id: NodeId) -> bool {
    matches!(view.extended(id), Some(Extended::Error(_)))
}

/// Whether a value can be a message at all.
pub(super) fn is_message(view: &View<'_>, value: NodeId, form: MessageForm) -> bool {
    let is_text = view.kind(value) == Some(Kind::String);
    match form {
        MessageForm::NotEmpty => !is_text || !view.text(value).is_empty(),
        MessageForm::Kubernetes => {
            let text = view.str(value).trim();
            is_text && !text.is_empty() && text.len() <= 5120 && !text.contains('\n')
        }
    }
}
