//! The difference between the services that a node wants and those of its Consul agent. Pure.

use std::collections::{BTreeMap, BTreeSet};

use consul::agent::{AgentCheck, AgentService, Registration};

/// The start of the ids of services. Source: Nomad's ids; both take a service with it for their own.
pub const SERVICE_PREFIX: &str = "_nomad-task-";
/// The start of the ids of checks.
pub const CHECK_PREFIX: &str = "_nomad-check-";

/// The services and checks of an agent, by id.
#[derive(Clone, Debug, Default)]
pub struct Actual {
    pub services: BTreeMap<String, AgentService>,
    pub checks: BTreeMap<String, AgentCheck>,
}

/// A request that brings the agent nearer to what the node wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Deregister a service with its checks.
    Deregister(String),
    DeregisterCheck(String),
    /// Register a service with its checks, in place of the registered one.
    Register(String),
}

/// Returns the requests, those that take something out first.
///
/// `departed` are services of this run of the node that ended. Other services with the prefix are leftovers
/// of an earlier run, or belong to allocations whose runner has not put them yet: they go only if
/// `leftovers_too`. Services and checks without the prefix are of other programs, and stay.
pub fn steps(
    wanted: &BTreeMap<&str, &Registration>,
    departed: &BTreeSet<String>,
    actual: &Actual,
    leftovers_too: bool,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for id in actual.services.keys() {
        let is_left = departed.contains(id) || leftovers_too && id.starts_with(SERVICE_PREFIX);
        if is_left && !wanted.contains_key(id.as_str()) {
            steps.push(Step::Deregister(id.clone()));
        }
    }
    for (id, check) in &actual.checks {
        let service = wanted.get(check.service_id.as_str());
        let is_unwanted = |service: &&Registration| service.checks.iter().all(|it| it.id != *id);
        // Others may add checks of their own to a service.
        if id.starts_with(CHECK_PREFIX) && service.is_some_and(is_unwanted) {
            steps.push(Step::DeregisterCheck(id.clone()));
        }
    }
    for (id, service) in wanted {
        let known = actual.services.get(*id);
        let has_check = |id: &str| {
            actual
                .checks
                .get(id)
                .is_some_and(|it| it.service_id == service.id)
        };
        let is_same = known.is_some_and(|known| is_same(service, known));
        if !is_same || !service.checks.iter().all(|check| has_check(&check.id)) {
            steps.push(Step::Register((*id).to_owned()));
        }
    }
    steps
}

/// Returns whether the agent has the service as it is wanted; its checks aside, whose ids name their contents.
fn is_same(wanted: &Registration, known: &AgentService) -> bool {
    // With an override the tags in the catalog are those of others.
    let tags = wanted.enable_tag_override || wanted.tags == known.tags;
    // The agent adds addresses of its own.
    let addresses = wanted
        .tagged_addresses
        .iter()
        .all(|(name, address)| known.tagged_addresses.get(name) == Some(address));
    tags && addresses
        && wanted.enable_tag_override == known.enable_tag_override
        && wanted.name == known.name
        && wanted.kind == known.kind
        && wanted.port == known.port
        && wanted.address == known.address
        && wanted.meta == known.meta
        && wanted
            .weights
            .is_none_or(|weights| weights == known.weights)
}

#[cfg(test)]
mod tests {
    use consul::agent::{CheckRegistration, TaggedAddress, Weights};

    use super::*;

    fn registration(id: &str) -> Registration {
        Registration {
            id: id.to_owned(),
            name: "web".to_owned(),
            tags: vec!["v1".to_owned()],
            port: 80,
            checks: vec![CheckRegistration {
                id: format!("{CHECK_PREFIX}{id}"),
                ..CheckRegistration::default()
            }],
            ..Registration::default()
        }
    }

    /// An agent with these services as they are wanted.
    fn with(services: &[&Registration]) -> Actual {
        let mut actual = Actual::default();
        for service in services {
            let known = AgentService {
                id: service.id.clone(),
                name: service.name.clone(),
                tags: service.tags.clone(),
                port: service.port,
                weights: Weights {
                    passing: 1,
                    warning: 1,
                },
                tagged_addresses: [("lan".to_owned(), TaggedAddress::default())].into(),
                ..AgentService::default()
            };
            actual.services.insert(service.id.clone(), known);
            for check in &service.checks {
                let known = AgentCheck {
                    id: check.id.clone(),
                    service_id: service.id.clone(),
                    ..AgentCheck::default()
                };
                actual.checks.insert(check.id.clone(), known);
            }
        }
        actual
    }

    fn of(wanted: &[&Registration], actual: &Actual) -> Vec<Step> {
        let wanted = wanted.iter().map(|it| (it.id.as_str(), *it)).collect();
        steps(&wanted, &BTreeSet::new(), actual, false)
    }

    #[test]
    fn what_is_there_needs_nothing_and_what_is_missing_is_registered() {
        let web = registration("_nomad-task-1");
        assert_eq!(of(&[&web], &with(&[&web])), []);
        let register = [Step::Register(web.id.clone())];
        assert_eq!(of(&[&web], &Actual::default()), register);
        let mut without_check = with(&[&web]);
        without_check.checks.clear();
        assert_eq!(of(&[&web], &without_check), register);
    }

    #[test]
    fn each_changed_part_is_registered_again() {
        let web = registration("_nomad-task-1");
        let actual = with(&[&web]);
        for (part, change) in [
            (
                "tags",
                (|it| it.tags.push("v2".to_owned())) as fn(&mut Registration),
            ),
            ("name", |it| it.name.push('x')),
            ("port", |it| it.port = 81),
            ("address", |it| it.address = "10.0.0.1".to_owned()),
            ("meta", |it| {
                drop(it.meta.insert("a".to_owned(), "b".to_owned()))
            }),
            ("kind", |it| it.kind = "k".to_owned()),
            ("override", |it| it.enable_tag_override = true),
            ("weights", |it| {
                it.weights = Some(Weights {
                    passing: 5,
                    warning: 1,
                })
            }),
            ("lan", |it| {
                let address = TaggedAddress {
                    address: "a".to_owned(),
                    port: 1,
                };
                it.tagged_addresses.insert("lan".to_owned(), address);
            }),
            ("check", |it| it.checks[0].id.push('x')),
        ] {
            let mut changed = web.clone();
            change(&mut changed);
            let found = of(&[&changed], &actual);
            assert!(
                found.contains(&Step::Register(web.id.clone())),
                "{part}: {found:?}"
            );
        }
    }

    #[test]
    fn tags_of_others_stay_where_the_service_allows_them() {
        let web = Registration {
            enable_tag_override: true,
            ..registration("_nomad-task-1")
        };
        let mut actual = with(&[&web]);
        let known = actual.services.get_mut(&web.id).unwrap();
        known.enable_tag_override = true;
        known.tags = vec!["theirs".to_owned()];
        assert_eq!(of(&[&web], &actual), []);
    }

    #[test]
    fn ended_services_go_at_once_and_leftovers_later() {
        let (web, old) = (registration("_nomad-task-1"), registration("_nomad-task-2"));
        let foreign = registration("theirs");
        let actual = with(&[&web, &old, &foreign]);
        assert_eq!(of(&[&web], &actual), []);
        let wanted = BTreeMap::from([(web.id.as_str(), &web)]);
        let gone = [Step::Deregister(old.id.clone())];
        let departed = BTreeSet::from([old.id.clone()]);
        assert_eq!(steps(&wanted, &departed, &actual, false), gone);
        assert_eq!(steps(&wanted, &BTreeSet::new(), &actual, true), gone);
        // One that came back is wanted.
        let both = BTreeMap::from([(web.id.as_str(), &web), (old.id.as_str(), &old)]);
        assert_eq!(steps(&both, &departed, &actual, true), []);
    }

    #[test]
    fn checks_of_others_stay() {
        let web = registration("_nomad-task-1");
        let mut actual = with(&[&web]);
        for id in ["theirs", "_nomad-check-old"] {
            let check = AgentCheck {
                id: id.to_owned(),
                service_id: web.id.clone(),
                ..AgentCheck::default()
            };
            actual.checks.insert(id.to_owned(), check);
        }
        let gone = [Step::DeregisterCheck("_nomad-check-old".to_owned())];
        assert_eq!(of(&[&web], &actual), gone);
    }
}
