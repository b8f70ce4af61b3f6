//! One entry in the table of functions.

use super::call::Call;
use crate::language::eval::Host;
use crate::language::value::Value;

/// A function with its name, its parameters (for messages) and its code.
pub(in crate::language) struct Function {
    pub(super) name: &'static str,
    /// The parameters, for example `text, prefix`; `…` marks a repeated last one.
    pub(super) parameters: &'static str,
    pub(super) call: fn(&Call<'_>) -> Result<Value, String>,
}

impl Function {
    /// Calls the function; a wrong number of arguments is an error.
    pub(in crate::language) fn run(
        &self,
        arguments: Vec<Value>,
        host: &Host,
    ) -> Result<Value, String> {
        self.check_count(arguments.len())?;
        (self.call)(&Call { arguments, host })
    }

    /// Checks the number of arguments against the parameters: `text, n?, list…`.
    fn check_count(&self, count: usize) -> Result<(), String> {
        let parameters: Vec<&str> = self
            .parameters
            .split(", ")
            .filter(|parameter| !parameter.is_empty())
            .collect();
        let optional = |parameter: &&&str| parameter.ends_with(['?', '…']);
        let least = parameters.len() - parameters.iter().filter(optional).count();
        let unlimited = parameters
            .last()
            .is_some_and(|parameter| parameter.ends_with('…'));
        if count < least || (count > parameters.len() && !unlimited) {
            let got = if count == 1 {
                "1 argument".to_owned()
            } else {
                format!("{count} arguments")
            };
            let signature = format!("{}({})", self.name, self.parameters);
            return Err(format!("got {got}, call it as {signature}"));
        }
        Ok(())
    }
}
