//! Contents of an allocation's `hosts` and `resolv.conf`. No I/O.

use std::net::IpAddr;

use model::NetworkStatus;
use model::job::Dns;

/// Returns `hosts`: local names, and the allocation's own.
pub(crate) fn hosts(hostname: &str, status: &NetworkStatus) -> String {
    let mut text = "\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
"
    .to_owned();
    for address in [&status.address, &status.address_ipv6] {
        if !address.is_empty() {
            text += &format!("{address}\t{hostname}\n");
        }
    }
    text
}

/// Returns `resolv.conf`: each part of the first of `asked` that has it, else of the host.
///
/// `upstream`: the file of a resolver on the host that lists its own servers. It counts when the host's
/// file names servers on the loopback interface alone, which no namespace reaches.
pub(crate) fn resolv_conf(asked: &[&Dns], host: &str, upstream: &str) -> String {
    let host = match read(host) {
        host if host.servers.is_empty() => Dns {
            servers: read(upstream).servers,
            ..host
        },
        host => host,
    };
    let all = || asked.iter().copied().chain([&host]);
    let first = |part: fn(&Dns) -> &Vec<String>| {
        all()
            .map(part)
            .find(|part| !part.is_empty())
            .cloned()
            .unwrap_or_default()
    };
    let mut text = String::new();
    for server in first(|dns| &dns.servers) {
        text += &format!("nameserver {server}\n");
    }
    for (word, part) in [
        ("search", first(|dns| &dns.searches)),
        ("options", first(|dns| &dns.options)),
    ] {
        if !part.is_empty() {
            text += &format!("{word} {}\n", part.join(" "));
        }
    }
    text
}

/// Reads a `resolv.conf` without servers on the loopback interface.
fn read(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next().as_deref() {
            Some("nameserver") => dns
                .servers
                .extend(words.next().filter(|it| !is_loopback(it))),
            Some("search" | "domain") => dns.searches = words.collect(),
            Some("options") => dns.options.extend(words),
            _ => {}
        }
    }
    dns
}

fn is_loopback(server: &str) -> bool {
    server
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str =
        "# comment\nnameserver 127.0.0.53\nnameserver 10.0.0.2\nsearch lan\noptions edns0\n";

    #[test]
    fn the_jobs_part_wins_over_the_plugins_and_the_hosts() {
        let dns = |servers: &[&str], searches: &[&str]| Dns {
            servers: servers.iter().map(|it| (*it).to_owned()).collect(),
            searches: searches.iter().map(|it| (*it).to_owned()).collect(),
            options: Vec::new(),
        };
        let none = dns(&[], &[]);
        for (job, plugin, host, upstream, want) in [
            (
                &none,
                &none,
                HOST,
                "",
                "nameserver 10.0.0.2\nsearch lan\noptions edns0\n",
            ),
            (
                &dns(&["9.9.9.9"], &[]),
                &dns(&["1.1.1.1"], &["cni"]),
                HOST,
                "",
                "nameserver 9.9.9.9\nsearch cni\noptions edns0\n",
            ),
            (
                &none,
                &none,
                "nameserver 127.0.0.53\n",
                "nameserver 10.0.0.3\n",
                "nameserver 10.0.0.3\n",
            ),
            (&none, &none, "nameserver ::1\n", "", ""),
            (&none, &none, "", "", ""),
        ] {
            assert_eq!(resolv_conf(&[job, plugin], host, upstream), want);
        }
    }

    #[test]
    fn hosts_names_the_allocation() {
        let status = NetworkStatus {
            address: "172.26.64.2".to_owned(),
            ..NetworkStatus::default()
        };
        let text = hosts("web", &status);
        assert!(
            text.ends_with("ip6-allrouters\n172.26.64.2\tweb\n"),
            "{text}"
        );
        assert!(text.starts_with("127.0.0.1\tlocalhost\n"));
    }
}
