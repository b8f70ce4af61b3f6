//! A function of templates, and a call of one: its arguments and the interpreter that calls it.

use std::collections::BTreeMap;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use crate::budget::Budget;
use crate::context::RenderContext;
use crate::error::Fault;
use crate::source::Lookup;
use crate::value::{List, Value};

/// One function: the number of its arguments and its code.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    least: usize,
    /// None: as many as there are.
    most: Option<usize>,
    pub(crate) call: Code,
}

pub(crate) type Code = fn(&mut Call<'_>) -> Result<Value, Failure>;

/// A function with exactly `count` arguments.
pub(crate) const fn exact(name: &'static str, count: usize, call: Code) -> Function {
    Function {
        name,
        least: count,
        most: Some(count),
        call,
    }
}

/// A function with `least` to `most` arguments.
pub(crate) const fn between(name: &'static str, least: usize, most: usize, call: Code) -> Function {
    Function {
        name,
        least,
        most: Some(most),
        call,
    }
}

/// A function with at least `least` arguments.
pub(crate) const fn many(name: &'static str, least: usize, call: Code) -> Function {
    Function {
        name,
        least,
        most: None,
        call,
    }
}

impl Function {
    pub(crate) fn check_count(&self, count: usize) -> Result<(), String> {
        if count >= self.least && self.most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        let wanted = match (self.least, self.most) {
            (least, Some(most)) if least == most => least.to_string(),
            (least, Some(most)) => format!("{least} to {most}"),
            (least, None) => format!("at least {least}"),
        };
        Err(format!(
            "takes {wanted} {}, not {count}",
            if wanted == "1" {
                "argument"
            } else {
                "arguments"
            }
        ))
    }
}

/// The failure of a function.
pub(crate) enum Failure {
    Message(String),
    /// With a place of its own: an error inside of a template that the function renders.
    Fault(Fault),
}

impl Failure {
    pub(crate) fn into_fault(self, at: usize, name: &str) -> Fault {
        match self {
            Self::Message(message) => Fault::new(at, format!("{name}: {message}")),
            Self::Fault(fault) => fault,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

/// The rendering in which a function is called.
pub(crate) trait Interpreter {
    fn context(&self) -> &RenderContext<'_>;

    fn budget(&mut self) -> &mut Budget;

    /// Makes the rendering wait for data.
    fn wait_for(&mut self, lookup: Lookup);

    /// Compiled regular expressions of the rendering.
    fn patterns(&mut self) -> &mut BTreeMap<Rc<str>, Regex>;

    /// Returns the output of a named template.
    ///
    /// # Errors
    /// There is no such template, or it fails.
    fn template_text(&mut self, at: usize, name: &str, dot: Value) -> Result<String, Fault>;

    /// Returns the text of an expression over the node's interfaces, such as `GetPrivateIP`.
    ///
    /// # Errors
    /// The expression is wrong, or fails.
    fn sockaddr(&mut self, expression: &str) -> Result<String, String>;
}

/// A call in progress.
pub(crate) struct Call<'c> {
    pub(crate) at: usize,
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Value>,
    pub(crate) interpreter: &'c mut dyn Interpreter,
}

impl Call<'_> {
    pub(crate) fn count(&self) -> usize {
        self.arguments.len()
    }

    /// The argument at `position`, from 0; the table has checked their number.
    pub(crate) fn value(&self, position: usize) -> &Value {
        self.arguments.get(position).unwrap_or(&Value::Nil)
    }

    pub(crate) fn wrong(&self, position: usize, wanted: &str) -> Failure {
        let value = self.value(position);
        let found = if value.is_nil() {
            "nil".to_owned()
        } else {
            format!("of type {}", value.type_name())
        };
        Failure::Message(format!(
            "argument {} is {found}, not {wanted}",
            position + 1
        ))
    }

    pub(crate) fn text(&self, position: usize) -> Result<Rc<str>, Failure> {
        self.value(position)
            .as_text()
            .cloned()
            .ok_or_else(|| self.wrong(position, "a text"))
    }

    pub(crate) fn int(&self, position: usize) -> Result<i64, Failure> {
        match self.value(position) {
            Value::Int(value) => Ok(*value),
            Value::Uint(value) => i64::try_from(*value)
                .map_err(|_| self.wrong(position, "an integer of 64 bits with a sign")),
            Value::Float(value) => whole(*value).ok_or_else(|| self.wrong(position, "an integer")),
            _ => Err(self.wrong(position, "an integer")),
        }
    }

    pub(crate) fn size(&self, position: usize) -> Result<usize, Failure> {
        usize::try_from(self.int(position)?)
            .map_err(|_| format!("argument {} is negative", position + 1).into())
    }

    pub(crate) fn list(&self, position: usize) -> Result<Rc<List>, Failure> {
        match self.value(position) {
            Value::List(list) => Ok(Rc::clone(list)),
            _ => Err(self.wrong(position, "a list")),
        }
    }

    pub(crate) fn map(&self, position: usize) -> Result<BTreeMap<Rc<str>, Value>, Failure> {
        self.value(position)
            .as_map()
            .cloned()
            .ok_or_else(|| self.wrong(position, "a map"))
    }

    /// The texts of a list of values, each as it is printed.
    pub(crate) fn printed_list(&self, position: usize) -> Result<Vec<String>, Failure> {
        match self.value(position) {
            Value::List(list) => Ok(list.items.iter().map(ToString::to_string).collect()),
            value if value.is_nil() => Ok(Vec::new()),
            _ => Err(self.wrong(position, "a list")),
        }
    }
}

/// A float without a fraction as an integer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the value is whole and within the range of i64"
)]
fn whole(value: f64) -> Option<i64> {
    let range = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    (value.fract() == 0.0 && range.contains(&value)).then_some(value as i64)
}

/// A length as a value.
pub(crate) fn length(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Memory of a compiled regular expression, and the price of compiling one: 256 fit into the default budget.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// A search reads a byte much faster than other functions do.
const SEARCH_DISCOUNT: usize = 16;

impl Call<'_> {
    /// The regular expression at `position`, compiled once in a rendering.
    pub(crate) fn pattern(&mut self, position: usize) -> Result<Regex, Failure> {
        let written = self.text(position)?;
        if let Some(pattern) = self.interpreter.patterns().get(&written) {
            return Ok(pattern.clone());
        }
        self.interpreter.budget().charge(PATTERN_SIZE_MAX)?;
        let built = RegexBuilder::new(&written)
            .size_limit(PATTERN_SIZE_MAX)
            .build();
        let pattern = built.map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim();
            format!("the regular expression {written:?} is wrong: {reason}")
        })?;
        self.interpreter.patterns().insert(written, pattern.clone());
        Ok(pattern)
    }

    /// Pays for one more search of the rest of a text: searches for all matches may read it again and again.
    pub(crate) fn pay_for_search(&mut self, rest: usize) -> Result<(), Failure> {
        Ok(self.interpreter.budget().charge(rest / SEARCH_DISCOUNT)?)
    }

    /// Pays for a comparison of each element with each.
    pub(crate) fn pay_for_pairs(&mut self, list: usize, others: usize) -> Result<(), Failure> {
        let weight = self.value(list).weight();
        Ok(self
            .interpreter
            .budget()
            .charge(weight.saturating_mul(others))?)
    }
}
