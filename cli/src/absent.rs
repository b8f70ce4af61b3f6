//! What Nomad's command line has and this one does not yet, and what to use instead.
//!
//! Users come with Nomad's commands in their fingers and in their scripts. Without this table clap
//! offers whatever is spelled alike: `plan-applier` for `plan`, `stop` for `history`. The table of
//! `docs/cli.md` has the same rows; a test compares them.
//!
//! Pure: words in, text out.

use std::ffi::OsString;

/// A command that there is not.
#[derive(Debug)]
struct Command {
    /// Without the program's name. A group stands for everything in it.
    name: &'static str,
    instead: &'static str,
}

/// A flag that there is not.
#[derive(Debug)]
struct Flag {
    /// The commands that have it in Nomad, without the program's name; none: any command.
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

/// What can be said of what has no stand-in.
const NO_PART: &str = "nothing stands in for it yet";
const NO_USERS: &str = "there are no users or tokens yet: whoever reaches the gateway may do all";
const NO_TLS: &str = "there is no TLS yet: keep the gateway on a trusted network";
const NO_ENTERPRISE: &str = "it is part of Nomad Enterprise";
const NO_STORAGE: &str = "volumes are directories that are there: make one on a node, then 'kafila \
                          volume register FILE'";
const NO_AGENT: &str = "there is no agent with servers: 'kafila operator leaders' shows the \
                        services that lead, 'kafila node status' the nodes";
const ETCD: &str = "the state is in etcd: use etcdctl";

/// By name. Commands that this version has are not here, nor may they be: a test sees to it.
const COMMANDS: &[Command] = &[
    command("acl", NO_USERS),
    command("action", "run it as a batch job: kafila job run FILE"),
    command(
        "agent",
        "start each service, as in kafila api-gateway -help, or all with kafila dev",
    ),
    command("agent-info", NO_AGENT),
    command("alloc checks", NO_PART),
    command(
        "alloc exec",
        "log in to the node: 'kafila alloc status ID' names it",
    ),
    command(
        "alloc fs",
        "'kafila alloc logs ID' for what tasks print; else look on the node",
    ),
    command("alloc pause", NO_ENTERPRISE),
    command(
        "alloc restart",
        "change the job, such as a value in its meta: kafila job run FILE",
    ),
    command(
        "alloc signal",
        "log in to the node: 'kafila alloc status ID' names it",
    ),
    command(
        "alloc stop",
        "lower the group's count, or stop the job: kafila job stop JOB",
    ),
    command(
        "check",
        "ask gRPC's health service of the gateway, grpc.health.v1.Health",
    ),
    command("client-config", NO_AGENT),
    command("config", "a service checks its settings when it starts"),
    command(
        "exec",
        "log in to the node: 'kafila alloc status ID' names it",
    ),
    command("fmt", NO_PART),
    command(
        "fs",
        "'kafila alloc logs ID' for what tasks print; else look on the node",
    ),
    command(
        "init",
        "begin with one of the files in examples/, such as web.hcl",
    ),
    command("job action", "run it as a batch job: kafila job run FILE"),
    command(
        "job init",
        "begin with one of the files in examples/, such as web.hcl",
    ),
    command(
        "job restart",
        "change the job, such as a value in its meta: kafila job run FILE",
    ),
    command("job start", "kafila job run FILE"),
    command("license", "Kafila needs none"),
    command("login", NO_USERS),
    command("monitor", "each service logs to its standard error"),
    command("node config", "the setting gateways of the client-node"),
    command("node identity", NO_USERS),
    command("node intro", NO_USERS),
    command(
        "node meta",
        "the setting meta of the client-node, as in -set meta.rack=r1",
    ),
    command("node-drain", "kafila node drain"),
    command(
        "operator api",
        "the gateway speaks gRPC: grpcurl lists its calls and makes them",
    ),
    command("operator autopilot", ETCD),
    command(
        "operator debug",
        "each service logs to its standard error and serves metrics",
    ),
    command(
        "operator gossip",
        "services find each other through etcd: use etcdctl",
    ),
    command("operator keyring", NO_PART),
    command(
        "operator metrics",
        "each service serves metrics of its own, for Prometheus",
    ),
    command("operator raft", ETCD),
    command("operator root", NO_PART),
    command(
        "operator snapshot",
        "the state is in etcd: etcdctl snapshot save FILE",
    ),
    command("operator utilization", NO_ENTERPRISE),
    command("plugin", NO_STORAGE),
    command("quota", NO_ENTERPRISE),
    command("recommendation", NO_ENTERPRISE),
    command("sentinel", NO_ENTERPRISE),
    command("server", NO_AGENT),
    command("server-force-leave", NO_AGENT),
    command("server-join", NO_AGENT),
    command("server-members", NO_AGENT),
    command(
        "service",
        "'kafila alloc status ID' shows the ports of an allocation",
    ),
    command("setup", NO_PART),
    command(
        "system reconcile",
        "summaries are worked out whenever somebody asks: there is nothing to repair",
    ),
    command("tls", NO_TLS),
    command("ui", "kafila status"),
    command("var", "give values to a job file with -var and -var-file"),
    command("volume create", NO_STORAGE),
    command("volume deregister", "kafila volume delete ID"),
    command("volume detach", NO_STORAGE),
    command("volume snapshot", NO_STORAGE),
];

/// By command, then by name.
const FLAGS: &[Flag] = &[
    flag(&[], "ca-cert", NO_TLS),
    flag(&[], "ca-path", NO_TLS),
    flag(&[], "client-cert", NO_TLS),
    flag(&[], "client-key", NO_TLS),
    flag(&[], "filter", "-json, and jq"),
    flag(
        &[],
        "region",
        "there is one region: ask its gateway with -address",
    ),
    flag(&[], "stale", "every answer is current"),
    flag(&[], "t", "-json, and jq"),
    flag(&[], "tls-server-name", NO_TLS),
    flag(&[], "tls-skip-verify", NO_TLS),
    flag(&[], "token", NO_USERS),
    flag(&[], "ui", "there is no web UI: kafila status"),
    flag(
        &["alloc logs", "logs"],
        "verbose",
        "logs are printed as they are",
    ),
    flag(&["alloc status"], "stats", "log in to the node"),
    flag(&["deployment status"], "wait", "changes are shown at once"),
    flag(
        &["job inspect", "inspect"],
        "hcl",
        "only the job is kept, not the text of its file",
    ),
    flag(
        &["job inspect", "inspect"],
        "with-vars",
        "only the job is kept, not its file's variables",
    ),
    flag(&["job plan", "plan"], "policy-override", NO_ENTERPRISE),
    flag(&["job plan", "plan"], "vault-namespace", NO_ENTERPRISE),
    flag(&["job run", "run"], "consul-namespace", NO_ENTERPRISE),
    flag(&["job run", "run"], "policy-override", NO_ENTERPRISE),
    flag(&["job run", "run"], "vault-namespace", NO_ENTERPRISE),
    flag(&["job stop", "stop"], "global", "there is one region"),
    flag(&["job stop", "stop"], "no-shutdown-delay", NO_PART),
    flag(
        &["job validate", "validate"],
        "vault-namespace",
        NO_ENTERPRISE,
    ),
    flag(
        &["node status"],
        "self",
        "name the node, or the start of its id: kafila node status ID",
    ),
    flag(&["node status"], "stats", "log in to the node"),
];

/// Returns what to say of a command that there is not; `None` when Nomad has none of that name
/// either. `words` are those of the command line, the program's name first.
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

/// Returns what to say of a flag that `command`, as in `kafila job run`, does not have; `None` when
/// Nomad's has none of that name either. `flag` is as typed, with its dashes and perhaps a value.
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

fn text(what: &str, instead: &str) -> String {
    format!("error: Nomad's {what} is not in this version of Kafila.\nInstead: {instead}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that users look these up in.
    const PAGE: &str = include_str!("../../docs/cli.md");

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn find<'a>(root: &'a clap::Command, name: &str) -> Option<&'a clap::Command> {
        let mut parts = name.split(' ');
        parts.try_fold(root, |command, part| command.find_subcommand(part))
    }

    #[test]
    fn what_there_is_is_not_said_to_be_absent() {
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
    fn a_command_is_known_by_its_group_or_by_itself() {
        let table = [
            ("kafila job restart web", Some("'job restart'")),
            ("kafila --address=a:1 job restart", Some("'job restart'")),
            ("kafila acl token create --name=x", Some("'acl'")),
            ("kafila exec 8a3f sh", Some("'exec'")),
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
    fn a_flag_is_known_where_nomad_has_it() {
        let table = [
            ("kafila node status", "--self", true),
            ("kafila job status", "--self", false),
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
    fn the_page_about_the_command_line_has_the_same_rows() {
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
