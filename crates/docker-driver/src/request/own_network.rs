//! Settings of a container in its allocation's network: it joins the pause container, and its resolver
//! is in files that it mounts, because the engine takes neither for a joined network.

use bollard::models::ContainerCreateBody;
use task_drivers::{TaskConfig, TaskNetwork};

use super::network::dns_servers;
use crate::options::Options;
use crate::pause;

/// Name of a host that stands for the machine.
const HOST_GATEWAY: &str = "host-gateway";

/// Replaces what the engine would refuse. The group's network wins over the task's options. Source:
/// Nomad's public behaviour.
pub(super) fn join(body: &mut ContainerCreateBody, task: &TaskConfig, network: &TaskNetwork) {
    body.hostname = None;
    body.exposed_ports = None;
    body.networking_config = None;
    let host = body.host_config.get_or_insert_default();
    let pause = pause::name(task.id.alloc_id);
    host.network_mode = Some(format!("container:{pause}"));
    host.port_bindings = None;
    host.extra_hosts = None;
    host.dns = None;
    host.dns_search = None;
    host.dns_options = None;
    let binds = host.binds.get_or_insert_default();
    for (source, target) in [
        (&network.hosts, "/etc/hosts"),
        (&network.resolv_conf, "/etc/resolv.conf"),
    ] {
        // A task that mounts a file of its own there keeps it.
        if !binds
            .iter()
            .any(|bind| bind.split(':').nth(1) == Some(target))
        {
            binds.push(format!("{}:{target}", source.display()));
        }
    }
}

/// Contents of a task's own files; `None`: the allocation's are right.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) hosts: Option<String>,
    pub(crate) resolv_conf: Option<String>,
}

/// Returns the files of a task with hosts or a resolver of its own, from those of its allocation.
///
/// # Errors
/// The option that cannot be carried out.
pub(crate) fn files(options: &Options, hosts: &str, resolv_conf: &str) -> Result<Files, String> {
    let mut files = Files::default();
    if !options.extra_hosts.is_empty() {
        let mut text = hosts.to_owned();
        for entry in &options.extra_hosts {
            match entry.split_once(':') {
                Some((_, HOST_GATEWAY)) => {
                    return Err(format!(
                        "option extra_hosts: {entry:?} has no meaning in the group's own network: write the \
                         address of the machine, or remove the entry"
                    ));
                }
                Some((name, address)) => text += &format!("{address}\t{name}\n"),
                None => {
                    return Err(format!(
                        "option extra_hosts: {entry:?} is not of the form name:address"
                    ));
                }
            }
        }
        files.hosts = Some(text);
    }
    let own = [
        ("nameserver", dns_servers(options)),
        ("search", options.dns_search_domains.clone()),
        ("options", options.dns_options.clone()),
    ];
    if own.iter().any(|(_, values)| !values.is_empty()) {
        let mut text = String::new();
        for (word, values) in own {
            let kept = resolv_conf.lines().filter(|line| line.starts_with(word));
            match word {
                _ if values.is_empty() => kept.for_each(|line| text += &format!("{line}\n")),
                "nameserver" => values
                    .iter()
                    .for_each(|it| text += &format!("nameserver {it}\n")),
                _ => text += &format!("{word} {}\n", values.join(" ")),
            }
        }
        files.resolv_conf = Some(text);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(extra_hosts: &[&str], dns_servers: &[&str]) -> Options {
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
        Options {
            extra_hosts: texts(extra_hosts),
            dns_servers: texts(dns_servers),
            ..Options::default()
        }
    }

    #[test]
    fn a_tasks_own_hosts_and_servers_are_in_its_files() {
        let (hosts, resolv_conf) = ("127.0.0.1\tlocalhost\n", "nameserver 9.9.9.9\nsearch lan\n");
        assert_eq!(
            files(&options(&[], &[]), hosts, resolv_conf),
            Ok(Files::default())
        );
        let own = files(
            &options(&["db:10.0.0.5", "v6:fd00::1"], &["1.1.1.1"]),
            hosts,
            resolv_conf,
        );
        let own = own.unwrap();
        assert_eq!(
            own.hosts.as_deref(),
            Some("127.0.0.1\tlocalhost\n10.0.0.5\tdb\nfd00::1\tv6\n")
        );
        assert_eq!(
            own.resolv_conf.as_deref(),
            Some("nameserver 1.1.1.1\nsearch lan\n")
        );
        for entry in ["db", "db:host-gateway"] {
            let error = files(&options(&[entry], &[]), hosts, resolv_conf).unwrap_err();
            assert!(error.contains(entry), "{error}");
        }
    }
}
