//! Addresses of gateways.

use std::fmt;

/// The address of `kafila dev`.
pub const DEFAULT: &str = "http://127.0.0.1:4646";

/// Default port of gateways.
const DEFAULT_PORT: u16 = 4646;

/// A text that is not the address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddress {
    pub text: String,
    /// The problem, such as `it names no host`.
    pub problem: String,
}

impl std::error::Error for InvalidAddress {}

impl fmt::Display for InvalidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, problem } = self;
        write!(
            f,
            "the gateway address {text:?} is invalid: {problem}; use the form {DEFAULT}"
        )
    }
}

/// Returns `text` as a URL, such as `http://127.0.0.1:4646`. Without a scheme the connection is not
/// encrypted and the default port is the gateway's; a URL without a port has port 80 or 443.
///
/// # Errors
/// `text` is not an address.
pub fn parse(text: &str) -> Result<String, InvalidAddress> {
    let bad = |problem: &str| InvalidAddress {
        text: text.to_owned(),
        problem: problem.to_owned(),
    };
    let (scheme, rest) = match text.split_once("://") {
        None => ("http", text),
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some((scheme, _)) => return Err(bad(&format!("{scheme} is not supported"))),
    };
    let host = rest.split('/').next().unwrap_or_default();
    let name = port_of(host).map_or(host, |(name, _)| name);
    if name.is_empty() || host.contains(char::is_whitespace) {
        return Err(bad("it names no host"));
    }
    if let Some((_, port)) = port_of(host)
        && port.parse::<u16>().is_err()
    {
        return Err(bad(&format!(
            "the port {port:?} is not a number up to 65535"
        )));
    }
    let rest = rest.trim_end_matches('/');
    let port = if text.contains("://") || port_of(host).is_some() || rest != host {
        String::new()
    } else {
        format!(":{DEFAULT_PORT}")
    };
    Ok(format!("{scheme}://{rest}{port}"))
}

/// Splits `host` at its port; colons inside the brackets of `[::1]` do not count.
fn port_of(host: &str) -> Option<(&str, &str)> {
    let name_end = host.rfind(']').unwrap_or_default();
    let colon = name_end + host[name_end..].find(':')?;
    Some((&host[..colon], &host[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_gets_the_default_port() {
        let table = [
            ("10.0.0.1:4646", "http://10.0.0.1:4646"),
            ("http://10.0.0.1:4646/", "http://10.0.0.1:4646"),
            ("foo", "http://foo:4646"),
            ("foo/", "http://foo:4646"),
            ("[::1]", "http://[::1]:4646"),
            ("[::1]:80", "http://[::1]:80"),
            // A proxy in front of a gateway.
            ("http://foo", "http://foo"),
            ("https://foo:4646/", "https://foo:4646"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_address_is_reported_with_its_problem() {
        let table = [
            ("unix:///run/k.sock", "unix"),
            ("", "no host"),
            ("http://", "no host"),
            (":4646", "no host"),
            ("http://:4646", "no host"),
            ("a b", "no host"),
            ("host:abc", "the port \"abc\" is not a number"),
            ("[::1]:70000", "the port \"70000\" is not a number"),
            ("host:", "the port \"\" is not a number"),
        ];
        for (text, part) in table {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
