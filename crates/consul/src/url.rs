//! The address of a Consul agent, and paths and queries of its API.

use std::fmt::Write as _;

use hyper::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Bytes of a path that stay as they are. Slashes divide the paths of keys.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
const QUERY: &AsciiSet = &PATH.add(b'/');

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) is_https: bool,
    /// A DNS name or an IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The part of the address behind the host, without a slash at its end: for servers behind a proxy.
    pub(crate) prefix: String,
}

impl Server {
    /// Reads `http[s]://HOST[:PORT][/PREFIX]`, or `HOST:PORT`, whose scheme `is_https` says.
    ///
    /// # Errors
    /// The reason, with the form that is wanted.
    pub(crate) fn parse(address: &str, is_https: bool) -> Result<Self, String> {
        const WANT: &str = "want HOST:PORT or https://HOST[:PORT], as in 127.0.0.1:8500";
        let bad = |problem: &str| Err(format!("{address:?} {problem}: {WANT}"));
        let scheme = if is_https { "https" } else { "http" };
        let text = if address.contains("://") {
            address.to_owned()
        } else {
            format!("{scheme}://{address}")
        };
        let Ok(uri) = text.parse::<Uri>() else {
            return bad("is no address");
        };
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return bad("has no scheme http or https"),
        };
        let Some(authority) = uri.authority() else {
            return bad("names no host");
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return bad("has a user or a query");
        }
        let host = authority.host().trim_matches(['[', ']']);
        let has_port = authority.as_str().len() > authority.host().len();
        let port = match (authority.port_u16(), is_https) {
            (Some(port), _) => port,
            (None, _) if has_port => return bad("has no valid port"),
            (None, true) => 443,
            (None, false) => 80,
        };
        if host.is_empty() {
            return bad("names no host");
        }
        Ok(Self {
            is_https,
            host: host.to_owned(),
            port,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// `host:port`, as in the header `Host`.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A path of the API below `/v1/`, with its query. Texts are escaped.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    path: String,
    query: String,
}

impl Target {
    /// `fixed` is a part of the API; `value` a name or key behind it, or empty.
    ///
    /// # Errors
    /// The value leaves the API: a component is `..` or `.`.
    pub(crate) fn new(fixed: &str, value: &str) -> Result<Self, String> {
        if value.split('/').any(|part| part == ".." || part == ".") {
            return Err(format!(
                "{value:?} has a component . or ..: write the whole path"
            ));
        }
        let value = utf8_percent_encode(value, PATH);
        Ok(Self {
            path: format!("/v1/{fixed}{value}"),
            query: String::new(),
        })
    }

    /// Adds a parameter, unless its value is empty.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.push(name);
            let _ = write!(self.query, "={}", utf8_percent_encode(value, QUERY));
        }
        self
    }

    /// Adds a parameter without a value.
    pub(crate) fn flag(mut self, name: &str) -> Self {
        self.push(name);
        self
    }

    fn push(&mut self, name: &str) {
        self.query
            .push(if self.query.is_empty() { '?' } else { '&' });
        self.query.push_str(name);
    }

    pub(crate) fn below(&self, prefix: &str) -> String {
        format!("{prefix}{}{}", self.path, self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (address, want) in [
            ("127.0.0.1:8500", (false, "127.0.0.1", 8500, "")),
            ("https://consul.test", (true, "consul.test", 443, "")),
            ("http://[::1]:8500/c/", (false, "::1", 8500, "/c")),
        ] {
            let server = Server::parse(address, false).unwrap();
            let found = (
                server.is_https,
                server.host.as_str(),
                server.port,
                server.prefix.as_str(),
            );
            assert_eq!(found, want, "{address}");
        }
        let server = Server::parse("[::1]:8501", true).unwrap();
        assert!(server.is_https);
        assert_eq!(server.authority(), "[::1]:8501");
        for bad in [
            "",
            "ftp://x",
            "http://u:p@x",
            "http://x?a=b",
            "x:y",
            "unix:///s",
        ] {
            let problem = Server::parse(bad, false).unwrap_err();
            assert!(problem.contains("want HOST:PORT"), "{problem}");
        }
    }

    #[test]
    fn names_stay_below_the_api() {
        let target = Target::new("kv/", "a b/c?d").unwrap();
        let target = target.with("dc", "").with("ns", "a&b").flag("recurse");
        assert_eq!(target.below("/c"), "/c/v1/kv/a%20b/c%3Fd?ns=a%26b&recurse");
        assert!(
            Target::new("kv/", "../agent/self")
                .unwrap_err()
                .contains("..")
        );
    }
}
