//! The address of a service.

use hyper::Uri;

/// The scheme of an address that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

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
    /// Reads `http[s]://HOST[:PORT][/PREFIX]`; the default port is that of the scheme. With a default scheme
    /// `HOST:PORT` is an address, too. `want` is the form that a refusal names.
    ///
    /// # Errors
    /// The reason, with the form that is wanted.
    pub(crate) fn parse(
        address: &str,
        default_scheme: Option<Scheme>,
        want: &str,
    ) -> Result<Self, String> {
        let bad = |problem: &str| Err(format!("{address:?} {problem}: {want}"));
        if address.contains(['?', '#', ' ', '@']) {
            return bad("has a user, a query or a space");
        }
        let text = match default_scheme {
            _ if address.contains("://") => address.to_owned(),
            Some(Scheme::Http) => format!("http://{address}"),
            Some(Scheme::Https) => format!("https://{address}"),
            None => return bad("has no scheme http or https"),
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

#[cfg(test)]
mod tests {
    use super::*;

    const WANT: &str = "want https://HOST[:PORT]";

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        for (address, want) in [
            ("https://vault.test:8200", (true, "vault.test", 8200, "")),
            ("https://vault.test/", (true, "vault.test", 443, "")),
            ("http://127.0.0.1:8200/v/", (false, "127.0.0.1", 8200, "/v")),
            ("http://[::1]:8500/c/", (false, "::1", 8500, "/c")),
            ("http://[::1]", (false, "::1", 80, "")),
        ] {
            let server = Server::parse(address, None, WANT).unwrap();
            let found = (
                server.is_https,
                server.host.as_str(),
                server.port,
                server.prefix.as_str(),
            );
            assert_eq!(found, want, "{address}");
        }
        for bad in [
            "",
            "vault.test:8200",
            "ftp://x",
            "https://",
            "https://x:y",
            "https://u:p@x",
            "https://x?a",
            "https://x#a",
            "https://[::1",
            "unix:///s",
        ] {
            let problem = Server::parse(bad, None, WANT).unwrap_err();
            assert!(problem.contains(bad) && problem.contains(WANT), "{problem}");
        }
    }

    #[test]
    fn a_default_scheme_makes_a_host_and_a_port_an_address() {
        let parse = |address, scheme| Server::parse(address, Some(scheme), WANT);
        let server = parse("127.0.0.1:8500", Scheme::Http).unwrap();
        assert!(!server.is_https);
        let server = parse("[::1]:8501", Scheme::Https).unwrap();
        assert!(server.is_https);
        assert_eq!(server.authority(), "[::1]:8501");
        assert!(!parse("http://x", Scheme::Https).unwrap().is_https);
        for bad in ["", "x:y", "unix:///s"] {
            let problem = parse(bad, Scheme::Http).unwrap_err();
            assert!(problem.contains(WANT), "{problem}");
        }
    }
}
