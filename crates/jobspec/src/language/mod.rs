//! HCL as a language: what expressions and templates are worth.
//!
//! The syntax tree comes from `hcl-edit`, which keeps the place of every node. Evaluation is done
//! here rather than by `hcl-rs`, for three reasons: names that only the node knows
//! (`${attr.kernel.name}`) must survive it as text, every error has to point at its place, and
//! arithmetic on a user's numbers must not panic.

pub(crate) mod eval;
pub(crate) mod functions;
pub(crate) mod meter;
pub(crate) mod operators;
pub(crate) mod references;
pub(crate) mod scan;
pub(crate) mod scope;
pub(crate) mod syntax;
mod template;
mod traversal;
pub(crate) mod value;

pub(crate) use self::eval::Evaluator;
pub(crate) use self::scope::Scope;
pub(crate) use self::value::Value;
