//! What every command that asks the gateway is given.

use std::ffi::OsString;

use jiff::tz::TimeZone;
use service_kit::{Clock, IdSource};

use crate::address::Address;
use crate::args::Global;
use crate::argv::Normalised;
use crate::connection::Connection;
use crate::error::Error;
use crate::output::colour::{Colour, Wishes};
use crate::output::printer::Printer;
use crate::output::time::Times;
use crate::render::Style;

/// The variables that may name a namespace, the first that is set wins.
const NAMESPACE_VARIABLES: [&str; 2] = ["KAFILA_NAMESPACE", "NOMAD_NAMESPACE"];

/// Set to anything, these turn colours off. Source: no-color.org, and Nomad's own.
const NO_COLOUR_VARIABLES: [&str; 3] = ["NO_COLOR", "KAFILA_CLI_NO_COLOR", "NOMAD_CLI_NO_COLOR"];
/// And these on, where the output is no terminal.
const COLOUR_VARIABLES: [&str; 2] = ["KAFILA_CLI_FORCE_COLOR", "NOMAD_CLI_FORCE_COLOR"];

/// A command's way to the gateway, the terminal and the clock.
pub(crate) struct Context {
    pub(crate) connection: Connection,
    pub(crate) printer: Printer,
    pub(crate) clock: Clock,
    /// What `-namespace` says; the environment's is the connection's alone.
    pub(crate) namespace_flag: Option<String>,
    /// What was typed, the program's name first, with every flag in clap's form.
    pub(crate) words: Vec<OsString>,
}

impl Context {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address makes no sense.
    pub(crate) fn build(global: &Global, line: &Normalised) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let address = Address::choose(global.address.as_deref(), variable)?;
        let namespace = choose_namespace(global.namespace.as_deref(), variable);
        Ok(Self {
            connection: Connection::new(address, namespace, global.timeout, IdSource::from_os())?,
            printer: printer(global.no_color, global.force_color),
            clock: Clock::real(),
            namespace_flag: global.namespace.clone().filter(|name| !name.is_empty()),
            words: line.words.clone(),
        })
    }

    /// Returns how to show things on standard output, with the present time.
    pub(crate) fn style(&self, verbose: bool) -> Style {
        self.style_in(verbose, self.printer.colour)
    }

    /// Returns how to show things on standard error.
    pub(crate) fn style_err(&self, verbose: bool) -> Style {
        self.style_in(verbose, self.printer.colour_err)
    }

    fn style_in(&self, verbose: bool, colour: Colour) -> Style {
        Style {
            verbose,
            colour,
            times: Times {
                now_ns: self.clock.now(),
                zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
            },
        }
    }
}

/// Returns where a command writes, as its flags wish, or else the environment.
pub(crate) fn printer(no_colour: bool, force_colour: bool) -> Printer {
    let any_set = |names: &[&str]| {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        names.iter().any(is_set)
    };
    Printer::new(Wishes {
        never: no_colour || (!force_colour && any_set(&NO_COLOUR_VARIABLES)),
        always: force_colour || any_set(&COLOUR_VARIABLES),
    })
}

fn choose_namespace(
    flag: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let given = flag.map(str::to_owned);
    let found = given.or_else(|| NAMESPACE_VARIABLES.iter().find_map(|name| variable(name)));
    found.filter(|namespace| !namespace.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_names_the_namespace_before_the_environment_does() {
        let nomad = |name: &str| (name == "NOMAD_NAMESPACE").then(|| "n".to_owned());
        let none = |_: &str| None;
        assert_eq!(choose_namespace(Some("f"), nomad).as_deref(), Some("f"));
        assert_eq!(choose_namespace(None, nomad).as_deref(), Some("n"));
        assert_eq!(choose_namespace(None, none), None);
        assert_eq!(choose_namespace(Some(""), none), None);
    }
}
