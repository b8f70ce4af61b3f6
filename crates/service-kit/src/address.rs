//! Addresses of other services in configuration: `http://host:port`, or `host:port` for short.
//!
//! Read when the process starts: one that nothing could be reached at would only fail later, and
//! for ever.

use http::Uri;

/// Returns `text` as an address with its scheme.
///
/// # Errors
/// It is no address; the error shows a valid one.
pub fn parse(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    let refuse = |why: &str| {
        Err(format!(
            "{text:?} is not an address: {why}; want http://HOST:PORT, https://HOST:PORT or HOST:PORT"
        ))
    };
    let full = match text.split_once("://") {
        None => format!("http://{text}"),
        Some(("http" | "https", _)) => text.to_owned(),
        Some(_) => return refuse("it begins with http or https"),
    };
    let Ok(uri) = full.parse::<Uri>() else {
        return refuse("it needs a host and a port");
    };
    if uri.host().is_none_or(str::is_empty) {
        return refuse("it needs a host");
    }
    if uri.port_u16().is_none() {
        return match port_text(&uri) {
            "" => refuse("it needs a port"),
            port => refuse(&format!("its port {port:?} is not a number up to 65535")),
        };
    }
    if uri.path() != "/" || uri.query().is_some() {
        return refuse("nothing follows the port");
    }
    Ok(full)
}

/// Returns what follows the host, without the colon.
fn port_text(uri: &Uri) -> &str {
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    let (_, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    let rest = address.strip_prefix(uri.host().unwrap_or_default());
    rest.unwrap_or_default().trim_start_matches(':')
}

/// A list of addresses: a TOML array, or a text with commas.
///
/// Use with `#[serde(with = "service_kit::address::list")]`.
pub mod list {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    /// # Errors
    /// The value is no list, or something in it is no address.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<String>, D::Error> {
        let texts = crate::config::list::deserialize(deserializer)?;
        let addresses = texts.iter().map(|text| super::parse(text));
        addresses
            .collect::<Result<_, _>>()
            .map_err(D::Error::custom)
    }

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(items: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        crate::config::list::serialize(items, serializer)
    }
}

/// An address that may be left out.
///
/// Use with `#[serde(with = "service_kit::address::optional")]`.
pub mod optional {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// # Errors
    /// The value is no address.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let address = text.map(|text| super::parse(&text)).transpose();
        address.map_err(D::Error::custom)
    }

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(
        address: &Option<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        address.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port_and_may_leave_out_http() {
        for (text, expected) in [
            ("http://10.0.0.1:2379", "http://10.0.0.1:2379"),
            ("http://etcd:2379/", "http://etcd:2379"),
            ("https://10.0.0.1:2379", "https://10.0.0.1:2379"),
            ("10.0.0.1:2379", "http://10.0.0.1:2379"),
            (" [::1]:4646 ", "http://[::1]:4646"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected));
        }
        for (text, why) in [
            ("foo", "needs a port"),
            ("", "needs a host"),
            ("http://foo", "needs a port"),
            ("unix:///run/x", "begins with http"),
            (":4646", "needs a host"),
            ("foo:99999", "port \"99999\" is not a number"),
            ("10.0.0.1:abc", "port \"abc\" is not a number"),
            ("[::1]:abc", "port \"abc\" is not a number"),
            ("foo:1x", "; want http://HOST:PORT"),
            ("http://foo:1/v1", "nothing follows"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
