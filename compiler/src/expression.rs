//! Expressions by themselves, for `kpc jp` and for programs with expressions of their
//! own: texts in, a bundle without rules out, which
//! [`kpvm::engine::ExpressionSession`] runs.
//!
//! ```
//! use kpvm::document::Numbers;
//! use kpvm::engine::{Bundle, ExpressionSession};
//! use kpvm_compiler::expression::compile_expression;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = Bundle::load(compile_expression("length(spec.containers)")?)?;
//! let mut session = ExpressionSession::new(&bundle);
//! let pod = serde_json::json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
//! session.set_input(&pod, Numbers::Float)?;
//! assert_eq!(session.evaluate(0)?.to_value()?, 2.0);
//! # Ok(())
//! # }
//! ```

use kpvm_format::BundleBuilder;
use kpvm_format::instruction::immediate::ForeachDepth;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::jmespath::SyntaxError;
use kpvm_syntax::tree::Tree;

use crate::emit::{self, CodegenError, TooBig};
use crate::frontend::emitter::Emitter;
use crate::frontend::expression::Current;
use crate::frontend::scope::Scope;
use crate::frontend::{cel, context};
use crate::ir::{Block, Label, Module, Operation, Register};
use crate::lower::add_loaders;
use crate::passes;
use crate::source::{SourceId, Sources};
use kpvm_syntax::jmespath;

/// Why there is no bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The text is not an expression.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The expression needs more than the machine has.
    #[error(transparent)]
    TooBig(#[from] CodegenError),
    /// A context entry has no source.
    #[error("{0}")]
    Entry(String),
}

/// Compiles one expression over a value: its names are keys of the value, `@` is the
/// value itself.
///
/// # Errors
/// An [`ExpressionError`]; the text of a syntax error is Kyverno's.
pub fn compile_expression(text: &str) -> Result<Vec<u8>, ExpressionError> {
    let expression = jmespath::parse(text)?;
    compile(|module| {
        let block = value_block(Scope::default(), module, |emitter, failed| {
            let over = Current::Value(Register::SUBJECT);
            emitter.expression(&expression, over, failed, false)
        });
        module.add(block);
        Ok(())
    })
}

/// Why a CEL expression has no bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CelError {
    /// The text is not CEL, or has a type error; each error comes with its place.
    #[error("{}", cel::render_errors(.text, .errors))]
    Invalid {
        /// The text.
        text: String,
        /// The errors.
        errors: Vec<cel::TypeError>,
    },
    /// The expression needs more than the machine has.
    #[error(transparent)]
    TooBig(#[from] CodegenError),
}

/// Compiles one CEL expression over a map of variables.
///
/// # Errors
/// A [`CelError`]; its text is cel-go's.
pub fn compile_cel(text: &str, environment: &cel::Environment) -> Result<Vec<u8>, CelError> {
    let program = cel::compile(text, environment).map_err(|errors| CelError::Invalid {
        text: text.to_owned(),
        errors,
    })?;
    compile_program(text, &program)
}

/// Compiles a CEL expression without checking types: type errors show when it runs.
///
/// # Errors
/// Like [`compile_cel`], but for syntax only.
pub fn compile_cel_unchecked(
    text: &str,
    environment: &cel::Environment,
) -> Result<Vec<u8>, CelError> {
    let program = cel::compile_unchecked(text, environment).map_err(|error| CelError::Invalid {
        text: text.to_owned(),
        errors: vec![error.into()],
    })?;
    compile_program(text, &program)
}

fn compile_program(text: &str, program: &cel::Program) -> Result<Vec<u8>, CelError> {
    let mut module = Module::new(Limits::DEFAULT);
    let block = value_block(Scope::default(), &mut module, |emitter, failed| {
        let text = emitter.module.text(text);
        emitter.block.push(Operation::CelBegin { text });
        cel::lower::lower(program, &cel::lower::Bindings::default(), emitter, failed)
    });
    module.add(block);
    Ok(finish(module, &Sources::new())?.finish())
}

/// Compiles documents with `$( )` and `{{ }}`, over a context: the value's members
/// (`request` among them) and these context entries, which are loaded like a rule's
/// (docs/spec/conditions.md §4, §5 and §8). Documents are numbered from 0.
///
/// # Errors
/// An [`ExpressionError`]. A text in a document that is not an expression is an error at
/// evaluation.
pub fn compile_documents(entries: &[Tree], documents: &[Tree]) -> Result<Vec<u8>, ExpressionError> {
    compile(|module| {
        let mut scope = Scope::default();
        scope.rewrites_delete = true;
        let entries = context::lower_entries(entries, SourceId(0), false, &mut scope, module)
            .map_err(|error| ExpressionError::Entry(error.message))?;
        for document in documents {
            let block = value_block(scope.clone(), module, |emitter, failed| {
                emitter.document(document, failed)
            });
            module.add(block);
        }
        add_loaders(entries.loaders, module);
        Ok(())
    })
}

fn compile(
    lower: impl FnOnce(&mut Module) -> Result<(), ExpressionError>,
) -> Result<Vec<u8>, ExpressionError> {
    // Context entries have places, if only in a text that is not kept.
    const FILE: &str = "<expression>";
    let mut sources = Sources::new();
    sources.add(FILE, "");
    let mut module = Module::new(Limits::DEFAULT);
    lower(&mut module)?;
    let mut bundle = finish(module, &sources)?;
    bundle.meta.sources.push(FILE.into());
    Ok(bundle.finish())
}

fn finish(mut module: Module, sources: &Sources) -> Result<BundleBuilder, CodegenError> {
    passes::optimise(&mut module);
    let mut bundle = BundleBuilder::new();
    if let Err(blocks) = emit::emit(&module, sources, &mut bundle)
        && let Some(TooBig { error, .. }) = blocks.first()
    {
        return Err(*error);
    }
    Ok(bundle)
}

/// A block that returns the value that `compute` computes.
fn value_block(
    scope: Scope,
    module: &mut Module,
    compute: impl FnOnce(&mut Emitter<'_>, Label) -> Register,
) -> Block {
    let mut emitter = Emitter::new(SourceId(0), scope, module);
    let failed = emitter.block.label();
    let value = compute(&mut emitter, failed);
    emitter.block.push(Operation::ReturnValue { src: value });
    emitter.flush_cold();
    emitter.block.place(failed);
    emitter.block.push(Operation::ReturnFailed {
        depth: ForeachDepth(0),
    });
    emitter.block
}
