//! Lookup of objects by ID or unique prefix.

use proto::v1;

use crate::connection::Connection;
use crate::error::Error;
use crate::output::table::Table;
use crate::render::{self, Style};

/// Maximum number of ambiguous matches shown. Source: Nomad's command line.
const MATCHES_SHOWN: u32 = 20;

/// Maximum number of jobs of other namespaces that are looked at for a hint: those whose IDs begin as the
/// missing one.
const HINT_MATCHES: u32 = 200;

/// Minimum length of a prefix. Source: Nomad's command line.
const MIN_PREFIX: usize = 2;

/// Number of digits of a UUID.
const UUID_DIGITS: usize = 32;

/// The matches of a prefix.
#[derive(Debug, PartialEq)]
enum Found<T> {
    None,
    One(T),
    Several(Vec<T>),
}

/// Selects the objects with an ID prefix; an exact match wins.
fn choose<T>(prefix: &str, mut objects: Vec<T>, id: impl Fn(&T) -> &str) -> Found<T> {
    objects.retain(|object| id(object).starts_with(prefix));
    let exact = objects.iter().filter(|object| id(object) == prefix).count();
    if exact == 1 {
        objects.retain(|object| id(object) == prefix);
    }
    found(objects)
}

fn found<T>(mut objects: Vec<T>) -> Found<T> {
    match objects.len() {
        0 => Found::None,
        1 => objects.pop().map_or(Found::None, Found::One),
        _ => Found::Several(objects),
    }
}

/// A noun with the texts of Nomad's messages.
struct Noun {
    /// For example `allocations`.
    plural: &'static str,
    none: &'static str,
    too_short: &'static str,
    /// The command that lists the objects.
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

/// Validates and normalises a prefix; hyphens may stand anywhere.
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
        Found::One(object) => Ok(object),
        Found::None => Err(none(noun, prefix)),
        Found::Several(objects) => Err(Error::text(format!(
            "Prefix matched multiple {}\n\n{}",
            noun.plural,
            table(&objects).render()
        ))),
    }
}

/// Returns the allocation with an ID or unique prefix.
///
/// # Errors
/// No match, several matches (which are listed), a prefix that is too short, or no answer.
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

/// Returns the evaluation with an ID or unique prefix; errors as for [`allocation`].
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

/// Returns the deployment with an ID or unique prefix; errors as for [`allocation`].
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

/// Returns the node with an ID or unique prefix; errors as for [`allocation`].
pub(crate) async fn node(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<v1::Node, Error> {
    let name = prefix;
    let id = checked(&NODE, prefix);
    let nodes = match &id {
        Ok(prefix) => connection.nodes(starting_with(connection, prefix)).await?.0,
        Err(_) => Vec::new(),
    };
    if nodes.is_empty() && name.chars().count() >= MIN_PREFIX {
        // Names are not unique, so a change by name could reach another node.
        let mut all = connection.all_nodes().await?.into_iter();
        if let Some(node) = all.find(|node| node.name == name) {
            return Err(Error::text(format!(
                "{}\nThe node named {name:?} has the ID {}: use the ID.",
                none(&NODE, name),
                node.id
            )));
        }
    }
    let prefix = id?;
    let found = found(nodes);
    one(&NODE, &prefix, found, |nodes| {
        render::node::table(nodes, render::node::Columns::default(), &full(style))
    })
}

/// Returns the job with an ID or unique prefix.
///
/// # Errors
/// No match, several matches (which are listed), or no answer.
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
            let elsewhere = in_other_namespaces(connection, prefix).await;
            Err(Error::text(format!(
                "No job(s) with prefix or ID {prefix:?} found\n{elsewhere}{place}."
            )))
        }
        Found::Several(jobs) => Err(Error::text(format!(
            "Prefix {prefix:?} matched multiple jobs\n\n{}",
            render::job::table(&jobs, true, style).render()
        ))),
    }
}

/// Returns a line about jobs with this ID in other namespaces; empty if there are none that the caller may
/// read.
async fn in_other_namespaces(connection: &Connection, id: &str) -> String {
    if connection.namespace() == "*" {
        return String::new();
    }
    // Only a hint, so an error is none.
    let listed = connection.jobs("*", id, HINT_MATCHES).await;
    let mut jobs = listed.unwrap_or_default();
    jobs.retain(|job| job.id == id);
    let Some(first) = jobs.first().map(|job| job.namespace.as_str()) else {
        return String::new();
    };
    let names: Vec<&str> = jobs.iter().map(|job| job.namespace.as_str()).collect();
    match names.len() {
        1 => format!("A job of this name is in namespace {first:?}: -namespace={first}\n"),
        _ => format!(
            "Jobs of this name are in the namespaces {}: -namespace={first}\n",
            names.join(", ")
        ),
    }
}

/// An object of any kind.
#[derive(Debug)]
pub(crate) enum Object {
    Job(Box<v1::JobStub>),
    Allocation(Box<v1::Allocation>),
    Evaluation(Box<v1::Evaluation>),
    Deployment(Box<v1::Deployment>),
    Node(Box<v1::Node>),
}

/// Returns the object of any kind with an ID or unique prefix.
///
/// An exact job ID wins over prefixes of generated IDs.
///
/// # Errors
/// No match, several matches (kinds and IDs are listed), or no answer.
pub(crate) async fn any_object(
    connection: &Connection,
    prefix: &str,
    style: &Style,
) -> Result<Object, Error> {
    let jobs = connection
        .jobs(connection.namespace(), prefix, MATCHES_SHOWN)
        .await?;
    let mut objects = Vec::new();
    match choose(prefix, jobs, |job| &job.id) {
        Found::One(job) if job.id == prefix => return Ok(Object::Job(Box::new(job))),
        Found::One(job) => objects.push(Object::Job(Box::new(job))),
        Found::None => {}
        Found::Several(jobs) => {
            objects.extend(jobs.into_iter().map(|job| Object::Job(Box::new(job))));
        }
    }
    if looks_like_id(prefix) {
        objects.extend(by_id(connection, &prefix.to_ascii_lowercase()).await?);
    }
    match objects.len() {
        // No other kind was queried.
        0 if prefix.chars().count() < MIN_PREFIX => Err(Error::text(format!(
            "No job(s) with prefix or ID {prefix:?} found\n\
             For anything else the identifier must contain at least two characters."
        ))),
        0 => Err(Error::text(format!(
            "Nothing with prefix or ID {prefix:?} found\n{}\
             'kafila job status', 'kafila node status', 'kafila eval list' and \
             'kafila deployment list' show what there is.",
            in_other_namespaces(connection, prefix).await
        ))),
        1 => Ok(objects.remove(0)),
        _ => Err(several(prefix, &objects, style)),
    }
}

/// Tells whether the text can be the start of a UUID.
pub(crate) fn looks_like_id(prefix: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let digits = prefix.chars().filter(|c| *c != '-').count();
    (MIN_PREFIX..=UUID_DIGITS).contains(&digits) && prefix.chars().all(is_part)
}

async fn by_id(connection: &Connection, prefix: &str) -> Result<Vec<Object>, Error> {
    let options = || starting_with(connection, prefix);
    let (allocs, evals, deployments, nodes) = futures::try_join!(
        connection.allocations(prefix, MATCHES_SHOWN),
        connection.evaluations(options(), "", ""),
        connection.deployments(connection.any_namespace(), prefix, MATCHES_SHOWN),
        connection.nodes(options()),
    )?;
    let allocs = allocs
        .into_iter()
        .map(|alloc| Object::Allocation(Box::new(alloc)));
    let evals = evals
        .0
        .into_iter()
        .map(|eval| Object::Evaluation(Box::new(eval)));
    let deployments = deployments
        .into_iter()
        .map(|it| Object::Deployment(Box::new(it)));
    let nodes = nodes.0.into_iter().map(|node| Object::Node(Box::new(node)));
    Ok(allocs
        .chain(evals)
        .chain(deployments)
        .chain(nodes)
        .collect())
}

fn several(prefix: &str, objects: &[Object], style: &Style) -> Error {
    let mut table = Table::new(["Kind", "ID"]);
    let style = full(style);
    for object in objects {
        let (kind, id) = match object {
            Object::Job(job) => ("job", job.id.clone()),
            Object::Allocation(alloc) => ("alloc", style.id(&alloc.id)),
            Object::Evaluation(eval) => ("eval", style.id(&eval.id)),
            Object::Deployment(deployment) => ("deployment", style.id(&deployment.id)),
            Object::Node(node) => ("node", style.id(&node.id)),
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

/// Ambiguous matches are shown with full IDs.
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
        for (prefix, objects, expected) in table {
            assert_eq!(
                choose(prefix, objects.to_vec(), |id| id),
                expected,
                "{prefix}"
            );
        }
    }

    #[test]
    fn a_prefix_has_two_characters_or_more() {
        assert_eq!(checked(&ALLOC, "8A3F").unwrap(), "8a3f");
        let error = checked(&ALLOC, "8").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Alloc ID must contain at least two characters."
        );
    }

    #[test]
    fn texts_that_cannot_be_ids_are_not_looked_up() {
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
