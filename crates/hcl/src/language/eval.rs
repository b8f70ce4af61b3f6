//! Evaluation of expressions.

mod call;
mod template;
mod traversal;

use std::ops::Range;
use std::sync::Arc;

use hcl_edit::Span;
use hcl_edit::expr::{
    BinaryOp, BinaryOperator, Conditional, Expression, ForExpr, Object, ObjectKey,
};
use serde_json::Map;

use super::meter::{Exhausted, Meter};
use super::operators;
use super::scope::Scope;
use super::value::{Value, elements, float, runtime_hint, to_text, type_name};
use crate::inputs::Files;
use crate::source::Fault;

/// State shared by all expressions of a file.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) meter: Meter,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) unknown_names: UnknownNames,
}

/// The value of a name that the scope does not have, such as `attr.kernel.name`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnknownNames {
    /// The text `${attr.kernel.name}`, for the node to replace.
    #[default]
    Keep,
    /// An error.
    Refuse,
}

/// Evaluates expressions of one text.
#[derive(Clone, Copy)]
pub(crate) struct Evaluator<'a> {
    /// The text of the syntax tree.
    pub(super) text: &'a str,
    pub(super) host: &'a Host,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(text: &'a str, host: &'a Host) -> Self {
        Self { text, host }
    }

    /// Returns the value of `expression`. [`UnknownNames`] decides about names that are not in `scope`.
    ///
    /// The recursion is as deep as the syntax tree, which the parser bounds.
    pub(crate) fn eval(&self, expression: &Expression, scope: &Scope<'_>) -> Result<Value, Fault> {
        self.pay(expression, self.host.meter.step())?;
        match expression {
            Expression::Null(_) => Ok(Value::Null),
            Expression::Bool(flag) => Ok(Value::Bool(*flag.value())),
            Expression::Number(number) => Ok(number_value(number.value())),
            Expression::String(text) => {
                self.pay(expression, self.host.meter.grow(text.len()))?;
                Ok(Value::String(text.value().to_string()))
            }
            Expression::Array(items) => {
                let items: Result<_, _> = items.iter().map(|item| self.eval(item, scope)).collect();
                Ok(Value::Array(items?))
            }
            Expression::Object(object) => self.object(object, scope),
            Expression::StringTemplate(template) => {
                let elements: Vec<_> = template.iter().collect();
                self.template(&elements, scope)
            }
            Expression::HeredocTemplate(heredoc) => {
                let elements: Vec<_> = heredoc.template.iter().collect();
                self.template(&elements, scope)
            }
            Expression::Parenthesis(inner) => self.eval(inner.inner(), scope),
            Expression::Variable(name) => match scope.lookup(name.as_str()) {
                Some(value) => self.copy(expression, value),
                None => self.unknown_name(name.as_str(), expression.span()),
            },
            Expression::Traversal(traversal) => self.traversal(traversal, scope),
            Expression::Conditional(conditional) => self.conditional(conditional, scope),
            Expression::FuncCall(call) => self.call(expression, call, scope),
            Expression::UnaryOp(op) => {
                let value = self.eval(&op.expr, scope)?;
                operators::unary(*op.operator.value(), &value)
                    .map_err(|detail| fault(expression, "Invalid operand", detail))
            }
            Expression::BinaryOp(op) => self.binary(expression, op, scope),
            Expression::ForExpr(for_expr) => self.for_expression(for_expr, scope),
        }
    }

    /// Returns the value of a condition.
    pub(super) fn condition(
        &self,
        expression: &Expression,
        scope: &Scope<'_>,
    ) -> Result<bool, Fault> {
        let value = self.eval(expression, scope)?;
        operators::condition(&value)
            .map_err(|detail| fault(expression, "Incorrect condition type", detail))
    }

    /// Returns keys and values of a list, set or object.
    pub(super) fn collection(
        &self,
        expression: &Expression,
        scope: &Scope<'_>,
    ) -> Result<Vec<(Value, Value)>, Fault> {
        elements(self.eval(expression, scope)?).map_err(|other| {
            let detail = format!(
                "a list or an object is required to iterate over{}",
                runtime_hint(&other),
            );
            fault(expression, "Iteration over non-iterable value", detail)
        })
    }

    fn object(&self, object: &Object, scope: &Scope<'_>) -> Result<Value, Fault> {
        let mut map = Map::new();
        for (key, value) in object.iter() {
            let key = match key {
                ObjectKey::Ident(name) => name.to_string(),
                ObjectKey::Expression(expression) => self.key(expression, scope)?,
            };
            map.insert(key, self.eval(value.expr(), scope)?);
        }
        Ok(Value::Object(map))
    }

    /// Returns the text of an object's key.
    fn key(&self, expression: &Expression, scope: &Scope<'_>) -> Result<String, Fault> {
        let value = self.eval(expression, scope)?;
        to_text(&value).ok_or_else(|| {
            let detail = format!("a key must be a string; got {}", type_name(&value));
            fault(expression, "Incorrect key type", detail)
        })
    }

    fn conditional(&self, conditional: &Conditional, scope: &Scope<'_>) -> Result<Value, Fault> {
        // Only the chosen side is evaluated, so errors of the other side do not count.
        if self.condition(&conditional.cond_expr, scope)? {
            self.eval(&conditional.true_expr, scope)
        } else {
            self.eval(&conditional.false_expr, scope)
        }
    }

    fn binary(
        &self,
        expression: &Expression,
        op: &BinaryOp,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let operator = *op.operator.value();
        if matches!(operator, BinaryOperator::And | BinaryOperator::Or) {
            let left = self.condition(&op.lhs_expr, scope)?;
            let decided = left == (operator == BinaryOperator::Or);
            return Ok(Value::Bool(if decided {
                left
            } else {
                self.condition(&op.rhs_expr, scope)?
            }));
        }
        let left = self.eval(&op.lhs_expr, scope)?;
        let right = self.eval(&op.rhs_expr, scope)?;
        operators::binary(&left, operator, &right)
            .map_err(|detail| fault(expression, "Invalid operand", detail))
    }

    fn for_expression(&self, expression: &ForExpr, scope: &Scope<'_>) -> Result<Value, Fault> {
        let intro = &expression.intro;
        let key_name = intro.key_var.as_ref().map(|name| name.as_str());
        let value_name = intro.value_var.as_str();
        let mut list = Vec::new();
        let mut map = Map::new();
        for (key, value) in self.collection(&intro.collection_expr, scope)? {
            let both = [(value_name, &value), (key_name.unwrap_or_default(), &key)];
            let names = if key_name.is_some() {
                &both[..]
            } else {
                &both[..1]
            };
            let scope = scope.child(names);
            if let Some(cond) = &expression.cond
                && !self.condition(&cond.expr, &scope)?
            {
                continue;
            }
            let result = self.eval(&expression.value_expr, &scope)?;
            match &expression.key_expr {
                None => list.push(result),
                Some(key) => self.add_entry(&mut map, key, result, expression.grouping, &scope)?,
            }
        }
        let is_object = expression.key_expr.is_some();
        Ok(if is_object {
            Value::Object(map)
        } else {
            Value::Array(list)
        })
    }

    fn add_entry(
        &self,
        map: &mut Map<String, Value>,
        key_expression: &Expression,
        value: Value,
        grouping: bool,
        scope: &Scope<'_>,
    ) -> Result<(), Fault> {
        let key = self.key(key_expression, scope)?;
        if grouping {
            let group = map.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(items) = group {
                items.push(value);
            }
            return Ok(());
        }
        if map.contains_key(&key) {
            let detail = format!(
                "two items have the key {key:?}: make the keys differ, or group the values by \
                 writing ... after the value",
            );
            return Err(fault(key_expression, "Duplicate object key", detail));
        }
        map.insert(key, value);
        Ok(())
    }

    /// Returns a copy of `value`, charged to the meter.
    pub(super) fn copy(&self, expression: &Expression, value: &Value) -> Result<Value, Fault> {
        self.pay(expression, self.host.meter.copy(value))?;
        Ok(value.clone())
    }

    pub(super) fn pay(
        &self,
        expression: &Expression,
        payment: Result<(), Exhausted>,
    ) -> Result<(), Fault> {
        payment.map_err(|detail| fault(expression, "Evaluation too large", detail))
    }

    /// Returns the value of a name that the scope does not have.
    pub(super) fn unknown_name(
        &self,
        written: &str,
        range: Option<Range<usize>>,
    ) -> Result<Value, Fault> {
        match self.host.unknown_names {
            // The node finds the value under this text.
            UnknownNames::Keep => Ok(Value::String(format!("${{{written}}}"))),
            UnknownNames::Refuse => {
                let detail = format!(
                    "{written} has no value in this file: write a text in quotes, {written:?}",
                );
                Err(Fault::new(range.unwrap_or(0..0), "Unknown name", detail))
            }
        }
    }

    /// Returns the source text of a range.
    pub(super) fn written(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }
}

fn number_value(number: &hcl_edit::Number) -> Value {
    if let Some(whole) = number.as_i64() {
        return whole.into();
    }
    if let Some(whole) = number.as_u64() {
        return whole.into();
    }
    number
        .as_f64()
        .and_then(float)
        .map_or(Value::Null, Value::Number)
}

pub(super) fn range_of(expression: &Expression) -> Range<usize> {
    expression.span().unwrap_or(0..0)
}

pub(super) fn fault(expression: &Expression, summary: &str, detail: impl Into<String>) -> Fault {
    Fault::new(range_of(expression), summary, detail)
}
