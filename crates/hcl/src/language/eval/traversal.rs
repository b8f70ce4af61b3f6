//! Traversals of values: `var.ports[0].name`, `local.groups[*].name`.

use hcl_edit::Decorated;
use hcl_edit::Span;
use hcl_edit::expr::{Expression, Traversal, TraversalOperator};

use super::Evaluator;
use crate::language::scope::Scope;
use crate::language::value::{Value, to_number, to_text, type_name, whole};
use crate::source::Fault;
use suggest::{hint, list};

/// Maximum number of `[*]` in a reference: each is a level of recursion.
const MAX_SPLATS: usize = 16;

/// Maximum number of keys in a message.
const MAX_KEYS_LISTED: usize = 12;

impl Evaluator<'_> {
    pub(super) fn traversal(
        &self,
        traversal: &Traversal,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let operators = &traversal.operators;
        let is_splat = |operator: &&Decorated<TraversalOperator>| {
            matches!(
                operator.value(),
                TraversalOperator::FullSplat(_) | TraversalOperator::AttrSplat(_)
            )
        };
        if operators.iter().filter(is_splat).count() > MAX_SPLATS {
            let detail = format!("A reference may have {MAX_SPLATS} [*]: use flatten");
            let range = traversal.span().unwrap_or(0..0);
            return Err(Fault::new(range, "Evaluation too large", detail));
        }
        let Expression::Variable(root) = &traversal.expr else {
            let value = self.eval(&traversal.expr, scope)?;
            return self.walk(traversal, &value, operators, scope);
        };
        match scope.lookup(root.as_str()) {
            Some(value) => self.walk(traversal, value, operators, scope),
            None => {
                let range = traversal.span();
                self.unknown_name(self.written(range.clone().unwrap_or(0..0)), range)
            }
        }
    }

    /// Applies `operators` to `value`, and copies only the result.
    fn walk(
        &self,
        traversal: &Traversal,
        value: &Value,
        operators: &[Decorated<TraversalOperator>],
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let mut current = value;
        for (position, operator) in operators.iter().enumerate() {
            let rest = &operators[position + 1..];
            current = match operator.value() {
                TraversalOperator::GetAttr(name) => attribute(traversal, operator, current, name)?,
                TraversalOperator::LegacyIndex(index) => {
                    element(traversal, operator, current, &Value::from(*index.value()))?
                }
                TraversalOperator::Index(index) => {
                    let index = self.eval(index, scope)?;
                    element(traversal, operator, current, &index)?
                }
                TraversalOperator::FullSplat(_) => {
                    return self.splat(traversal, current, rest, scope);
                }
                TraversalOperator::AttrSplat(_) => {
                    let attributes = rest
                        .iter()
                        .take_while(|op| matches!(op.value(), TraversalOperator::GetAttr(_)))
                        .count();
                    let (each, after) = rest.split_at(attributes);
                    let items = self.splat(traversal, current, each, scope)?;
                    return self.walk(traversal, &items, after, scope);
                }
            };
        }
        self.step(traversal, self.host.meter.copy(current))?;
        Ok(current.clone())
    }

    /// Applies `operators` to each item of a list; a single value counts as a list of one.
    fn splat(
        &self,
        traversal: &Traversal,
        value: &Value,
        operators: &[Decorated<TraversalOperator>],
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let items = match value {
            Value::Null => &[],
            Value::Array(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            self.step(traversal, self.host.meter.step())?;
            results.push(self.walk(traversal, item, operators, scope)?);
        }
        Ok(Value::Array(results))
    }

    fn step(&self, traversal: &Traversal, paid: Result<(), &'static str>) -> Result<(), Fault> {
        paid.map_err(|detail| {
            Fault::new(
                traversal.span().unwrap_or(0..0),
                "Evaluation too large",
                detail,
            )
        })
    }
}

fn attribute<'v>(
    traversal: &Traversal,
    operator: &Decorated<TraversalOperator>,
    value: &'v Value,
    name: &str,
) -> Result<&'v Value, Fault> {
    let Value::Object(entries) = value else {
        let detail = match value {
            Value::Array(_) => format!(
                "a list has no attribute {name:?}: choose an element, [0], or all of them, [*]",
            ),
            other => format!("{} has no attribute {name:?}", type_name(other)),
        };
        return Err(fault(traversal, operator, "Unsupported attribute", detail));
    };
    entries.get(name).ok_or_else(|| {
        let detail = format!(
            "This object does not have an attribute named {name:?}.{}",
            keys_hint(name, entries),
        );
        fault(traversal, operator, "Unsupported attribute", detail)
    })
}

fn element<'v>(
    traversal: &Traversal,
    operator: &Decorated<TraversalOperator>,
    value: &'v Value,
    index: &Value,
) -> Result<&'v Value, Fault> {
    let (found, detail) = match value {
        Value::Array(items) => {
            let position = to_number(index).as_ref().and_then(whole);
            let found = position.and_then(|position| items.get(usize::try_from(position).ok()?));
            let shown = to_text(index).unwrap_or_else(|| type_name(index).to_owned());
            (
                found,
                format!(
                    "the list has {} elements, counted from 0, and none is [{shown}]",
                    items.len()
                ),
            )
        }
        Value::Object(entries) => {
            let key = to_text(index).unwrap_or_default();
            (
                entries.get(&key),
                format!("there is no key {key:?}.{}", keys_hint(&key, entries)),
            )
        }
        other => (
            None,
            format!("{} has no elements to choose from", type_name(other)),
        ),
    };
    found.ok_or_else(|| fault(traversal, operator, "Invalid index", detail))
}

fn keys_hint(wrong: &str, entries: &serde_json::Map<String, Value>) -> String {
    let keys = || entries.keys().map(String::as_str);
    let listed = if entries.is_empty() {
        " It is empty.".to_owned()
    } else if entries.len() <= MAX_KEYS_LISTED {
        format!(" It has {}.", list(keys(), "and"))
    } else {
        String::new()
    };
    format!("{}{listed}", hint(wrong, keys()))
}

fn fault(
    traversal: &Traversal,
    operator: &Decorated<TraversalOperator>,
    summary: &str,
    detail: String,
) -> Fault {
    let whole = traversal.span().unwrap_or(0..0);
    // Underlines up to the failing step.
    let end = operator.span().map_or(whole.end, |range| range.end);
    Fault::new(whole.start..end, summary, detail)
}
