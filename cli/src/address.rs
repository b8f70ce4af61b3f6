//! Address of the gateway: from a flag, the environment, or the default.

use std::fmt;

pub use kafila_client::address::DEFAULT;
use kafila_client::address::parse;

/// Environment variables with the address, by precedence; the second is Nomad's.
const VARIABLES: [&str; 2] = ["KAFILA_ADDR", "NOMAD_ADDR"];

/// A gateway's address and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// For example `http://127.0.0.1:4646`; several gateways are separated by commas.
    pub url: String,
    pub source: Source,
}

impl Address {
    /// Returns `https` if the command uses TLS, else `http`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.url.starts_with("https:") {
            "https"
        } else {
            "http"
        }
    }
}

/// An address that cannot belong to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The gateway address {text:?} ({origin}) is invalid: {problem}.\n\
     Use the form http://127.0.0.1:4646 with -address or KAFILA_ADDR."
)]
pub struct InvalidAddress {
    pub text: String,
    // Not `source`: it is no error.
    pub origin: Source,
    pub problem: String,
}

/// The origin of an address, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    Variable(&'static str),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("from -address"),
            Self::Variable(name) => write!(f, "from {name}"),
            Self::Default => f.write_str("the default"),
        }
    }
}

impl Address {
    /// Chooses the address: the flag, then the environment, then the default.
    ///
    /// # Errors
    /// The chosen address is invalid.
    pub fn choose(
        flag: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidAddress> {
        if let Some(text) = flag {
            return Self::read(text, Source::Flag);
        }
        for name in VARIABLES {
            if let Some(text) = variable(name).filter(|text| !text.is_empty()) {
                return Self::read(&text, Source::Variable(name));
            }
        }
        Self::read(DEFAULT, Source::Default)
    }

    /// Parses an address, or several with commas.
    fn read(text: &str, source: Source) -> Result<Self, InvalidAddress> {
        let urls = text.split(',').map(|text| parse(text.trim()));
        let urls: Vec<String> = urls.collect::<Result<_, _>>().map_err(|error| {
            let kafila_client::address::InvalidAddress { text, problem } = error;
            InvalidAddress {
                text,
                origin: source,
                problem,
            }
        })?;
        Ok(Self {
            url: urls.join(","),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Address, InvalidAddress> {
        Address::choose(flag, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_default() {
        let both = [("KAFILA_ADDR", "http://k:1"), ("NOMAD_ADDR", "http://n:2")];
        type Case<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], &'a str, Source);
        let table: [Case<'_>; 5] = [
            (Some("http://f:3"), &both, "http://f:3", Source::Flag),
            (None, &both, "http://k:1", Source::Variable("KAFILA_ADDR")),
            (
                None,
                &both[1..],
                "http://n:2",
                Source::Variable("NOMAD_ADDR"),
            ),
            (None, &[("KAFILA_ADDR", "")], DEFAULT, Source::Default),
            (None, &[], DEFAULT, Source::Default),
        ];
        for (flag, variables, url, source) in table {
            let address = choose(flag, variables).unwrap();
            assert_eq!((address.url.as_str(), address.source), (url, source));
        }
    }

    #[test]
    fn an_address_may_leave_out_its_scheme_and_end_with_a_slash() {
        for text in [
            "10.0.0.1:4646",
            "http://10.0.0.1:4646",
            "http://10.0.0.1:4646/",
        ] {
            let address = choose(Some(text), &[]).unwrap();
            assert_eq!(address.url, "http://10.0.0.1:4646");
        }
    }

    #[test]
    fn a_host_without_a_port_gets_the_default_port() {
        let table = [
            ("foo", "http://foo:4646"),
            ("foo/", "http://foo:4646"),
            ("10.0.0.1", "http://10.0.0.1:4646"),
            ("[::1]", "http://[::1]:4646"),
            ("[::1]:80", "http://[::1]:80"),
            ("foo:80", "http://foo:80"),
            // A proxy in front of a gateway.
            ("http://foo", "http://foo"),
            ("https://foo:4646/", "https://foo:4646"),
            ("foo, https://bar:1", "http://foo:4646,https://bar:1"),
        ];
        for (text, expected) in table {
            assert_eq!(choose(Some(text), &[]).unwrap().url, expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_reported_with_its_origin() {
        let table = [
            ("unix:///run/k.sock", "unix"),
            ("", "no host"),
            ("http://", "no host"),
            ("a b", "no host"),
            ("host:abc", "the port \"abc\" is not a number"),
            ("http://host:abc", "the port \"abc\" is not a number"),
            ("[::1]:70000", "the port \"70000\" is not a number"),
            ("host:", "the port \"\" is not a number"),
        ];
        for (text, part) in table {
            let message = choose(Some(text), &[]).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains("-address"), "{text}: {message}");
        }
    }
}
