//! The syntax tree of a template. Positions are byte offsets in the source.

use std::collections::BTreeMap;

/// The trees of a template: its own, and those that it defines by name.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    pub(crate) root: Nodes,
    pub(crate) defined: BTreeMap<Box<str>, Nodes>,
}

/// Nodes in the order of the source.
pub(crate) type Nodes = Vec<Node>;

#[derive(Debug)]
pub(crate) enum Node {
    Text(Box<str>),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    /// `{{ template "name" pipeline }}`
    Template {
        at: usize,
        name: Box<str>,
        argument: Option<Pipe>,
    },
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Nodes,
    pub(crate) otherwise: Nodes,
}

/// Commands, each of which gets the result of the one before it as its last argument.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) at: usize,
    /// Variables that take the result: one, or two in a `range`.
    pub(crate) variables: Vec<Box<str>>,
    /// `=` instead of `:=`.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// A value alone, or a function or method with its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) at: usize,
    pub(crate) first: Operand,
    pub(crate) arguments: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) at: usize,
    pub(crate) term: Term,
    /// `.a.b` behind the term.
    pub(crate) fields: Vec<Box<str>>,
}

#[derive(Debug)]
pub(crate) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(Box<str>),
    /// With its `$`; the variable `$` is the template's data.
    Variable(Box<str>),
    Function(Box<str>),
    Pipe(Box<Pipe>),
}
