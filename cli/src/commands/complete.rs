//! `kafila complete`: the candidates for one word of a command line, which are flags, ids and names. The scripts of
//! shells that `kafila completions` prints (`completions.rs`) call it with the words of the line.

use clap::{Arg, Command, ValueHint};
use proto::v1;

use crate::args;
use crate::connection::Connection;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;

/// The most candidates: a shell lists no more than a screen of them usefully.
const CANDIDATES_MAX: u32 = 200;

/// The objects whose ids or names can stand at a place of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noun {
    Job,
    Allocation,
    Evaluation,
    Deployment,
    Node,
    NodePool,
    Namespace,
    Service,
    Variable,
    Volume,
}

/// Prints the candidates for the last word, one on each line; nothing when there are none or no gateway
/// answers, because an error would end up between the user's words.
pub(super) async fn run(context: &Context, args: &args::Complete) -> Result<Exit, Error> {
    let Some((begun, line)) = args.words.split_last() else {
        return Ok(Exit::Success);
    };
    let mut root = args::command();
    // Only then the commands know the flags of all of them.
    root.build();
    let place = Place::after(&root, line);
    for flag in place.flags(begun) {
        context.printer.out(&flag)?;
    }
    let Some(noun) = place.noun.filter(|_| !begun.starts_with('-')) else {
        return Ok(Exit::Success);
    };
    let found = candidates(&context.connection, noun, begun).await;
    let mut found = found.unwrap_or_default();
    found.retain(|word| word.starts_with(begun.as_str()));
    found.sort_unstable();
    found.dedup();
    for word in found {
        context.printer.out(&word)?;
    }
    Ok(Exit::Success)
}

/// The place of a word on the command line.
struct Place<'a> {
    command: &'a Command,
    /// What the word names; `None`: another kind of word.
    noun: Option<Noun>,
    /// True if the word is the value of the flag before it.
    is_value: bool,
}

impl<'a> Place<'a> {
    /// Returns the place behind `line`. `root` must be built.
    fn after(root: &'a Command, line: &[String]) -> Self {
        let mut command = root;
        let mut path = Vec::new();
        let mut positionals = 0;
        let mut words = line.iter();
        while let Some(word) = words.next() {
            if word.starts_with('-') {
                let Some(flag) = value_flag(command, word) else {
                    continue;
                };
                // Its value is the next word, which may be the one to complete.
                if words.next().is_none() {
                    return Self {
                        command,
                        noun: of_flag(&flag),
                        is_value: true,
                    };
                }
            } else if let Some(child) = command.find_subcommand(word).filter(|_| positionals == 0) {
                path.push(child.get_name());
                command = child;
            } else {
                positionals += 1;
            }
        }
        let takes = |arg: &Arg| {
            !matches!(
                arg.get_value_hint(),
                ValueHint::AnyPath | ValueHint::FilePath
            )
        };
        let first = command.get_positionals().next().filter(|arg| takes(arg));
        let takes_several = |arg: &Arg| {
            arg.get_num_args()
                .is_some_and(|count| count.max_values() > 1)
        };
        let takes_one = first.is_some_and(|arg| positionals == 0 || takes_several(arg));
        Self {
            command,
            noun: of_command(&path).filter(|_| takes_one),
            is_value: false,
        }
    }

    /// Returns the command's flags that begin with `begun`, with as many dashes; none after a single dash
    /// alone, which may become two.
    fn flags(&self, begun: &str) -> Vec<String> {
        let name = begun.trim_start_matches('-');
        let dashes = &begun[..begun.len() - name.len()];
        if self.is_value || !matches!(dashes.len(), 1 | 2) || name.is_empty() && dashes.len() == 1 {
            return Vec::new();
        }
        let visible = self
            .command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set());
        let longs = visible.filter_map(|arg| arg.get_long());
        let mut flags: Vec<String> = longs
            .filter(|long| long.starts_with(name))
            .map(|long| format!("{dashes}{long}"))
            .collect();
        flags.sort_unstable();
        flags
    }
}

/// Returns the name of a flag that is written as `word` and takes the next word as its value.
fn value_flag(command: &Command, word: &str) -> Option<String> {
    let name = word.trim_start_matches('-');
    let is_it = |arg: &&Arg| {
        let short = arg
            .get_short()
            .is_some_and(|short| name == short.to_string());
        (short || arg.get_long() == Some(name)) && arg.get_action().takes_values()
    };
    let flag = command.get_arguments().find(is_it)?;
    Some(flag.get_long().unwrap_or(name).to_owned())
}

/// Returns whether the value of a flag is the id or name of an object.
pub(super) fn takes_an_id(flag: &str) -> bool {
    of_flag(flag).is_some()
}

fn of_flag(flag: &str) -> Option<Noun> {
    match flag {
        "job" => Some(Noun::Job),
        "namespace" => Some(Noun::Namespace),
        "node" | "node-id" => Some(Noun::Node),
        "alloc" => Some(Noun::Allocation),
        "node-pool" => Some(Noun::NodePool),
        _ => None,
    }
}

/// Returns the noun of the first argument of a command.
fn of_command(path: &[&str]) -> Option<Noun> {
    Some(match path {
        ["job", "action"] | ["node", "meta", ..] => return None,
        ["job", ..] | ["status" | "stop" | "inspect"] => Noun::Job,
        ["alloc", ..] | ["logs" | "exec" | "fs" | "alloc-status"] => Noun::Allocation,
        ["eval", ..] | ["eval-status"] => Noun::Evaluation,
        ["deployment", ..] => Noun::Deployment,
        ["node", "introduction", ..] => return None,
        ["node", "pool", ..] => Noun::NodePool,
        ["node", ..] | ["node-status"] => Noun::Node,
        ["namespace", ..] => Noun::Namespace,
        ["service", ..] => Noun::Service,
        ["var", ..] => Noun::Variable,
        ["volume", "claim", ..] => return None,
        ["volume", ..] => Noun::Volume,
        _ => return None,
    })
}

async fn candidates(
    connection: &Connection,
    noun: Noun,
    begun: &str,
) -> Result<Vec<String>, Error> {
    let page = |namespace: &str| v1::QueryOptions {
        prefix: begun.to_owned(),
        per_page: CANDIDATES_MAX,
        ..connection.options(namespace)
    };
    let (own, any) = (connection.namespace(), connection.any_namespace());
    Ok(match noun {
        Noun::Job => ids(connection.job_page(page(own)).await?.0, |it| it.id),
        Noun::Allocation => {
            let found = connection.allocations(begun, CANDIDATES_MAX).await?;
            ids(found, |it| it.id)
        }
        Noun::Evaluation => ids(connection.evaluations(page(any), "", "").await?.0, |it| {
            it.id
        }),
        Noun::Deployment => ids(connection.deployments_page(page(any)).await?.0, |it| it.id),
        Noun::Node => ids(connection.nodes(page("")).await?.0, |it| it.id),
        Noun::NodePool => ids(connection.node_pools(page("")).await?.0, |it| it.name),
        Noun::Namespace => ids(connection.namespaces(page("")).await?.0, |it| it.name),
        Noun::Service => {
            let message = v1::ListServicesRequest {
                options: Some(page(own)),
            };
            ids(connection.services(message).await?.0, |it| it.name)
        }
        Noun::Variable => {
            let message = v1::ListVariablesRequest {
                namespace: own.to_owned(),
                prefix: begun.to_owned(),
                per_page: CANDIDATES_MAX,
                next_token: String::new(),
            };
            ids(connection.variables(message).await?.0, |it| it.path)
        }
        Noun::Volume => {
            // The request's prefix is one of names.
            let message = v1::ListVolumesRequest {
                options: Some(connection.options(own)),
                ..v1::ListVolumesRequest::default()
            };
            ids(connection.volumes(message).await?.0, |it| it.id)
        }
    })
}

fn ids<T>(found: Vec<T>, id: impl Fn(T) -> String) -> Vec<String> {
    found.into_iter().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noun_after(line: &str) -> Option<Noun> {
        let mut root = args::command();
        root.build();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Place::after(&root, &words).noun
    }

    #[test]
    fn flags_have_the_dashes_that_were_typed() {
        let mut root = args::command();
        root.build();
        let flags = |line: &str, begun: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Place::after(&root, &words).flags(begun)
        };
        assert_eq!(flags("job run", "-det"), ["-detach"]);
        assert_eq!(flags("job run", "--det"), ["--detach"]);
        assert_eq!(flags("job run -detach", "-stal"), ["-stale"]);
        assert_eq!(flags("job run -namespace", "-det"), [""; 0]);
        assert_eq!(flags("job run", "-"), [""; 0]);
        assert_eq!(flags("job run", "x"), [""; 0]);
        assert!(flags("job run", "--").contains(&"--check-index".to_owned()));
    }

    #[test]
    fn a_place_of_the_line_has_the_noun_of_its_command_or_flag() {
        for (line, want) in [
            ("job status", Some(Noun::Job)),
            ("job status -verbose", Some(Noun::Job)),
            ("-address http://a job stop", Some(Noun::Job)),
            ("job stop web", Some(Noun::Job)),
            ("job status web", None),
            ("job run", None),
            ("run", None),
            ("alloc logs -f", Some(Noun::Allocation)),
            ("alloc logs -job", Some(Noun::Job)),
            ("logs 8a3f2c1e", None),
            ("node drain -enable", Some(Noun::Node)),
            ("node pool info", Some(Noun::NodePool)),
            ("node introduction revoke", None),
            ("node meta apply", None),
            ("node meta apply -node-id", Some(Noun::Node)),
            ("action", None),
            ("job action -alloc", Some(Noun::Allocation)),
            ("alloc fs", Some(Noun::Allocation)),
            ("job status -namespace", Some(Noun::Namespace)),
            ("var get", Some(Noun::Variable)),
            ("job", None),
            ("", None),
        ] {
            assert_eq!(noun_after(line), want, "{line:?}");
        }
    }
}
