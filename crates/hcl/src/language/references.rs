//! References of an expression to variables, locals and functions, without evaluation.
//!
//! They make a misspelt name an error even in a skipped branch, and give the order of locals.

use std::ops::Range;

use hcl_edit::expr::{Expression, ForExpr, FuncCall, Traversal, TraversalOperator};
use hcl_edit::template::{ForDirective, Template};
use hcl_edit::visit::{
    Visit, visit_for_directive, visit_for_expr, visit_func_call, visit_traversal,
};
use hcl_edit::{Decorated, Ident, Span};

/// One reference and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Variable,
    Local,
    Function,
    /// A loop variable named `var` or `local`, which would hide the global names.
    Shadowing,
}

impl Kind {
    /// Tells whether it refers to a value of the file.
    pub(crate) fn is_name(self) -> bool {
        matches!(self, Self::Variable | Self::Local)
    }
}

pub(crate) fn of_expression(expression: &Expression) -> Vec<Reference> {
    let mut finder = Finder::default();
    finder.visit_expr(expression);
    finder.found
}

pub(crate) fn of_template(template: &Template) -> Vec<Reference> {
    let mut finder = Finder::default();
    finder.visit_template(template);
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Vec<Reference>,
}

impl Finder {
    fn add(&mut self, kind: Kind, name: &str, range: Option<Range<usize>>) {
        let range = range.unwrap_or(0..0);
        self.found.push(Reference {
            kind,
            name: name.to_owned(),
            range,
        });
    }

    fn loop_name(&mut self, name: &Decorated<Ident>) {
        if matches!(name.as_str(), "var" | "local") {
            self.add(Kind::Shadowing, name.as_str(), name.span());
        }
    }
}

impl Visit for Finder {
    fn visit_traversal(&mut self, node: &Traversal) {
        if let Expression::Variable(root) = &node.expr
            && let Some(first) = node.operators.first()
            && let TraversalOperator::GetAttr(name) = first.value()
        {
            let end = first.span().map_or(0, |range| range.end);
            let range = node.span().map(|range| range.start..end.max(range.start));
            match root.as_str() {
                "var" => self.add(Kind::Variable, name.as_str(), range),
                "local" => self.add(Kind::Local, name.as_str(), range),
                _ => {}
            }
        }
        visit_traversal(self, node);
    }

    fn visit_func_call(&mut self, node: &FuncCall) {
        let name = &node.name;
        let mut full = String::new();
        for part in &name.namespace {
            full.push_str(part.as_str());
            full.push_str("::");
        }
        full.push_str(name.name.as_str());
        self.add(Kind::Function, &full, name.name.span());
        // The second argument of convert is a type: list(string) is no call.
        if full == "convert" && node.args.len() == 2 {
            if let Some(value) = node.args.get(0) {
                self.visit_expr(value);
            }
            return;
        }
        visit_func_call(self, node);
    }

    fn visit_for_expr(&mut self, node: &ForExpr) {
        self.loop_name(&node.intro.value_var);
        if let Some(name) = &node.intro.key_var {
            self.loop_name(name);
        }
        visit_for_expr(self, node);
    }

    fn visit_for_directive(&mut self, node: &ForDirective) {
        self.loop_name(&node.for_expr.value_var);
        if let Some(name) = &node.for_expr.key_var {
            self.loop_name(name);
        }
        visit_for_directive(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_hide() {
        let text = r#"[for v in var.list : "${upper(local.a)}%{ if var.b }x%{ endif }" if f(v)]"#;
        let expression = text.parse::<Expression>().unwrap();
        let found: Vec<_> = of_expression(&expression)
            .into_iter()
            .map(|reference| (reference.kind, reference.name))
            .collect();
        let expected = [
            (Kind::Variable, "list"),
            (Kind::Function, "upper"),
            (Kind::Local, "a"),
            (Kind::Variable, "b"),
            (Kind::Function, "f"),
        ];
        for (kind, name) in expected {
            assert!(
                found.contains(&(kind, name.to_owned())),
                "{name} in {found:?}"
            );
        }
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn a_loop_may_not_hide_the_variables() {
        let expression = "[for var in x : var]".parse::<Expression>().unwrap();
        assert_eq!(of_expression(&expression)[0].kind, Kind::Shadowing);
    }
}
