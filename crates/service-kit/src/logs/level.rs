//! The filter of the lines that a process prints, replaced at run time, for a while or until its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::{EnvFilter, Registry, reload};

use super::monitors::CARRIERS;

/// Further libraries that log each packet or each call below `info`.
const LIBRARIES: [&str; 6] = [
    "bollard",
    "hickory_net",
    "hickory_proto",
    "hickory_resolver",
    "ureq",
    "ureq_proto",
];

/// A text that is no filter.
#[derive(Debug, thiserror::Error)]
pub enum BadFilter {
    #[error("{text:?} is not a filter such as info or info,store=debug")]
    Syntax {
        text: String,
        #[source]
        source: ParseError,
    },
    #[error(
        "{text:?} names no level, so nothing would be logged: want error, warn, info, debug, trace or \
         off, as in info or info,store=debug"
    )]
    NoLevel { text: String },
}

/// The filter of the printed lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    pub filter: String,
    /// The filter of the configuration.
    pub configured: String,
    /// The time until the configured filter returns; `None`: it does not return by itself.
    pub expires_after: Option<Duration>,
}

/// A replaced filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The filter before.
    pub previous: String,
    pub now: Current,
}

#[derive(Debug)]
pub(super) struct Level {
    configured: String,
    state: Mutex<State>,
    handle: reload::Handle<EnvFilter, Registry>,
}

#[derive(Debug)]
struct State {
    filter: String,
    expires_at: Option<Instant>,
    /// Counts changes: an expiry ends only the change that it belongs to.
    changes: u64,
}

impl Level {
    pub(super) fn new(
        configured: &str,
    ) -> Result<(Self, reload::Layer<EnvFilter, Registry>), BadFilter> {
        let (filter, handle) = reload::Layer::new(parse(configured)?);
        let state = State {
            filter: configured.to_owned(),
            expires_at: None,
            changes: 0,
        };
        let level = Self {
            configured: configured.to_owned(),
            state: Mutex::new(state),
            handle,
        };
        Ok((level, filter))
    }

    pub(super) fn current(&self) -> Current {
        let state = self.state();
        self.show(&state)
    }

    fn show(&self, state: &State) -> Current {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        Current {
            filter: state.filter.clone(),
            configured: self.configured.clone(),
            expires_after: state.expires_at.map(left),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reload(&self, filter: EnvFilter) {
        if let Err(error) = self.handle.reload(filter) {
            // The subscriber is gone: the process ends.
            warn!(%error, "the log level is unchanged");
        }
    }

    /// Restores the configured filter if `change` is the newest one.
    fn expire(&self, change: u64) {
        let filter = match parse(&self.configured) {
            Ok(filter) => filter,
            Err(error) => {
                warn!(%error, "the log level is unchanged");
                return;
            }
        };
        {
            let mut state = self.state();
            if state.changes != change {
                return;
            }
            self.reload(filter);
            state.filter.clone_from(&self.configured);
            state.expires_at = None;
        }
        info!(filter = self.configured, "the configured log level is back");
    }
}

pub(super) fn set(
    level: &Arc<Level>,
    filter: &str,
    expires_after: Option<Duration>,
) -> Result<Change, BadFilter> {
    let filter = match filter.trim() {
        "" => level.configured.as_str(),
        filter => filter,
    };
    let parsed = parse(filter)?;
    let change = {
        let mut state = level.state();
        level.reload(parsed);
        let previous = std::mem::replace(&mut state.filter, filter.to_owned());
        // The configured filter cannot expire.
        let expires_after = expires_after.filter(|_| filter != level.configured);
        // A time beyond the clock's range is none.
        state.expires_at = expires_after.and_then(|after| Instant::now().checked_add(after));
        state.changes += 1;
        if let Some(expires_at) = state.expires_at {
            let (level, change) = (Arc::downgrade(level), state.changes);
            tokio::spawn(async move {
                tokio::time::sleep_until(expires_at).await;
                if let Some(level) = level.upgrade() {
                    level.expire(change);
                }
            });
        }
        Change {
            previous,
            now: level.show(&state),
        }
    };
    info!(
        filter,
        previous = change.previous,
        ?expires_after,
        "log level set"
    );
    Ok(change)
}

/// # Errors
/// `text` is no filter.
pub(crate) fn parse(text: &str) -> Result<EnvFilter, BadFilter> {
    if !names_level(text) {
        return Err(BadFilter::NoLevel {
            text: text.to_owned(),
        });
    }
    EnvFilter::try_new(with_quiet_libraries(text)).map_err(|source| BadFilter::Syntax {
        text: text.to_owned(),
        source,
    })
}

/// Returns the filter with libraries of the network at `info`, where it has a lower level for everything and
/// does not name them: at `debug` they print each frame of each connection.
fn with_quiet_libraries(filter: &str) -> String {
    let directives = || filter.split(',').map(str::trim);
    // The last level counts.
    let mut from_last = directives().rev();
    let level = from_last.find_map(|it| it.parse::<LevelFilter>().ok());
    let is_verbose = level.is_some_and(|level| level > LevelFilter::INFO);
    let is_named = |library: &str| {
        directives().any(|it| it.split(['=', '[']).next().map(str::trim) == Some(library))
    };
    let mut quiet = filter.to_owned();
    for library in CARRIERS.into_iter().chain(LIBRARIES) {
        if is_verbose && !is_named(library) {
            quiet.push_str(&format!(",{library}=info"));
        }
    }
    quiet
}

/// Parses the filter of a monitor, which has modules and levels only; an empty one is `info`.
///
/// # Errors
/// `text` is no filter.
pub fn parse_targets(text: &str) -> Result<tracing_subscriber::filter::Targets, BadFilter> {
    let text = match text.trim() {
        "" => "info",
        text => text,
    };
    if !names_level(text) {
        return Err(BadFilter::NoLevel {
            text: text.to_owned(),
        });
    }
    text.parse().map_err(|source| BadFilter::Syntax {
        text: text.to_owned(),
        source,
    })
}

/// Tells whether a filter says of anything how much is logged. A word that is no level is taken for
/// the name of a module, all of whose messages are meant: the usual end of a misspelt level.
fn names_level(filter: &str) -> bool {
    filter.split(',').any(|directive| {
        let (_, level) = directive.rsplit_once('=').unwrap_or(("", directive));
        level.trim().parse::<LevelFilter>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_quiet_unless_the_filter_names_them() {
        let quiet = with_quiet_libraries("debug");
        for part in ["debug,", ",h2=info", ",rustls=info", ",bollard=info"] {
            assert!(quiet.contains(part), "{quiet}");
        }
        for named in [
            "debug,h2=trace",
            "h2,debug",
            "trace, h2 =debug",
            "debug,h2[s]=warn",
        ] {
            let filter = with_quiet_libraries(named);
            assert!(!filter.contains("h2=info"), "{filter}");
            assert!(filter.contains(",tower=info"), "{filter}");
        }
        for filter in [
            "info",
            "warn",
            "off",
            "info,store=debug",
            "store=trace",
            "debug,error",
        ] {
            assert_eq!(with_quiet_libraries(filter), filter);
        }
    }

    #[test]
    fn a_filter_without_a_level_is_a_misspelt_one() {
        for text in [
            "info",
            "INFO",
            "off",
            "info,store=debug",
            "store=trace",
            " warn ",
        ] {
            assert!(names_level(text), "{text}");
        }
        for text in ["loud", "inof", "store=loud"] {
            assert!(!names_level(text), "{text}");
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("names no level"), "{error}");
            parse_targets(text).unwrap_err();
        }
        assert!(
            parse_targets("")
                .unwrap()
                .would_enable("x", &tracing::Level::INFO)
        );
    }
}
