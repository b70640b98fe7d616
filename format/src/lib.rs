//! The bundle format: everything that the compiler and the runtime agree on.
//!
//! - [`instruction`]: the instruction set, defined once.
//! - [`table`]: the fixed-size records that instructions refer to.
//! - [`function`]: the functions that instructions call, numbered.
//! - [`signature`]: what these functions take.
//! - [`cel`]: the functions of CEL, with their overloads.
//! - [`symbol`]: the map keys that rules look up, numbered.
//! - [`condition`]: the operators of conditions.
//! - [`index`]: from an object to the rules worth trying.
//! - [`outside`]: what rules ask of the program that runs them.
//! - [`plan`]: what the rules for a kind demand and read, derived by the compiler.
//! - [`site`]: what instructions look at, packed.
//! - [`bundle`]: the file: sections, digest, loading, writing.
//! - [`disassemble`]: a bundle as text for people.
//!
//! Nothing in this crate reads files, starts threads, looks at a clock or draws
//! random numbers. Every byte of a bundle is checked once at load.

mod builder;
pub mod bundle;
pub mod cel;
mod code;
pub mod condition;
pub mod criterion;
pub mod disassemble;
pub mod function;
pub mod index;
pub mod instruction;
mod lookup;
pub mod meta;
pub mod outside;
pub mod plan;
mod sections;
mod share;
pub mod signature;
pub mod site;
pub mod symbol;
pub mod table;
mod varint;
mod verify;

pub use builder::BundleBuilder;
pub use bundle::{Bundle, FORMAT_VERSION, LoadError};
pub use sections::Tables;
pub use verify::{MAX_LOOP_DEPTH, VerifyError};
