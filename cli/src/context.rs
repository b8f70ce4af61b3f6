//! Connection, terminal and clock of a command that calls the gateway.

use std::ffi::OsString;

use jiff::tz::TimeZone;
use service_kit::{Clock, IdSource};

use crate::address::Address;
use crate::args::Global;
use crate::argv::Normalised;
use crate::connection::Connection;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::colour::{Colour, Preference};
use crate::output::printer::Printer;
use crate::output::time::Times;
use crate::render::Style;
use crate::transport::TlsSettings;

/// Environment variables with the namespace, by precedence.
const NAMESPACE_VARIABLES: [&str; 2] = ["KAFILA_NAMESPACE", "NOMAD_NAMESPACE"];

/// Environment variables that disable colours if set. Source: no-color.org, and Nomad.
const NO_COLOUR_VARIABLES: [&str; 3] = ["NO_COLOR", "KAFILA_CLI_NO_COLOR", "NOMAD_CLI_NO_COLOR"];
/// Environment variables that force colours if set.
const COLOUR_VARIABLES: [&str; 2] = ["KAFILA_CLI_FORCE_COLOR", "NOMAD_CLI_FORCE_COLOR"];

pub(crate) struct Context {
    pub(crate) connection: Connection,
    pub(crate) printer: Printer,
    pub(crate) clock: Clock,
    /// The flag `-namespace`; the connection also knows the environment's.
    pub(crate) namespace_flag: Option<String>,
    /// The command line, the program's name first, with flags in clap's form.
    pub(crate) words: Vec<OsString>,
}

impl Context {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// No client can be made.
    pub(crate) fn build(global: &Global, line: &Normalised) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let address = Address::choose(global.address.as_deref(), variable);
        let tls = TlsSettings::choose(global, variable);
        let namespace = choose_namespace(global.namespace.as_deref(), variable);
        Ok(Self {
            connection: Connection::new(
                address,
                namespace,
                global.timeout,
                IdSource::from_os(),
                &tls,
            )?
            .reading(global.stale),
            printer: printer(global.no_color, global.force_color),
            clock: Clock::real(),
            namespace_flag: global.namespace.clone(),
            words: line.words.clone(),
        })
    }

    /// Notes on standard error that the namespace of an empty list does not exist.
    pub(crate) async fn note_unknown_namespace(&self) {
        let name = self.connection.namespace();
        if matches!(name, "*" | "default") {
            return;
        }
        // Only a hint, so any other error is left to the next command.
        let found = self.connection.namespace_named(name).await;
        if found.is_err_and(|error| error.is_not_found()) {
            self.printer.err(&format!(
                "Namespace {name:?} does not exist: 'kafila namespace list' shows those that do."
            ));
        }
    }

    /// Notes on standard error that the job of an empty list does not exist.
    pub(crate) async fn note_unknown_job(&self, job_id: &str) {
        let namespace = self.connection.namespace();
        if namespace == "*" {
            return;
        }
        let found = self.connection.job(namespace, job_id, None).await;
        if found.is_err_and(|error| error.is_not_found()) {
            self.printer.err(&format!(
                "Namespace {namespace:?} has no job {job_id:?}: 'kafila job status' lists its jobs."
            ));
        }
    }

    /// Prints the output of a command that has succeeded.
    pub(crate) fn finish(&self, text: &str) -> Result<Exit, Error> {
        self.printer.out(text)?;
        Ok(Exit::Success)
    }

    /// Returns the style of standard output, with the current time.
    pub(crate) fn style(&self, verbose: bool) -> Style {
        self.style_in(verbose, self.printer.colour)
    }

    /// Returns the style of standard error.
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

/// Returns the terminal, with colours set by flags or the environment.
pub(crate) fn printer(no_colour: bool, force_colour: bool) -> Printer {
    let any_set = |names: &[&str]| {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        names.iter().any(is_set)
    };
    Printer::new(Preference {
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
