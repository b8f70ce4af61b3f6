//! The form of DNS names in certificates.

use std::net::IpAddr;

use crate::error::Error;

/// Checks a DNS name, which may begin with `*.`.
pub(crate) fn check_dns_name(name: &str) -> Result<(), Error> {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.len() <= 253
        && name.strip_prefix("*.").unwrap_or(name).split('.').all(is_label)
        // An address as a DNS name never matches.
        && name.parse::<IpAddr>().is_err();
    if is_name {
        Ok(())
    } else {
        Err(Error::DnsName(name.to_owned()))
    }
}
