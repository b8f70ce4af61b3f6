//! Commands and flags of Nomad that Kafila does not support, with alternatives.
//!
//! Without this table clap would suggest a command of similar spelling. `docs/cli.md` has the same
//! rows; a test compares them.

use std::ffi::OsString;

/// An unsupported command.
#[derive(Debug)]
struct Command {
    /// The name without the program's. A group includes all its subcommands.
    name: &'static str,
    instead: &'static str,
}

/// An unsupported flag.
#[derive(Debug)]
struct Flag {
    /// The commands with this flag in Nomad, without the program's name; empty for all commands.
    commands: &'static [&'static str],
    /// Without dashes.
    name: &'static str,
    instead: &'static str,
}

const fn command(name: &'static str, instead: &'static str) -> Command {
    Command { name, instead }
}

const fn flag(
    commands: &'static [&'static str],
    name: &'static str,
    instead: &'static str,
) -> Flag {
    Flag {
        commands,
        name,
        instead,
    }
}

const NO_PART: &str = "there is no replacement yet";
const NO_USERS: &str = "there are no users or tokens: the role in the caller's certificate decides \
                        (see 'kafila tls'); without TLS every caller has all rights";
const NO_FOLDER: &str = "name one file of authorities with -ca-cert";
const NO_ENTERPRISE: &str = "it is part of Nomad Enterprise";
const NO_AGENT: &str = "there are no servers in an agent: 'kafila operator processes' shows \
                        the services, 'kafila node status' the nodes";
const NO_MESH: &str = "there is no service mesh";
const NO_VARIABLES: &str = "templates of job files are files: copy one of those in examples/";
const ETCD: &str = "the state is in etcd: use etcdctl";

/// Sorted by name. A test checks that no supported command is listed.
const COMMANDS: &[Command] = &[
    command("acl", NO_USERS),
    command(
        "agent",
        "start each service (see kafila api-gateway -help), or all with kafila dev",
    ),
    command("agent-info", NO_AGENT),
    command("alloc pause", NO_ENTERPRISE),
    command(
        "check",
        "use the gateway's gRPC health service, grpc.health.v1.Health",
    ),
    command("client-config", NO_AGENT),
    command(
        "config",
        "each service validates its settings when it starts",
    ),
    command("fmt", NO_PART),
    command("job start", "use kafila job run FILE"),
    command("license", "Kafila needs no license"),
    command("login", NO_USERS),
    command("node config", "use the setting gateways of the client-node"),
    command("node identity", NO_USERS),
    command("node-drain", "use kafila node drain"),
    command("operator api", "the API is gRPC: use grpcurl"),
    command("operator autopilot", ETCD),
    command(
        "operator gossip",
        "services discover each other through etcd: use etcdctl",
    ),
    command("operator keyring", NO_PART),
    command(
        "operator metrics",
        "scrape the Prometheus metrics of each service",
    ),
    command("operator raft", ETCD),
    command("operator utilization", NO_ENTERPRISE),
    command("quota", NO_ENTERPRISE),
    command("recommendation", NO_ENTERPRISE),
    command("sentinel", NO_ENTERPRISE),
    command("server", NO_AGENT),
    command("server-force-leave", NO_AGENT),
    command("server-join", NO_AGENT),
    command("server-members", NO_AGENT),
    command("setup", NO_PART),
    command(
        "system reconcile",
        "summaries are computed on each read, so there is nothing to reconcile",
    ),
    command("ui", "use kafila status"),
];

/// Sorted by command, then by name.
const FLAGS: &[Flag] = &[
    flag(&[], "ca-path", NO_FOLDER),
    flag(&[], "filter", "use -json and jq"),
    flag(
        &[],
        "region",
        "there is one region: choose its gateway with -address",
    ),
    flag(&[], "t", "use -json and jq"),
    flag(&[], "token", NO_USERS),
    flag(&[], "ui", "there is no web UI: use kafila status"),
    flag(
        &["alloc logs", "logs"],
        "verbose",
        "logs are always printed in full",
    ),
    flag(
        &["deployment status"],
        "wait",
        "changes are shown immediately",
    ),
    flag(&["job init", "init"], "connect", NO_MESH),
    flag(&["job init", "init"], "list-templates", NO_VARIABLES),
    flag(&["job init", "init"], "template", NO_VARIABLES),
    flag(
        &["job inspect", "inspect"],
        "hcl",
        "the text of the job file is not stored",
    ),
    flag(
        &["job inspect", "inspect"],
        "with-vars",
        "the variables of the job file are not stored",
    ),
    flag(&["job plan", "plan"], "policy-override", NO_ENTERPRISE),
    flag(&["job plan", "plan"], "vault-namespace", NO_ENTERPRISE),
    flag(&["job run", "run"], "consul-namespace", NO_ENTERPRISE),
    flag(&["job run", "run"], "policy-override", NO_ENTERPRISE),
    flag(&["job run", "run"], "vault-namespace", NO_ENTERPRISE),
    flag(&["job stop", "stop"], "global", "there is one region"),
    flag(
        &["job validate", "validate"],
        "vault-namespace",
        NO_ENTERPRISE,
    ),
];

/// Returns the message for an unsupported command; `None` if Nomad has no such command either.
///
/// `words` is the command line, the program's name first.
pub(crate) fn of_command(words: &[OsString]) -> Option<String> {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_meant = |command: &&Command| {
        let mut name = command.name.split(' ').enumerate();
        name.all(|(position, part)| words.get(position) == Some(&part))
    };
    let command = COMMANDS.iter().find(is_meant)?;
    Some(text(&format!("'{}'", command.name), command.instead))
}

/// Returns the message for an unsupported flag; `None` if Nomad has no such flag either.
///
/// `command` is, for example, `kafila job run`; `flag` has its dashes and perhaps a value.
pub(crate) fn of_flag(command: &str, flag: &str) -> Option<String> {
    let name = flag.trim_start_matches('-').split('=').next()?;
    let command = command.strip_prefix("kafila ").unwrap_or_default();
    let found = FLAGS.iter().find(|flag| {
        flag.name == name && (flag.commands.is_empty() || flag.commands.contains(&command))
    })?;
    let of = match command {
        "" => String::new(),
        command => format!(" of '{command}'"),
    };
    Some(text(&format!("'-{name}'{of}"), found.instead))
}

fn text(name: &str, instead: &str) -> String {
    format!(
        "error: Nomad's {name} is not supported by this version of Kafila.\nInstead: {instead}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user documentation of this table.
    const PAGE: &str = include_str!("../../docs/cli.md");

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn find<'a>(root: &'a clap::Command, name: &str) -> Option<&'a clap::Command> {
        let mut parts = name.split(' ');
        parts.try_fold(root, |command, part| command.find_subcommand(part))
    }

    #[test]
    fn supported_commands_and_flags_are_not_listed() {
        let mut root = crate::args::command();
        root.build();
        for Command { name, .. } in COMMANDS {
            assert!(find(&root, name).is_none(), "kafila {name} is there");
        }
        for flag in FLAGS {
            for name in flag.commands {
                let command = find(&root, name).expect(name);
                let mut args = command.get_arguments();
                let there = args.any(|arg| {
                    arg.get_long() == Some(flag.name)
                        || arg
                            .get_short()
                            .is_some_and(|it| it.to_string() == flag.name)
                });
                assert!(!there, "kafila {name} -{} is there", flag.name);
            }
        }
        assert!(of_command(&words("kafila job plan x")).is_none());
        assert!(of_command(&words("kafila plan x")).is_none());
    }

    #[test]
    fn a_command_is_found_by_its_name_or_its_group() {
        let table = [
            ("kafila job start web", Some("'job start'")),
            ("kafila --address=a:1 job start", Some("'job start'")),
            ("kafila acl token create --name=x", Some("'acl'")),
            ("kafila fs 8a3f /", None),
            ("kafila exec 8a3f sh", None),
            (
                "kafila system reconcile summaries",
                Some("'system reconcile'"),
            ),
            ("kafila system gc", None),
            ("kafila job frobnicate", None),
            ("kafila frobnicate", None),
            ("kafila", None),
        ];
        for (line, expected) in table {
            let said = of_command(&words(line));
            match expected {
                Some(part) => assert!(said.as_deref().unwrap().contains(part), "{line}: {said:?}"),
                None => assert_eq!(said, None, "{line}"),
            }
        }
    }

    #[test]
    fn a_flag_is_found_for_the_commands_that_have_it_in_nomad() {
        let table = [
            ("kafila node status", "--token", true),
            ("kafila job status", "--stats", false),
            ("kafila job status", "--token=x", true),
            ("kafila", "--region", true),
            ("kafila job run", "--policy-override", true),
            ("kafila run", "--policy-override", true),
            ("kafila job run", "--detahc", false),
            ("kafila job status", "-t", true),
            ("kafila job plan", "-policy-override", true),
            ("kafila plan", "-vault-namespace=x", true),
        ];
        for (command, flag, expected) in table {
            assert_eq!(
                of_flag(command, flag).is_some(),
                expected,
                "{command} {flag}"
            );
        }
    }

    #[test]
    fn the_documentation_has_the_same_rows() {
        let cell = |text: &str| text.replace('|', "\\|");
        let commands = COMMANDS
            .iter()
            .map(|it| format!("| `{}` | {} |", it.name, cell(it.instead)));
        let flags = FLAGS.iter().map(|flag| {
            let of = match flag.commands.first() {
                Some(command) => format!("`{command}`"),
                None => "every command".to_owned(),
            };
            format!("| `-{}` | {of} | {} |", flag.name, cell(flag.instead))
        });
        let missing: Vec<String> = commands
            .chain(flags)
            .filter(|row| !PAGE.contains(row))
            .collect();
        assert!(
            missing.is_empty(),
            "docs/cli.md lacks:\n{}",
            missing.join("\n")
        );
    }
}
