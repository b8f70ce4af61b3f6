//! The parts of a rendering that functions use.

use std::collections::BTreeMap;
use std::rc::Rc;

use regex::Regex;

use super::{Evaluator, evaluate};
use crate::budget::Budget;
use crate::context::RenderContext;
use crate::error::Fault;
use crate::function::Interpreter;
use crate::functions::Functions;
use crate::parser;
use crate::source::Lookup;
use crate::value::Value;

impl Interpreter for Evaluator<'_> {
    fn context(&self) -> &RenderContext<'_> {
        self.context
    }

    fn budget(&mut self) -> &mut Budget {
        self.budget
    }

    fn wait_for(&mut self, lookup: Lookup) {
        self.missing.insert(lookup);
    }

    fn patterns(&mut self) -> &mut BTreeMap<Rc<str>, Regex> {
        &mut self.patterns
    }

    fn template_text(&mut self, at: usize, name: &str, dot: Value) -> Result<String, Fault> {
        let outside = std::mem::take(&mut self.output);
        self.template(at, name, dot)?;
        Ok(std::mem::replace(&mut self.output, outside))
    }

    fn sockaddr(&mut self, expression: &str) -> Result<String, String> {
        let action = format!("{{{{{expression}}}}}");
        let functions = Functions::OF_SOCKADDR;
        let message = |message: String| format!("the expression {expression:?}: {message}");
        let trees = parser::parse(&action, "{{", "}}", functions)
            .map_err(|fault| message(fault.locate(&action).to_string()))?;
        let (text, _) = evaluate(&trees, functions, self.context, Some(self.budget));
        text.map_err(|fault| message(fault.message))
    }
}
