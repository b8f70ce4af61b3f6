//! From what a user typed to the one thing that is meant: an id, or the start of one.

use proto::v1;

use crate::connection::Connection;
use crate::error::Error;
use crate::output::table::Table;
use crate::render::{self, Style};

/// How many of several matches are read and shown. Source: Nomad's command line.
const MATCHES_SHOWN: u32 = 20;

/// The least that has to be typed of an id. Source: Nomad's command line.
const MIN_PREFIX: usize = 2;

/// How many digits a UUID has.
const UUID_DIGITS: usize = 32;

/// What a prefix leads to.
#[derive(Debug, PartialEq)]
enum Found<T> {
    None,
    One(T),
    Several(Vec<T>),
}

/// Chooses among things whose id begins with `prefix`; an id that is the prefix wins.
fn choose<T>(prefix: &str, mut things: Vec<T>, id: impl Fn(&T) -> &str) -> Found<T> {
    things.retain(|thing| id(thing).starts_with(prefix));
    let exact = things.iter().filter(|thing| id(thing) == prefix).count();
    if exact == 1 {
        things.retain(|thing| id(thing) == prefix);
    }
    found(things)
}

fn found<T>(mut things: Vec<T>) -> Found<T> {
    match things.len() {
        0 => Found::None,
        1 => things.pop().map_or(Found::None, Found::One),
        _ => Found::Several(things),
    }
}

/// A noun, and how Nomad's messages speak of it.
struct Noun {
    /// As in `allocations`.
    plural: &'static str,
    none: &'static str,
    too_short: &'static str,
    /// Where to look for the right id.
    list: &'static str,
}

const ALLOC: Noun = Noun {
    plural: "allocations",
    none: "allocation(s)",
    too_short: "Alloc ID must contain at least two characters.",
    list: "kafila job status JOB",
};
const EVAL: Noun = Noun {
    plural: "evaluations",
    none: "evaluation(s)",
    too_short: "Identifier must contain at least two characters.",
    list: "kafila eval list",
};
const DEPLOYMENT: Noun = Noun {
    plural: "deployments",
    none: "deployment(s)",
    too_short: "Identifier must contain at least two characters.",
    list: "kafila deployment list",
};
const NODE: Noun = Noun {
    plural: "nodes",
    none: "node(s)",
    too_short: "Identifier must contain at least two characters.",
    list: "kafila node status",
};

/// Returns the prefix as the gateway takes it, or why it is none: hyphens may stand anywhere.
fn checked(noun: &Noun, prefix: &str) -> Result<String, Error> {
    if prefix.chars().count() < MIN_PREFIX {
        return Err(Error::text(noun.too_short));
    }
    if !looks_like_id(prefix) {
        return Err(none(noun, prefix));
    }
    Ok(prefix.to_ascii_lowercase())
}

fn none(noun: &Noun, prefix: &str) -> Error {
    Error::text(format!(
        "No {} with prefix or id {prefix:?} found\n'{}' lists {}.",
        noun.none, noun.list, noun.plural
    ))
}

fn one<T>(
    noun: &Noun,
    prefix: &str,
    found: Found<T>,
    table: impl FnOnce(&[T]) -> Table,
) -> Result<T, Error> {
    match found {
        Found::One(thing) => Ok(thing),
        Found::None => Err(none(noun, prefix)),
        Found::Several(things) => Err(Error::text(format!(
            "Prefix matched multiple {}\n\n{}",
            noun.plural,
            table(&things).render()
        ))),
    }
}

/// Returns the allocation whose id is `prefix` or begins with it.
///
/// # Errors
/// None, several (all are listed), too short a prefix, or no answer.
pub(crate) async fn allocation(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::Allocation, Error> {
    let prefix = checked(&ALLOC, prefix)?;
    let allocs = connection.allocations(&prefix, MATCHES_SHOWN).await?;
    let found = found(allocs);
    one(&ALLOC, &prefix, found, |allocs| {
        render::alloc::table(allocs, &full(style))
    })
}

/// Returns the evaluation whose id is `prefix` or begins with it; errors as for [`allocation`].
pub(crate) async fn evaluation(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::Evaluation, Error> {
    let prefix = checked(&EVAL, prefix)?;
    let options = starting_with(connection, &prefix);
    let (evals, _) = connection.evaluations(options, "", "").await?;
    let found = found(evals);
    one(&EVAL, &prefix, found, |evals| {
        render::eval::table(evals, &full(style))
    })
}

/// Returns the deployment whose id is `prefix` or begins with it; errors as for [`allocation`].
pub(crate) async fn deployment(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::Deployment, Error> {
    let prefix = checked(&DEPLOYMENT, prefix)?;
    let namespace = connection.any_namespace();
    let deployments = connection
        .deployments(namespace, &prefix, MATCHES_SHOWN)
        .await?;
    let found = found(deployments);
    one(&DEPLOYMENT, &prefix, found, |deployments| {
        render::deployment::table(deployments, &full(style))
    })
}

/// Returns the node whose id is `prefix` or begins with it; errors as for [`allocation`].
pub(crate) async fn node(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::Node, Error> {
    let prefix = checked(&NODE, prefix)?;
    let options = starting_with(connection, &prefix);
    let (nodes, _) = connection.nodes(options).await?;
    let found = found(nodes);
    one(&NODE, &prefix, found, |nodes| {
        render::node::table(nodes, render::node::Columns::default(), &full(style))
    })
}

/// Returns the job whose id is `prefix` or begins with it.
///
/// # Errors
/// None, several (all are listed), or no answer.
pub(crate) async fn job(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::JobStub, Error> {
    let namespace = connection.namespace();
    let jobs = connection.jobs(namespace, prefix, MATCHES_SHOWN).await?;
    match choose(prefix, jobs, |job| &job.id) {
        Found::One(job) => Ok(job),
        Found::None => {
            let place = match namespace {
                "*" => "'kafila job status' lists jobs".to_owned(),
                name => format!(
                    "'kafila job status' lists the jobs of namespace {name:?}, -namespace='*' all"
                ),
            };
            Err(Error::text(format!(
                "No job(s) with prefix or ID {prefix:?} found\n{place}."
            )))
        }
        Found::Several(jobs) => Err(Error::text(format!(
            "Prefix {prefix:?} matched multiple jobs\n\n{}",
            render::job::table(&jobs, true, style).render()
        ))),
    }
}

/// What an id may belong to.
#[derive(Debug)]
pub(crate) enum Thing {
    Job(Box<v1::JobStub>),
    Allocation(Box<v1::Allocation>),
    Evaluation(Box<v1::Evaluation>),
    Deployment(Box<v1::Deployment>),
    Node(Box<v1::Node>),
}

/// Returns whatever has `prefix` as its id, or begins with it.
///
/// A job whose id it is wins: users chose that word, and nobody chose the others.
///
/// # Errors
/// Nothing, several things (the kinds and ids are listed), or no answer.
pub(crate) async fn anything(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<Thing, Error> {
    let jobs = connection
        .jobs(connection.namespace(), prefix, MATCHES_SHOWN)
        .await?;
    let mut things = Vec::new();
    match choose(prefix, jobs, |job| &job.id) {
        Found::One(job) if job.id == prefix => return Ok(Thing::Job(Box::new(job))),
        Found::One(job) => things.push(Thing::Job(Box::new(job))),
        Found::None => {}
        Found::Several(jobs) => {
            things.extend(jobs.into_iter().map(|job| Thing::Job(Box::new(job))));
        }
    }
    if looks_like_id(prefix) {
        things.extend(by_id(connection, &prefix.to_ascii_lowercase()).await?);
    }
    match things.len() {
        // Only jobs were looked for.
        0 if prefix.chars().count() < MIN_PREFIX => Err(Error::text(format!(
            "No job(s) with prefix or ID {prefix:?} found\n\
             For anything else the identifier must contain at least two characters."
        ))),
        0 => Err(Error::text(format!(
            "Nothing with prefix or ID {prefix:?} found\n\
             'kafila job status', 'kafila node status', 'kafila eval list' and \
             'kafila deployment list' show what there is."
        ))),
        1 => Ok(things.remove(0)),
        _ => Err(several(prefix, &things, style)),
    }
}

/// Tells whether a UUID could begin so.
pub(crate) fn looks_like_id(prefix: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let digits = prefix.chars().filter(|c| *c != '-').count();
    (MIN_PREFIX..=UUID_DIGITS).contains(&digits) && prefix.chars().all(is_part)
}

async fn by_id(connection: &Connection, prefix: &str) -> Result<Vec<Thing>, Error> {
    let options = || starting_with(connection, prefix);
    let (allocs, evals, deployments, nodes) = futures::try_join!(
        connection.allocations(prefix, MATCHES_SHOWN),
        connection.evaluations(options(), "", ""),
        connection.deployments(connection.any_namespace(), prefix, MATCHES_SHOWN),
        connection.nodes(options()),
    )?;
    let allocs = allocs
        .into_iter()
        .map(|alloc| Thing::Allocation(Box::new(alloc)));
    let evals = evals
        .0
        .into_iter()
        .map(|eval| Thing::Evaluation(Box::new(eval)));
    let deployments = deployments
        .into_iter()
        .map(|it| Thing::Deployment(Box::new(it)));
    let nodes = nodes.0.into_iter().map(|node| Thing::Node(Box::new(node)));
    Ok(allocs
        .chain(evals)
        .chain(deployments)
        .chain(nodes)
        .collect())
}

fn several(prefix: &str, things: &[Thing], style: &Style) -> Error {
    let mut table = Table::new(["Kind", "ID"]);
    let style = full(style);
    for thing in things {
        let (kind, id) = match thing {
            Thing::Job(job) => ("job", job.id.clone()),
            Thing::Allocation(alloc) => ("alloc", style.id(&alloc.id)),
            Thing::Evaluation(eval) => ("eval", style.id(&eval.id)),
            Thing::Deployment(deployment) => ("deployment", style.id(&deployment.id)),
            Thing::Node(node) => ("node", style.id(&node.id)),
        };
        table.row([kind.to_owned(), id]);
    }
    Error::text(format!(
        "Multiple matches found for id {prefix:?}\n\n{}",
        table.render()
    ))
}

fn starting_with(connection: &Connection, prefix: &str) -> v1::QueryOptions {
    v1::QueryOptions {
        prefix: prefix.to_owned(),
        per_page: MATCHES_SHOWN,
        ..connection.options(connection.any_namespace())
    }
}

/// Several things are told apart by their whole ids.
fn full(style: &Style) -> Style {
    Style {
        verbose: true,
        ..style.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_id_wins_over_longer_ones() {
        let ids = |ids: &[&'static str]| ids.to_vec();
        let table: [(&str, &[&'static str], Found<&str>); 6] = [
            ("web", &["web", "web-2"], Found::One("web")),
            ("we", &["web"], Found::One("web")),
            (
                "we",
                &["web", "web-2"],
                Found::Several(ids(&["web", "web-2"])),
            ),
            ("web", &["web", "web"], Found::Several(ids(&["web", "web"]))),
            ("x", &["web"], Found::None),
            ("x", &[], Found::None),
        ];
        for (prefix, things, expected) in table {
            assert_eq!(
                choose(prefix, things.to_vec(), |id| id),
                expected,
                "{prefix}"
            );
        }
    }

    #[test]
    fn a_letter_is_not_enough_of_an_id() {
        assert_eq!(checked(&ALLOC, "8A3F").unwrap(), "8a3f");
        let error = checked(&ALLOC, "8").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Alloc ID must contain at least two characters."
        );
    }

    #[test]
    fn only_what_could_be_an_id_is_looked_for_among_ids() {
        assert!(looks_like_id("8a3f2c1e-0b"));
        assert!(!looks_like_id("web"));
        assert!(!looks_like_id("8"));
        assert!(!looks_like_id("8a3f2c1e-0000-4000-8000-0000000000031"));
        let error = checked(&NODE, "web").unwrap_err().to_string();
        assert!(
            error.contains("No node(s) with prefix or id \"web\" found"),
            "{error}"
        );
    }
}
