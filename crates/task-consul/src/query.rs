//! Arguments of the functions of Consul: the query that a look-up asks. Pure.
//!
//! Source: the documentation of consul-template. A name may be followed by `?query`, `@datacenter`, `~near` and
//! `|filter`, in this order.

use std::collections::BTreeSet;

use consul::{Scope, Token};

/// A query, the same for all look-ups that it answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Query {
    pub kind: Kind,
    pub scope: Scope,
}

/// The subject of a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Key(String),
    /// All keys with this prefix.
    Keys(String),
    Service {
        name: String,
        /// Empty: any.
        tag: String,
        /// Only instances whose checks pass.
        passing: bool,
    },
    Services,
    /// Empty: the agent's own.
    Node(String),
    Nodes,
    Datacenters,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Key,
    /// Pairs below a prefix: those directly below it, or all.
    Pairs {
        prefix: String,
        is_deep: bool,
    },
    /// Instances in one of these states; empty: in any.
    Instances {
        states: BTreeSet<String>,
    },
    Names,
    Node,
    Nodes,
    Datacenters,
}

/// Reads the call of a function. Empty parts are those of `place`, whose token the query has.
///
/// # Errors
/// The function is not available, or an argument has another form.
pub fn read(function: &str, arguments: &[String], place: &Scope) -> Result<(Query, Form), String> {
    let first = arguments.first().map_or("", String::as_str);
    let (kind, form, scope) = match function {
        "key" | "keyExists" | "keyOrDefault" => {
            let (name, scope) = split(first, place, Suffixes::Datacenter)?;
            let key = name.trim_start_matches('/').to_owned();
            if key.is_empty() {
                return Err(format!(
                    "{function}: the path is empty: write one as in app/config"
                ));
            }
            (Kind::Key(key), Form::Key, scope)
        }
        "ls" | "safeLs" | "tree" | "safeTree" => {
            let (name, scope) = split(first, place, Suffixes::Datacenter)?;
            let prefix = name.trim_matches('/');
            let prefix = if prefix.is_empty() {
                String::new()
            } else {
                format!("{prefix}/")
            };
            let form = Form::Pairs {
                prefix: prefix.clone(),
                is_deep: function.ends_with("ree"),
            };
            (Kind::Keys(prefix), form, scope)
        }
        "service" => return service(arguments, place),
        "services" => {
            let (_, scope) = split(first, place, Suffixes::Datacenter)?;
            (Kind::Services, Form::Names, scope)
        }
        "node" => {
            let (name, scope) = split(first, place, Suffixes::Datacenter)?;
            (Kind::Node(name), Form::Node, scope)
        }
        "nodes" => {
            let (_, scope) = split(first, place, Suffixes::Near)?;
            (Kind::Nodes, Form::Nodes, scope)
        }
        "datacenters" => {
            let scope = Scope {
                token: place.token.clone(),
                ..Scope::default()
            };
            (Kind::Datacenters, Form::Datacenters, scope)
        }
        other => {
            return Err(format!(
                "the function {other} of Consul is not supported by this version of Kafila: pass the values with a \
                 variable, env or meta"
            ));
        }
    };
    Ok((Query { kind, scope }, form))
}

/// `TAG.NAME`, with states after `|` or as further arguments. Without any, instances have to pass.
fn service(arguments: &[String], place: &Scope) -> Result<(Query, Form), String> {
    let first = arguments.first().map_or("", String::as_str);
    let (first, filter) = first.split_once('|').unwrap_or((first, ""));
    let (name, scope) = split(first, place, Suffixes::Near)?;
    let filters = std::iter::once(filter).chain(arguments.iter().skip(1).map(String::as_str));
    let words = filters.flat_map(|filter| filter.split(','));
    let mut states: BTreeSet<String> = words
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    for state in &states {
        if !STATES.contains(&state.as_str()) {
            return Err(format!(
                "service: unknown state {state:?}: use {}",
                STATES.join(", ")
            ));
        }
    }
    if states.is_empty() {
        states.insert("passing".to_owned());
    }
    let passing = states.iter().eq(["passing"]);
    if states.contains("any") {
        states.clear();
    }
    let (tag, name) = name.rsplit_once('.').unwrap_or(("", &name));
    if name.is_empty() {
        return Err("service: the name is empty: write one as in web or tag.web".to_owned());
    }
    let kind = Kind::Service {
        name: name.to_owned(),
        tag: tag.to_owned(),
        passing,
    };
    Ok((Query { kind, scope }, Form::Instances { states }))
}

const STATES: [&str; 5] = ["any", "passing", "warning", "critical", "maintenance"];

/// The suffixes that a name may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suffixes {
    Datacenter,
    Near,
}

/// Splits a name from its suffixes.
fn split(text: &str, place: &Scope, suffixes: Suffixes) -> Result<(String, Scope), String> {
    let mut scope = Scope {
        token: Token::clone(&place.token),
        ..place.clone()
    };
    let mut rest = text;
    if suffixes == Suffixes::Near
        && let Some((before, near)) = rest.rsplit_once('~')
    {
        near.clone_into(&mut scope.near);
        rest = before;
    }
    if let Some((before, datacenter)) = rest.rsplit_once('@') {
        datacenter.clone_into(&mut scope.datacenter);
        rest = before;
    }
    if let Some((before, query)) = rest.split_once('?') {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "ns" => value.clone_into(&mut scope.namespace),
                "partition" => value.clone_into(&mut scope.partition),
                _ => {
                    return Err(format!(
                        "{text:?} has the parameter {name:?}, which is not supported: use ns or partition"
                    ));
                }
            }
        }
        rest = before;
    }
    Ok((rest.to_owned(), scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, arguments: &[&str]) -> Result<(Query, Form), String> {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let place = Scope {
            namespace: "own".to_owned(),
            ..Scope::default()
        };
        read(function, &arguments, &place)
    }

    #[test]
    fn names_have_suffixes() {
        assert!(of("key", &["/app/a?b="]).unwrap_err().contains("\"b\""));
        let (query, form) = of("key", &["/app/db?ns=team@dc2"]).unwrap();
        assert_eq!(query.kind, Kind::Key("app/db".to_owned()));
        assert_eq!(query.scope.namespace, "team");
        assert_eq!(query.scope.datacenter, "dc2");
        assert_eq!(form, Form::Key);
        let (query, _) = of("nodes", &["@dc2~_agent"]).unwrap();
        assert_eq!(
            (query.scope.datacenter, query.scope.near),
            ("dc2".into(), "_agent".into())
        );
        let (query, _) = of("node", &[]).unwrap();
        assert_eq!(query.kind, Kind::Node(String::new()));
        assert_eq!(query.scope.namespace, "own");
    }

    #[test]
    fn look_ups_of_one_key_share_a_query_and_prefixes_end_at_a_slash() {
        let query = |function| of(function, &["app/x"]).unwrap().0;
        assert_eq!(query("key"), query("keyExists"));
        assert_eq!(query("ls"), query("safeTree"));
        assert_eq!(query("ls").kind, Kind::Keys("app/x/".to_owned()));
        assert_eq!(of("tree", &[""]).unwrap().0.kind, Kind::Keys(String::new()));
    }

    #[test]
    fn instances_of_a_service_pass_unless_states_are_given() {
        let kind = |name: &str, tag: &str, passing| Kind::Service {
            name: name.to_owned(),
            tag: tag.to_owned(),
            passing,
        };
        for (arguments, want, states) in [
            (&["web"][..], kind("web", "", true), vec!["passing"]),
            (&["v1.web@dc2"], kind("web", "v1", true), vec!["passing"]),
            (&["web|any"], kind("web", "", false), vec![]),
            (&["web", "any"], kind("web", "", false), vec![]),
            (
                &["web", "passing, warning"],
                kind("web", "", false),
                vec!["passing", "warning"],
            ),
        ] {
            let (query, form) = of("service", arguments).unwrap();
            assert_eq!(query.kind, want, "{arguments:?}");
            let states = states.into_iter().map(str::to_owned).collect();
            assert_eq!(form, Form::Instances { states }, "{arguments:?}");
        }
        assert!(
            of("service", &["web", "up"])
                .unwrap_err()
                .contains("any, passing")
        );
        assert!(of("service", &[""]).is_err());
    }

    #[test]
    fn functions_that_are_not_available_are_named() {
        for function in ["connect", "caRoots", "caLeaf", "peerings", "partitions"] {
            let problem = of(function, &["a"]).unwrap_err();
            assert!(problem.contains(function), "{problem}");
        }
    }
}
