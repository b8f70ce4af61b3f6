//! `locals { … }`: named values that may use variables and each other, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Map, Value};

use crate::collector::Collector;
use crate::document::{Block, Expr};
use crate::language::Scope;
use crate::language::eval::Host;
use crate::language::references::Kind;
use crate::source::Fault;

/// Maximum nesting of values. The parser limits each expression, but locals can wrap each other, and
/// consumers of values are recursive.
const MAX_DEPTH: usize = 128;

/// Maximum number of locals of a cycle in a message.
const MAX_CYCLE_SHOWN: usize = 8;

struct Local<'a> {
    name: &'a str,
    name_range: Range<usize>,
    expr: Expr<'a>,
    /// The locals that its expression names.
    uses: BTreeSet<String>,
}

/// The locals of a file, not yet evaluated.
pub(crate) struct Locals<'a> {
    locals: Vec<Local<'a>>,
}

impl<'a> Locals<'a> {
    /// Reads the `locals` blocks; errors go to `out`.
    pub(crate) fn read(blocks: &[Block<'a>], out: &mut Collector) -> Self {
        let mut locals: Vec<Local<'a>> = Vec::new();
        let mut seen: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for block in blocks {
            let items = match block.content.items(&|_| None) {
                Ok(items) => items,
                Err(fault) => {
                    out.fault(fault);
                    continue;
                }
            };
            if let Some(inner) = items.blocks.first() {
                let detail = "A locals block holds name = value only";
                out.fault(Fault::new(
                    inner.header.clone(),
                    "Unsupported block type",
                    detail,
                ));
            }
            for attribute in items.attributes {
                if let Some(earlier) = seen.get(attribute.name) {
                    let (line, _) = out.source.position(earlier.start);
                    let detail = format!(
                        "The local {:?} was already defined on line {line}: remove one",
                        attribute.name,
                    );
                    out.fault(Fault::new(attribute.name_range, "Duplicate local", detail));
                    continue;
                }
                seen.insert(attribute.name, attribute.name_range.clone());
                let references = attribute.expr.references().into_iter();
                let uses = references.filter(|reference| reference.kind == Kind::Local);
                locals.push(Local {
                    name: attribute.name,
                    name_range: attribute.name_range,
                    expr: attribute.expr,
                    uses: uses.map(|reference| reference.name).collect(),
                });
            }
        }
        Self { locals }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.locals.iter().map(|local| local.name)
    }

    pub(crate) fn expressions(&self) -> impl Iterator<Item = Expr<'a>> {
        self.locals.iter().map(|local| local.expr)
    }

    /// Returns the values of all locals; `var` is the object of all variables.
    ///
    /// Evaluates in topological order by counting unevaluated dependencies. No recursion, because a
    /// chain may be as long as the file.
    pub(crate) fn values(
        &self,
        var: &Value,
        host: &Host,
        out: &mut Collector,
    ) -> Map<String, Value> {
        let mut waiting: Vec<usize> = self.locals.iter().map(|local| local.uses.len()).collect();
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, local) in self.locals.iter().enumerate() {
            for used in &local.uses {
                users.entry(used).or_default().push(position);
            }
        }
        let mut ready: Vec<usize> = (0..self.locals.len())
            .filter(|position| waiting[*position] == 0)
            .collect();
        let mut values = Value::Object(Map::new());
        while let Some(position) = ready.pop() {
            let local = &self.locals[position];
            let value = evaluate(local, var, &values, host, out);
            if let Value::Object(values) = &mut values {
                values.insert(local.name.to_owned(), value);
            }
            for user in users.get(local.name).into_iter().flatten() {
                waiting[*user] -= 1;
                if waiting[*user] == 0 {
                    ready.push(*user);
                }
            }
        }
        self.report_cycles(&waiting, out);
        match values {
            Value::Object(values) => values,
            _ => Map::new(),
        }
    }

    /// Reports one cycle among the unevaluated locals.
    fn report_cycles(&self, waiting: &[usize], out: &mut Collector) {
        let positions: BTreeMap<&str, usize> = self
            .locals
            .iter()
            .enumerate()
            .map(|(at, local)| (local.name, at))
            .collect();
        let stuck = |name: &String| {
            positions
                .get(name.as_str())
                .copied()
                .filter(|position| waiting[*position] > 0)
        };
        let Some(mut current) = waiting.iter().position(|count| *count > 0) else {
            return;
        };
        let mut chain = Vec::new();
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        // Each unevaluated local uses another one, so the walk returns to a seen local.
        while !seen.contains_key(&current) {
            seen.insert(current, chain.len());
            chain.push(current);
            let Some(next) = self.locals[current].uses.iter().find_map(stuck) else {
                return;
            };
            current = next;
        }
        chain.drain(..seen[&current]);
        let first = &self.locals[chain[0]];
        let shown = chain.iter().take(MAX_CYCLE_SHOWN).chain(&chain[..1]);
        let names = shown.map(|position| format!("local.{}", self.locals[*position].name));
        let names: Vec<String> = names.collect();
        let detail = format!(
            "These values use each other in a circle: {}. Break it by writing one of them out",
            names.join(" → "),
        );
        out.fault(Fault::new(
            first.name_range.clone(),
            "Cycle in locals",
            detail,
        ));
    }
}

fn evaluate(
    local: &Local<'_>,
    var: &Value,
    values: &Value,
    host: &Host,
    out: &mut Collector,
) -> Value {
    let names = [("var", var), ("local", values)];
    let scope = Scope::new(&names);
    let value = local.expr.eval(&out.source.text, host, &scope);
    let value = value.and_then(|value| {
        check_depth(&value, local.expr.range())?;
        Ok(value)
    });
    value.unwrap_or_else(|fault| {
        out.fault(fault);
        Value::Null
    })
}

/// Refuses values above the maximum nesting.
pub(crate) fn check_depth(value: &Value, range: Range<usize>) -> Result<(), Fault> {
    if depth(value) <= MAX_DEPTH {
        return Ok(());
    }
    let detail = format!("Lists and objects nest more than {MAX_DEPTH} levels deep: flatten them");
    Err(Fault::new(range, "Value too deep", detail))
}

/// Returns the nesting, at most that of one expression plus its locals.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(entries) => entries.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}
