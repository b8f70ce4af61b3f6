//! Signal names of job files.

use nix::sys::signal::Signal;

/// Returns the signal called `name`, as in `SIGTERM` or `TERM`; an empty or unknown name is SIGINT.
/// Source: Nomad 2.0 behaviour of its exec family.
pub(crate) fn or_interrupt(name: &str) -> Signal {
    let name = name.trim().to_ascii_uppercase();
    let full = if name.starts_with("SIG") {
        name
    } else {
        format!("SIG{name}")
    };
    full.parse().unwrap_or(Signal::SIGINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_with_and_without_sig() {
        for (name, signal) in [
            ("SIGTERM", Signal::SIGTERM),
            ("term", Signal::SIGTERM),
            ("SIGHUP", Signal::SIGHUP),
            ("", Signal::SIGINT),
            ("SIGNONSENSE", Signal::SIGINT),
        ] {
            assert_eq!(or_interrupt(name), signal, "{name:?}");
        }
    }
}
