//! A plugin's output: the addresses in its result, or its error. No I/O.

use std::net::IpAddr;

use model::NetworkStatus;
use model::job::Dns;
use serde::Deserialize;
use serde_json::Value;

/// Part of a result that is read. Source: the specification of CNI, "Add Success".
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    interfaces: Vec<Interface>,
    ips: Vec<Ip>,
    dns: ServersOfPlugin,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Interface {
    name: String,
    /// Empty: an interface of the host.
    sandbox: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ip {
    address: String,
    interface: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServersOfPlugin {
    nameservers: Vec<String>,
    domain: String,
    search: Vec<String>,
    options: Vec<String>,
}

/// Returns the allocation's addresses and the resolver that the plugins name.
///
/// Of several interfaces in the namespace, the first in alphabetical order that has an address counts.
/// Source: Nomad's public behaviour.
///
/// # Errors
/// The result has no address in the namespace.
pub(crate) fn read(result: &Value) -> Result<(NetworkStatus, Dns), String> {
    let answer = Answer::deserialize(result).map_err(|error| error.to_string())?;
    let interface = |ip: &Ip| {
        // A result with a single interface may leave the reference out.
        let interface = answer.interfaces.get(ip.interface.unwrap_or(0));
        interface.filter(|it| ip.interface.is_none() || !it.sandbox.is_empty())
    };
    let mut names: Vec<&str> = answer
        .ips
        .iter()
        .filter_map(|ip| Some(interface(ip)?.name.as_str()))
        .collect();
    names.sort_unstable();
    let name = names.first().copied();
    let mut status = NetworkStatus {
        interface: name.unwrap_or("eth0").to_owned(),
        ..NetworkStatus::default()
    };
    for ip in &answer.ips {
        if name.is_some() && interface(ip).map(|it| it.name.as_str()) != name {
            continue;
        }
        let address = ip.address.split('/').next().unwrap_or_default();
        match address.parse() {
            Ok(IpAddr::V4(_)) if status.address.is_empty() => status.address = address.to_owned(),
            Ok(IpAddr::V6(_)) if status.address_ipv6.is_empty() => {
                status.address_ipv6 = address.to_owned();
            }
            _ => {}
        }
    }
    if status.address.is_empty() && status.address_ipv6.is_empty() {
        return Err("the plugins' result has no address in the namespace".to_owned());
    }
    let mut searches = answer.dns.search;
    if !answer.dns.domain.is_empty() && searches.is_empty() {
        searches.push(answer.dns.domain);
    }
    let dns = Dns {
        servers: answer.dns.nameservers,
        searches,
        options: answer.dns.options,
    };
    Ok((status, dns))
}

/// Returns the message of a plugin that failed: its error in JSON, else its standard error.
pub(crate) fn failure(stdout: &str, stderr: &str) -> String {
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Failure {
        msg: String,
        details: String,
    }
    let failure: Failure = serde_json::from_str(stdout).unwrap_or_default();
    let texts = [failure.msg.as_str(), failure.details.as_str()];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    match texts.as_slice() {
        [] => stderr.trim().to_owned(),
        texts => texts.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_address_is_that_of_the_first_interface_in_the_namespace() {
        let result = json!({
            "interfaces": [
                {"name": "kafila", "mac": "x"},
                {"name": "veth1"},
                {"name": "eth1", "sandbox": "/run/n"},
                {"name": "eth0", "sandbox": "/run/n"},
            ],
            "ips": [
                {"address": "10.0.0.9/8", "interface": 2},
                {"address": "172.26.64.7/20", "gateway": "172.26.64.1", "interface": 3},
                {"address": "fd00::7/64", "interface": 3},
                {"address": "1.1.1.1/8", "interface": 0},
            ],
            "dns": {"nameservers": ["9.9.9.9"], "domain": "lan"},
        });
        let (status, dns) = read(&result).unwrap();
        assert_eq!(status.interface, "eth0");
        assert_eq!(status.address, "172.26.64.7");
        assert_eq!(status.address_ipv6, "fd00::7");
        assert_eq!(
            (dns.servers, dns.searches),
            (vec!["9.9.9.9".to_owned()], vec!["lan".to_owned()])
        );
    }

    #[test]
    fn a_result_without_an_address_is_an_error() {
        assert!(read(&json!({})).is_err());
        assert!(read(&json!({"ips": [{"address": "x", "interface": 4}]})).is_err());
        let plain = read(&json!({"ips": [{"address": "10.1.0.2/24"}]}))
            .unwrap()
            .0;
        assert_eq!(
            (plain.interface.as_str(), plain.address.as_str()),
            ("eth0", "10.1.0.2")
        );
    }

    #[test]
    fn the_error_of_a_plugin_is_its_message() {
        let json = r#"{"code": 11, "msg": "no free address", "details": "range 1"}"#;
        assert_eq!(failure(json, "noise"), "no free address; range 1");
        assert_eq!(failure("", " exec format error\n"), "exec format error");
    }
}
