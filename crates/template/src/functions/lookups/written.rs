//! Look-ups that a template names, found in its trees before it is rendered.

use std::collections::BTreeSet;

use super::{FUNCTIONS, read_variable_path};
use crate::source::VariablePath;
use crate::syntax::{Command, Node, Nodes, Operand, Pipe, Term, Trees};

/// Functions that wait for a variable.
const OF_VARIABLES: [&str; 2] = ["nomadVar", "nomadVarExists"];

/// The look-up functions that the trees call.
pub(crate) fn in_trees(trees: &Trees) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    each_command(trees, &mut |command| {
        for operand in operands(command) {
            if let Term::Function(name) = &operand.term {
                let mut known = FUNCTIONS.iter().map(|function| function.name);
                found.extend(known.find(|known| **known == **name));
            }
        }
    });
    found
}

/// The variables whose paths are written as texts; parts of a path that are not written are empty.
pub(crate) fn variables_in_trees(trees: &Trees) -> BTreeSet<VariablePath> {
    let mut found = BTreeSet::new();
    each_command(trees, &mut |command| {
        if let Term::Function(name) = &command.first.term
            && OF_VARIABLES.contains(&&**name)
            && let [argument] = &*command.arguments
            && let Term::Text(path) = &argument.term
        {
            found.insert(read_variable_path(path));
        }
    });
    found
}

fn operands(command: &Command) -> impl Iterator<Item = &Operand> {
    std::iter::once(&command.first).chain(&command.arguments)
}

fn each_command(trees: &Trees, visit: &mut impl FnMut(&Command)) {
    for nodes in std::iter::once(&trees.root).chain(trees.defined.values()) {
        in_nodes(nodes, visit);
    }
}

fn in_nodes(nodes: &Nodes, visit: &mut impl FnMut(&Command)) {
    for node in nodes {
        match node {
            Node::Action(pipe) => in_pipe(pipe, visit),
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                in_pipe(&branch.pipe, visit);
                in_nodes(&branch.body, visit);
                in_nodes(&branch.otherwise, visit);
            }
            Node::Template {
                argument: Some(pipe),
                ..
            } => in_pipe(pipe, visit),
            Node::Template { .. } | Node::Text(_) | Node::Break | Node::Continue => {}
        }
    }
}

fn in_pipe(pipe: &Pipe, visit: &mut impl FnMut(&Command)) {
    for command in &pipe.commands {
        visit(command);
        for operand in operands(command) {
            if let Term::Pipe(pipe) = &operand.term {
                in_pipe(pipe, visit);
            }
        }
    }
}
