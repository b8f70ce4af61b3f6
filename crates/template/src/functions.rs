//! The table of functions, and what a function gets when it is called.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use crate::error::Fault;
use crate::evaluation::Evaluator;
use crate::value::{List, Value};

mod builtin;
mod collections;
mod convert;
pub(crate) mod lookups;
mod math;
mod node;
pub(crate) mod scratch;
mod sockaddr;
mod sprig;
mod text;
mod unavailable;

/// One function: the number of its arguments and its code.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    least: usize,
    /// None: as many as there are.
    most: Option<usize>,
    pub(crate) call: Code,
}

type Code = fn(&mut Call<'_, '_>) -> Result<Value, Failure>;

/// A function with exactly `count` arguments.
const fn exact(name: &'static str, count: usize, call: Code) -> Function {
    Function {
        name,
        least: count,
        most: Some(count),
        call,
    }
}

/// A function with `least` to `most` arguments.
const fn between(name: &'static str, least: usize, most: usize, call: Code) -> Function {
    Function {
        name,
        least,
        most: Some(most),
        call,
    }
}

/// A function with at least `least` arguments.
const fn many(name: &'static str, least: usize, call: Code) -> Function {
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

/// The functions that a template may call.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    table: fn() -> &'static BTreeMap<&'static str, Function>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

static OF_TASKS: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    let groups = [
        builtin::FUNCTIONS,
        text::FUNCTIONS,
        collections::FUNCTIONS,
        convert::FUNCTIONS,
        math::FUNCTIONS,
        node::FUNCTIONS,
        lookups::FUNCTIONS,
    ];
    groups
        .into_iter()
        .flatten()
        .chain(sprig::all())
        .map(|function| (function.name, *function))
        .collect()
});

static OF_SOCKADDR: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    builtin::FUNCTIONS
        .iter()
        .chain(sockaddr::FUNCTIONS)
        .map(|function| (function.name, *function))
        .collect()
});

impl Functions {
    /// The functions of a task's template.
    pub(crate) const OF_TASKS: Self = Self {
        table: || &OF_TASKS,
    };
    /// The functions inside the argument of `sockaddr`.
    pub(crate) const OF_SOCKADDR: Self = Self {
        table: || &OF_SOCKADDR,
    };

    pub(crate) fn get(self, name: &str) -> Option<Function> {
        (self.table)().get(name).copied()
    }

    pub(crate) fn names(self) -> Vec<&'static str> {
        (self.table)().keys().copied().collect()
    }

    /// # Errors
    /// There is no such function; the message says what to use.
    pub(crate) fn check(self, name: &str) -> Result<(), String> {
        if self.get(name).is_some() {
            return Ok(());
        }
        match unavailable::hint(name) {
            Some(hint) => Err(format!(
                "the function {name} is not available in templates: {hint}"
            )),
            None => {
                let hint = suggest::hint(name, (self.table)().keys().copied());
                let stop = if hint.is_empty() { "" } else { "." };
                Err(format!("there is no function {name}{stop}{hint}"))
            }
        }
    }
}

/// A call in progress.
pub(crate) struct Call<'c, 'e> {
    pub(crate) at: usize,
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Value>,
    pub(crate) evaluator: &'c mut Evaluator<'e>,
}

impl Call<'_, '_> {
    fn count(&self) -> usize {
        self.arguments.len()
    }

    /// The argument at `position`, from 0; the table has checked their number.
    fn value(&self, position: usize) -> &Value {
        self.arguments.get(position).unwrap_or(&Value::Nil)
    }

    fn wrong(&self, position: usize, wanted: &str) -> Failure {
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

    fn text(&self, position: usize) -> Result<Rc<str>, Failure> {
        self.value(position)
            .as_text()
            .cloned()
            .ok_or_else(|| self.wrong(position, "a text"))
    }

    fn int(&self, position: usize) -> Result<i64, Failure> {
        match self.value(position) {
            Value::Int(value) => Ok(*value),
            Value::Uint(value) => i64::try_from(*value)
                .map_err(|_| self.wrong(position, "an integer of 64 bits with a sign")),
            Value::Float(value) => whole(*value).ok_or_else(|| self.wrong(position, "an integer")),
            _ => Err(self.wrong(position, "an integer")),
        }
    }

    fn size(&self, position: usize) -> Result<usize, Failure> {
        usize::try_from(self.int(position)?)
            .map_err(|_| format!("argument {} is negative", position + 1).into())
    }

    fn list(&self, position: usize) -> Result<Rc<List>, Failure> {
        match self.value(position) {
            Value::List(list) => Ok(Rc::clone(list)),
            _ => Err(self.wrong(position, "a list")),
        }
    }

    fn map(&self, position: usize) -> Result<BTreeMap<Rc<str>, Value>, Failure> {
        self.value(position)
            .as_map()
            .cloned()
            .ok_or_else(|| self.wrong(position, "a map"))
    }

    /// The texts of a list of values, each as it is printed.
    fn printed_list(&self, position: usize) -> Result<Vec<String>, Failure> {
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
fn length(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Memory of a compiled regular expression, and the price of compiling one: 256 fit into the default budget.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// A search reads a byte much faster than other functions do.
const SEARCH_DISCOUNT: usize = 16;

impl Call<'_, '_> {
    /// The regular expression at `position`, compiled once in a rendering.
    fn pattern(&mut self, position: usize) -> Result<Regex, Failure> {
        let written = self.text(position)?;
        if let Some(pattern) = self.evaluator.patterns.get(&written) {
            return Ok(pattern.clone());
        }
        self.evaluator.budget.charge(PATTERN_SIZE_MAX)?;
        let built = RegexBuilder::new(&written)
            .size_limit(PATTERN_SIZE_MAX)
            .build();
        let pattern = built.map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim();
            format!("the regular expression {written:?} is wrong: {reason}")
        })?;
        self.evaluator.patterns.insert(written, pattern.clone());
        Ok(pattern)
    }

    /// Pays for one more search of the rest of a text: searches for all matches may read it again and again.
    fn pay_for_search(&mut self, rest: usize) -> Result<(), Failure> {
        Ok(self.evaluator.budget.charge(rest / SEARCH_DISCOUNT)?)
    }

    /// Pays for a comparison of each element with each.
    fn pay_for_pairs(&mut self, list: usize, others: usize) -> Result<(), Failure> {
        let weight = self.value(list).weight();
        Ok(self
            .evaluator
            .budget
            .charge(weight.saturating_mul(others))?)
    }
}
