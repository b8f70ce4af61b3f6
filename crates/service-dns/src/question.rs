//! Questions: the names of the zone and their meaning. Pure.
//!
//! The forms are those of Consul's DNS, so that configurations keep their shape.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use service_watch::ServiceName;

/// The namespace of names without one.
const DEFAULT_NAMESPACE: &str = "default";

/// The meaning of a name in the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The domain itself.
    Apex,
    /// `[<tag>.]<service>.service` or `_<service>._<tag>.service`, with an optional `.<namespace>.ns` and
    /// `.<datacenter>.dc` after it.
    Service {
        name: ServiceName,
        /// Only instances with this tag.
        tag: Option<String>,
        /// Only instances in this datacenter.
        datacenter: Option<String>,
    },
    /// `<node>.<hexadecimal address>.addr`: the target of SRV records.
    Address(IpAddr),
    /// A part of the tree with names below it, as `service`.
    Branch,
    /// There is no such name.
    Unknown,
}

/// Reads the labels of a name before the domain, from left to right, in lower case.
pub(crate) fn read(labels: &[String]) -> Question {
    let mut rest: Vec<&str> = labels.iter().map(String::as_str).collect();
    let (mut namespace, mut datacenter) = (None, None);
    loop {
        match rest.as_slice() {
            [] => return Question::Apex,
            [.., value, "ns"] if namespace.is_none() => namespace = Some(*value),
            [.., value, "dc"] if datacenter.is_none() => datacenter = Some(*value),
            _ => break,
        }
        rest.truncate(rest.len() - 2);
    }
    match rest.as_slice() {
        ["service" | "addr"] => Question::Branch,
        [before @ .., "service"] => service(before, namespace, datacenter),
        [.., address, "addr"] if namespace.is_none() && datacenter.is_none() => {
            from_hex(address).map_or(Question::Unknown, Question::Address)
        }
        _ => Question::Unknown,
    }
}

fn service(before: &[&str], namespace: Option<&str>, datacenter: Option<&str>) -> Question {
    let (name, tag) = match before {
        [name, tag] if name.starts_with('_') && tag.starts_with('_') => {
            let tag = match &tag[1..] {
                "tcp" | "udp" => None,
                tag => Some(tag.to_owned()),
            };
            (&name[1..], tag)
        }
        // A tag may have dots.
        [tag @ .., name] => (*name, (!tag.is_empty()).then(|| tag.join("."))),
        [] => return Question::Branch,
    };
    if name.is_empty() {
        return Question::Unknown;
    }
    Question::Service {
        name: ServiceName {
            namespace: namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            name: name.to_owned(),
        },
        tag,
        datacenter: datacenter.map(str::to_owned),
    }
}

/// Returns the label of an address: 8 or 32 hexadecimal digits.
pub(crate) fn to_hex(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{:08x}", u32::from(address)),
        IpAddr::V6(address) => format!("{:032x}", u128::from(address)),
    }
}

fn from_hex(label: &str) -> Option<IpAddr> {
    if !label.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match label.len() {
        8 => {
            let bits = u32::from_str_radix(label, 16).ok()?;
            Some(Ipv4Addr::from(bits).into())
        }
        32 => {
            let bits = u128::from_str_radix(label, 16).ok()?;
            Some(Ipv6Addr::from(bits).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Question {
        let labels = text.split('.').filter(|label| !label.is_empty());
        read(&labels.map(str::to_owned).collect::<Vec<_>>())
    }

    fn service(namespace: &str, name: &str, tag: &str, datacenter: &str) -> Question {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Question::Service {
            name: ServiceName {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            tag: given(tag),
            datacenter: given(datacenter),
        }
    }

    #[test]
    fn names_have_tags_namespaces_and_datacenters() {
        for (text, want) in [
            ("web.service", service("default", "web", "", "")),
            ("v1.web.service", service("default", "web", "v1", "")),
            ("v1.2.web.service", service("default", "web", "v1.2", "")),
            ("_web._tcp.service", service("default", "web", "", "")),
            ("_web._udp.service", service("default", "web", "", "")),
            ("_web._v1.service", service("default", "web", "v1", "")),
            ("web.service.prod.ns", service("prod", "web", "", "")),
            ("v1.web.service.prod.ns", service("prod", "web", "v1", "")),
            ("web.service.dc2.dc", service("default", "web", "", "dc2")),
            (
                "web.service.prod.ns.dc2.dc",
                service("prod", "web", "", "dc2"),
            ),
            (
                "web.service.dc2.dc.prod.ns",
                service("prod", "web", "", "dc2"),
            ),
            // A service may have any of the words as its name.
            ("service.service", service("default", "service", "", "")),
            ("ns.service", service("default", "ns", "", "")),
        ] {
            assert_eq!(of(text), want, "{text}");
        }
    }

    #[test]
    fn other_names_are_branches_or_unknown() {
        assert_eq!(of(""), Question::Apex);
        for text in ["service", "addr", "service.prod.ns"] {
            assert_eq!(of(text), Question::Branch, "{text}");
        }
        for text in [
            "web",
            "ns",
            "prod.ns",
            "web.services",
            "_.service.x",
            "n1.zz.addr",
            "n1.addr",
        ] {
            let found = of(text);
            assert!(
                matches!(found, Question::Unknown | Question::Apex),
                "{text}: {found:?}"
            );
        }
        assert_eq!(of("_._tcp.service"), Question::Unknown);
    }

    #[test]
    fn an_address_is_its_own_name() {
        for text in ["10.0.0.7", "fd00::2", "255.255.255.255"] {
            let address: IpAddr = text.parse().unwrap();
            let name = format!("n1.{}.addr", to_hex(address));
            assert_eq!(of(&name), Question::Address(address));
        }
    }
}
