//! Which gateway to ask: a flag, the environment, or the address that `kafila dev` uses.

use std::fmt;

use crate::error::Error;

/// Where `kafila dev` serves its gateway.
pub const DEFAULT: &str = "http://127.0.0.1:4646";

/// Where gateways listen unless they are told otherwise.
const DEFAULT_PORT: u16 = 4646;

/// The variables that may hold an address, the first that is set wins. The second is the one that
/// Nomad's users have in their shells.
const VARIABLES: [&str; 2] = ["KAFILA_ADDR", "NOMAD_ADDR"];

/// A gateway's address, and who named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As in `http://127.0.0.1:4646`.
    pub url: String,
    pub source: Source,
}

/// Who named an address, for messages.
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
    /// The chosen one is not an address of a gateway.
    pub fn choose(
        flag: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
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

    /// A scheme may be left out, `10.0.0.1:4646` is what people paste, and then the port as well:
    /// it is the gateway's usual one. A whole URL means what URLs mean: port 80.
    fn read(text: &str, source: Source) -> Result<Self, Error> {
        let bad = |problem: &str| Error::BadAddress {
            text: text.to_owned(),
            origin: source,
            problem: problem.to_owned(),
        };
        let rest = match text.split_once("://") {
            None => text,
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(bad("TLS is not supported yet")),
            Some((scheme, _)) => return Err(bad(&format!("{scheme} is not supported"))),
        };
        let host = rest.split('/').next().unwrap_or_default();
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(bad("it names no host"));
        }
        let rest = rest.trim_end_matches('/');
        let port = if text.contains("://") || has_port(host) || rest != host {
            String::new()
        } else {
            format!(":{DEFAULT_PORT}")
        };
        Ok(Self {
            url: format!("http://{rest}{port}"),
            source,
        })
    }
}

/// Tells whether `host` ends with a port; the colons in the brackets of `[::1]` begin none.
fn has_port(host: &str) -> bool {
    let name_end = host.rfind(']').unwrap_or_default();
    host[name_end..].contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Address, Error> {
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
    fn a_host_alone_is_asked_at_the_usual_port() {
        let table = [
            ("foo", "http://foo:4646"),
            ("foo/", "http://foo:4646"),
            ("10.0.0.1", "http://10.0.0.1:4646"),
            ("[::1]", "http://[::1]:4646"),
            ("[::1]:80", "http://[::1]:80"),
            ("foo:80", "http://foo:80"),
            // What a proxy before a gateway is called.
            ("http://foo", "http://foo"),
        ];
        for (text, expected) in table {
            assert_eq!(choose(Some(text), &[]).unwrap().url, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_says_where_it_came_from() {
        let table = [
            ("https://a:1", "TLS"),
            ("unix:///run/k.sock", "unix"),
            ("", "no host"),
            ("http://", "no host"),
            ("a b", "no host"),
        ];
        for (text, part) in table {
            let message = choose(Some(text), &[]).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains("-address"), "{text}: {message}");
        }
    }
}
