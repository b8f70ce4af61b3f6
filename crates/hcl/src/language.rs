//! The HCL language: evaluation of expressions and templates.
//!
//! `hcl-edit` provides the syntax tree with positions. Evaluation does not use `hcl-rs` for three
//! reasons: runtime names (`${attr.kernel.name}`) must survive as text, every error needs its
//! position, and arithmetic on user input must not panic.

pub(crate) mod eval;
pub(crate) mod functions;
pub(crate) mod meter;
pub(crate) mod operators;
pub(crate) mod references;
pub(crate) mod scan;
pub(crate) mod scope;
pub(crate) mod syntax;
pub(crate) mod types;
pub(crate) mod value;

pub(crate) use self::eval::Evaluator;
pub(crate) use self::scope::Scope;
pub(crate) use self::value::Value;
