//! The address of a Vault server, and paths of its API.

use std::fmt::Write as _;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Bytes of a path that a request line can't carry as they are. Slashes stay: they divide Vault's paths.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A server: scheme, host and port.
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
    /// Reads `https://host[:port][/prefix]`; the default port is that of the scheme.
    ///
    /// # Errors
    /// The reason, with the form that is wanted.
    pub(crate) fn parse(address: &str) -> Result<Self, String> {
        const WANT: &str = "want https://HOST[:PORT], as in https://vault.example.com:8200";
        let (is_https, rest) = match address.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(format!("{address:?} has no scheme http or https: {WANT}")),
        };
        let (authority, prefix) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if authority.contains('@') || address.contains(['?', '#', ' ']) {
            return Err(format!(
                "{address:?} has a user, a query or a space: {WANT}"
            ));
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            let (host, rest) = inner
                .split_once(']')
                .ok_or_else(|| format!("{address:?} has a [ without ]: {WANT}"))?;
            (host, rest.strip_prefix(':'))
        } else {
            match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            }
        };
        if host.is_empty() {
            return Err(format!("{address:?} names no host: {WANT}"));
        }
        let port = match port {
            None => if is_https { 443 } else { 80 },
            Some(text) => text
                .parse()
                .map_err(|_| format!("{address:?} has the port {text:?}: {WANT}"))?,
        };
        Ok(Self {
            is_https,
            host: host.to_owned(),
            port,
            prefix: prefix.trim_end_matches('/').to_owned(),
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

/// The path and query of a request for `path` below `/v1/`; `query` as in `list=true`, or empty.
///
/// # Errors
/// The path leaves the API: a component is `..` or `.`.
pub(crate) fn target(prefix: &str, path: &str, query: &str) -> Result<String, String> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Err("the path is empty: want one as in secret/data/app".to_owned());
    }
    if path.split('/').any(|part| part == ".." || part == ".") {
        return Err(format!("the path {path:?} has a component \"..\" or \".\""));
    }
    let mut target = format!("{prefix}/v1/{}", utf8_percent_encode(path, ESCAPED));
    if !query.is_empty() {
        let _ = write!(target, "?{query}");
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_scheme_a_host_and_a_port() {
        for (address, want) in [
            ("https://vault.test:8200", (true, "vault.test", 8200, "")),
            ("https://vault.test/", (true, "vault.test", 443, "")),
            ("http://127.0.0.1:8200/v/", (false, "127.0.0.1", 8200, "/v")),
            ("http://[::1]:8200", (false, "::1", 8200, "")),
            ("http://[::1]", (false, "::1", 80, "")),
        ] {
            let server = Server::parse(address).unwrap();
            let found = (
                server.is_https,
                server.host.as_str(),
                server.port,
                server.prefix.as_str(),
            );
            assert_eq!(found, want, "{address}");
        }
        let server = Server::parse("http://[::1]:8200").unwrap();
        assert_eq!(server.authority(), "[::1]:8200");
        for bad in [
            "vault.test:8200",
            "ftp://x",
            "https://",
            "https://x:y",
            "https://u:p@x",
            "https://x?a",
            "https://[::1",
        ] {
            let problem = Server::parse(bad).unwrap_err();
            assert!(problem.contains(bad) && problem.contains("want https://"), "{problem}");
        }
    }

    #[test]
    fn paths_stay_below_the_api() {
        let of = |path, query| target("", path, query);
        assert_eq!(of("/kv/a b/", ""), Ok("/v1/kv/a%20b".to_owned()));
        assert_eq!(of("kv/x?y", "list=true"), Ok("/v1/kv/x%3Fy?list=true".to_owned()));
        assert!(of("kv/../sys", "").unwrap_err().contains(".."));
        assert!(of("/", "").unwrap_err().contains("empty"));
    }
}
