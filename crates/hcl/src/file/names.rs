//! Names of variables, locals and functions in a file, checked before anything is evaluated.

use std::collections::BTreeSet;

use crate::collector::Collector;
use crate::document::{Content, Expr};
use crate::language::functions;
use crate::language::references::{Kind, Reference};
use crate::source::Fault;
use suggest::{hint, list};

/// Maximum number of declared names in a message.
const MAX_NAMES_LISTED: usize = 12;

/// The names available to expressions.
pub(super) struct Names<'a> {
    pub(super) variables: BTreeSet<&'a str>,
    pub(super) locals: BTreeSet<&'a str>,
}

impl Names<'_> {
    pub(super) fn check_block(&self, content: Content<'_>, out: &mut Collector) {
        // All nested references count, so JSON needs no schema here.
        let Ok(items) = content.items(&|_| None) else {
            return;
        };
        for attribute in &items.attributes {
            self.check(&attribute.expr, out);
        }
        for block in &items.blocks {
            self.check_block(block.content, out);
        }
    }

    pub(super) fn check(&self, expr: &Expr<'_>, out: &mut Collector) {
        for reference in expr.references() {
            if let Some((summary, detail)) = self.problem(&reference) {
                out.fault(Fault::new(reference.range, summary, detail));
            }
        }
    }

    fn problem(&self, reference: &Reference) -> Option<(&'static str, String)> {
        let name = reference.name.as_str();
        match reference.kind {
            Kind::Function => functions::problem(name),
            Kind::Variable if !self.variables.contains(name) => {
                let detail = format!(
                    "There is no variable named {name:?}.{} Declare it with variable {name:?} {{ }}",
                    declared(name, &self.variables),
                );
                Some(("Unknown variable", detail))
            }
            Kind::Local if !self.locals.contains(name) => {
                let detail = format!(
                    "There is no local named {name:?}.{} Define it with locals {{ {name} = … }}",
                    declared(name, &self.locals),
                );
                Some(("Unknown local", detail))
            }
            Kind::Shadowing => {
                let detail = format!(
                    "A loop's name may not be {name:?}, it would hide the values of that name: rename it"
                );
                Some(("Reserved name", detail))
            }
            Kind::Variable | Kind::Local => None,
        }
    }
}

fn declared(wrong: &str, names: &BTreeSet<&str>) -> String {
    let hint = hint(wrong, names.iter().copied());
    if names.is_empty() || names.len() > MAX_NAMES_LISTED {
        return hint;
    }
    format!(
        "{hint} Declared here: {}.",
        list(names.iter().copied(), "and")
    )
}
