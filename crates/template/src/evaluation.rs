//! Walks a template's tree and writes its output.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use regex::Regex;

use crate::budget::Budget;
use crate::context::RenderContext;
use crate::error::Fault;
use crate::function::Call;
use crate::functions::Functions;
use crate::functions::scratch::Scratch;
use crate::source::Lookup;
use crate::syntax::{Branch, Command, Node, Nodes, Operand, Pipe, Term, Trees};
use crate::value::Value;

mod fields;
mod interpreter;

/// Templates in templates, blocks in blocks and parentheses together. Each level takes stack.
const DEPTH_MAX: usize = 150;

/// Functions that read a part of their arguments only, and so do not pay for the whole.
const READS_ONE_ELEMENT: [&str; 3] = ["index", "len", "not"];

/// Renders `trees`. The look-ups that were missing are complete if the result is a text: evaluation goes on with an
/// empty value in place of each.
pub(crate) fn evaluate(
    trees: &Trees,
    functions: Functions,
    context: &RenderContext<'_>,
    host: Option<&mut Budget>,
) -> (Result<String, Fault>, BTreeSet<Lookup>) {
    let mut own = Budget::new(context.limits);
    let mut evaluator = Evaluator {
        trees,
        functions,
        context,
        budget: host.unwrap_or(&mut own),
        output: String::new(),
        variables: vec![("$".into(), Value::Nothing)],
        depth: 0,
        missing: BTreeSet::new(),
        scratch: Scratch::default(),
        patterns: BTreeMap::new(),
    };
    let result = evaluator
        .nodes(&trees.root, &Value::Nothing)
        .map(|_| std::mem::take(&mut evaluator.output));
    (result, evaluator.missing)
}

struct Evaluator<'a> {
    trees: &'a Trees,
    functions: Functions,
    context: &'a RenderContext<'a>,
    budget: &'a mut Budget,
    output: String,
    /// With their `$`; the innermost last.
    variables: Vec<(Box<str>, Value)>,
    depth: usize,
    missing: BTreeSet<Lookup>,
    scratch: Scratch,
    /// Compiled regular expressions.
    patterns: BTreeMap<Rc<str>, Regex>,
}

/// The end of a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'a> Evaluator<'a> {
    fn step(&mut self, at: usize) -> Result<(), Fault> {
        self.budget
            .step()
            .map_err(|message| Fault::new(at, message))
    }

    fn enter(&mut self, at: usize) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::new(
                at,
                format!("templates and blocks are nested deeper than {DEPTH_MAX}"),
            ));
        }
        Ok(())
    }

    fn write(&mut self, at: usize, text: &str) -> Result<(), Fault> {
        self.budget
            .output(self.output.len().saturating_add(text.len()))
            .map_err(|message| Fault::new(at, message))?;
        self.output.push_str(text);
        Ok(())
    }

    fn nodes(&mut self, nodes: &'a Nodes, dot: &Value) -> Result<Flow, Fault> {
        for node in nodes {
            let flow = match node {
                Node::Text(text) => {
                    self.step(0)?;
                    self.write(0, text)?;
                    Flow::Next
                }
                Node::Action(pipe) => {
                    let value = self.pipe(pipe, dot)?;
                    if pipe.variables.is_empty() {
                        self.print(pipe.at, &value)?;
                    }
                    Flow::Next
                }
                Node::If(branch) => self.choose(branch, dot, false)?,
                Node::With(branch) => self.choose(branch, dot, true)?,
                Node::Range(branch) => self.range(branch, dot)?,
                Node::Template { at, name, argument } => {
                    let dot = argument
                        .as_ref()
                        .map_or(Ok(Value::Nothing), |pipe| self.pipe(pipe, dot))?;
                    self.template(*at, name, dot)?;
                    Flow::Next
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, at: usize, value: &Value) -> Result<(), Fault> {
        match value {
            Value::Nothing | Value::Nil => self.write(at, "<no value>"),
            Value::Loop(..) | Value::Scratch => Err(Fault::new(
                at,
                format!("a value of type {} can't be printed", value.type_name()),
            )),
            _ => match value.as_text() {
                Some(text) => self.write(at, &Rc::clone(text)),
                None => {
                    self.budget
                        .charge(value.weight())
                        .map_err(|message| Fault::new(at, message))?;
                    self.write(at, &value.to_string())
                }
            },
        }
    }

    fn choose(&mut self, branch: &'a Branch, dot: &Value, moves_dot: bool) -> Result<Flow, Fault> {
        self.enter(branch.pipe.at)?;
        let scope = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        let flow = match (value.is_true(), moves_dot) {
            (true, true) => self.nodes(&branch.body, &value),
            (true, false) => self.nodes(&branch.body, dot),
            (false, _) => self.nodes(&branch.otherwise, dot),
        }?;
        self.variables.truncate(scope);
        self.depth -= 1;
        Ok(flow)
    }

    fn range(&mut self, branch: &'a Branch, dot: &Value) -> Result<Flow, Fault> {
        let at = branch.pipe.at;
        self.enter(at)?;
        let scope = self.variables.len();
        let value = self.pipe_value(&branch.pipe, dot)?;
        let mut turns: Box<dyn Iterator<Item = (Value, Value)>> = match &value {
            Value::Nothing | Value::Nil => Box::new(std::iter::empty()),
            Value::List(list) => {
                let list = Rc::clone(list);
                Box::new((0..list.items.len()).map(move |index| {
                    (
                        Value::Int(i64::try_from(index).unwrap_or(i64::MAX)),
                        list.items[index].clone(),
                    )
                }))
            }
            Value::Int(count) => integers(branch, 0, *count)?,
            Value::Uint(count) => integers(branch, 0, i64::try_from(*count).unwrap_or(i64::MAX))?,
            Value::Loop(first, last) => {
                let first = *first;
                Box::new(
                    (first..*last).map(move |value| (Value::Int(value - first), Value::Int(value))),
                )
            }
            _ => match value.as_map() {
                Some(map) => {
                    // The entries are copied.
                    self.budget
                        .charge(value.weight())
                        .map_err(|message| Fault::new(at, message))?;
                    let entries: Vec<_> = map
                        .iter()
                        .map(|(key, value)| (Value::Text(Rc::clone(key)), value.clone()))
                        .collect();
                    Box::new(entries.into_iter())
                }
                None => {
                    return Err(Fault::new(
                        at,
                        format!(
                            "range can't iterate over {value}, of type {}",
                            value.type_name()
                        ),
                    ));
                }
            },
        };
        let mut flow = Flow::Next;
        let mut empty = true;
        for (key, element) in turns.by_ref() {
            empty = false;
            self.step(at)?;
            self.variables.truncate(scope);
            self.take(&branch.pipe, &key, &element);
            match self.nodes(&branch.body, &element)? {
                Flow::Break => break,
                Flow::Continue | Flow::Next => {}
            }
        }
        self.variables.truncate(scope);
        if empty {
            flow = self.nodes(&branch.otherwise, dot)?;
        }
        self.variables.truncate(scope);
        self.depth -= 1;
        Ok(flow)
    }

    /// Gives the variables of a range the key and the element; one variable gets the element.
    fn take(&mut self, pipe: &Pipe, key: &Value, element: &Value) {
        let values: &[&Value] = if pipe.variables.len() == 2 {
            &[key, element]
        } else {
            &[element]
        };
        for (name, value) in pipe.variables.iter().zip(values) {
            self.set(pipe.assigns, name, (*value).clone());
        }
    }

    fn set(&mut self, assigns: bool, name: &str, value: Value) {
        if assigns
            && let Some((_, old)) = self
                .variables
                .iter_mut()
                .rev()
                .find(|(known, _)| **known == *name)
        {
            *old = value;
            return;
        }
        self.variables.push((name.into(), value));
    }

    /// Writes a named template with its own variables.
    fn template(&mut self, at: usize, name: &str, dot: Value) -> Result<(), Fault> {
        self.step(at)?;
        self.enter(at)?;
        let trees = self.trees;
        let Some(nodes) = trees.defined.get(name) else {
            return Err(Fault::new(
                at,
                format!(
                    "the template {name:?} is not defined; define it with {{{{define {name:?}}}}}…{{{{end}}}}"
                ),
            ));
        };
        let outside = std::mem::replace(&mut self.variables, vec![("$".into(), dot.clone())]);
        self.nodes(nodes, &dot)?;
        self.variables = outside;
        self.depth -= 1;
        Ok(())
    }

    /// The value of a pipeline, which its variable takes.
    fn pipe(&mut self, pipe: &'a Pipe, dot: &Value) -> Result<Value, Fault> {
        let value = self.pipe_value(pipe, dot)?;
        if let [name] = &*pipe.variables {
            self.set(pipe.assigns, name, value.clone());
        }
        Ok(value)
    }

    fn pipe_value(&mut self, pipe: &'a Pipe, dot: &Value) -> Result<Value, Fault> {
        let mut last = None;
        for command in &pipe.commands {
            self.step(command.at)?;
            last = Some(self.command(command, dot, last)?);
        }
        Ok(last.unwrap_or(Value::Nil))
    }

    fn command(
        &mut self,
        command: &'a Command,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, Fault> {
        let Command {
            first, arguments, ..
        } = command;
        match &first.term {
            Term::Function(name) if first.fields.is_empty() => {
                self.function(first.at, name, arguments, dot, last)
            }
            _ if first.fields.is_empty() => {
                if !arguments.is_empty() || last.is_some() {
                    return Err(Fault::new(
                        command.at,
                        "a value that is not a function takes no arguments",
                    ));
                }
                if matches!(first.term, Term::Nil) {
                    return Err(Fault::new(command.at, "nil alone is not a value"));
                }
                self.operand(first, dot)
            }
            _ => {
                let (object, name) = self.object(first, dot)?;
                let mut values = self.values(arguments, dot)?;
                values.extend(last);
                self.field(first.at, &object, name, values)
            }
        }
    }

    fn values(&mut self, operands: &'a [Operand], dot: &Value) -> Result<Vec<Value>, Fault> {
        operands
            .iter()
            .map(|operand| self.operand(operand, dot))
            .collect()
    }

    /// The value of an operand with all of its fields.
    fn operand(&mut self, operand: &'a Operand, dot: &Value) -> Result<Value, Fault> {
        if operand.fields.is_empty() {
            return self.term(operand, dot);
        }
        let (object, name) = self.object(operand, dot)?;
        self.field(operand.at, &object, name, Vec::new())
    }

    /// The value that has the operand's last field, and the field's name.
    fn object<'o>(&mut self, operand: &'a Operand, dot: &Value) -> Result<(Value, &'o str), Fault>
    where
        'a: 'o,
    {
        let mut value = self.term(operand, dot)?;
        let Some((last, path)) = operand.fields.split_last() else {
            return Ok((value, ""));
        };
        for name in path {
            value = self.field(operand.at, &value, name, Vec::new())?;
        }
        Ok((value, last))
    }

    fn term(&mut self, operand: &'a Operand, dot: &Value) -> Result<Value, Fault> {
        Ok(match &operand.term {
            Term::Dot => dot.clone(),
            Term::Nil => Value::Nil,
            Term::Bool(value) => Value::Bool(*value),
            Term::Int(value) => Value::Int(*value),
            Term::Uint(value) => Value::Uint(*value),
            Term::Float(value) => Value::Float(*value),
            Term::Text(text) => Value::text(&**text),
            Term::Variable(name) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                known.map_or(Value::Nil, |(_, value)| value.clone())
            }
            Term::Function(name) => self.function(operand.at, name, &[], dot, None)?,
            Term::Pipe(pipe) => {
                self.enter(operand.at)?;
                let value = self.pipe(pipe, dot)?;
                self.depth -= 1;
                value
            }
        })
    }

    fn function(
        &mut self,
        at: usize,
        name: &str,
        operands: &'a [Operand],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, Fault> {
        if matches!(name, "and" | "or") {
            return self.logic(at, name, operands, dot, last);
        }
        let mut arguments = self.values(operands, dot)?;
        arguments.extend(last);
        self.call(at, name, arguments)
    }

    /// Calls a function with values: checks their number, pays for their size and for the result's.
    fn call(&mut self, at: usize, name: &str, arguments: Vec<Value>) -> Result<Value, Fault> {
        let fail = |message: String| Fault::new(at, format!("{name}: {message}"));
        let function = self
            .functions
            .get(name)
            .ok_or_else(|| Fault::new(at, format!("there is no function {name:?}")))?;
        function.check_count(arguments.len()).map_err(fail)?;
        self.step(at)?;
        if !READS_ONE_ELEMENT.contains(&name) {
            self.budget.charge_values(&arguments).map_err(fail)?;
        }
        let result = (function.call)(&mut Call {
            at,
            name: function.name,
            arguments,
            interpreter: self,
        });
        let value = result.map_err(|failure| failure.into_fault(at, name))?;
        self.budget.charge(value.weight()).map_err(fail)?;
        Budget::room(value.weight()).map_err(fail)?;
        Ok(value)
    }

    /// `and` and `or` evaluate no argument behind the one that decides.
    fn logic(
        &mut self,
        at: usize,
        name: &str,
        operands: &'a [Operand],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, Fault> {
        self.step(at)?;
        let decides = name == "or";
        let mut value = None;
        for operand in operands {
            let next = self.operand(operand, dot)?;
            if next.is_true() == decides {
                return Ok(next);
            }
            value = Some(next);
        }
        last.or(value)
            .ok_or_else(|| Fault::new(at, format!("{name}: needs an argument")))
    }
}

fn integers(
    branch: &Branch,
    first: i64,
    last: i64,
) -> Result<Box<dyn Iterator<Item = (Value, Value)>>, Fault> {
    if branch.pipe.variables.len() > 1 {
        return Err(Fault::new(
            branch.pipe.at,
            "range over a number has one variable",
        ));
    }
    Ok(Box::new(
        (first..last).map(|value| (Value::Int(value), Value::Int(value))),
    ))
}
