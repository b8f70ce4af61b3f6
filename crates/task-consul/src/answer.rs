//! Answers of Consul as templates see them. Pure.
//!
//! Source: the names of fields in the documentation of consul-template.

use std::collections::BTreeMap;

use consul::agent::{AgentCheck, AgentService, CheckState, TaggedAddress};
use consul::catalog::{Node, NodeServices, ServiceEntry};
use consul::kv::KvPair;
use template::source::{Answer, Data};

use crate::query::Form;

/// The data of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    Key(Option<KvPair>),
    Keys(Vec<KvPair>),
    Service(Vec<ServiceEntry>),
    Services(BTreeMap<String, Vec<String>>),
    Node(Option<NodeServices>),
    Nodes(Vec<Node>),
    Datacenters(Vec<String>),
}

/// Gives the data its form. `is_sorted`: Consul has sorted it by distance.
pub fn answer(raw: Raw, form: &Form, is_sorted: bool) -> Answer {
    let data = match (raw, form) {
        (Raw::Key(None), _) => return Answer::Absent,
        (Raw::Key(Some(pair)), _) => Data::Text(pair.value),
        (Raw::Keys(pairs), Form::Pairs { prefix, is_deep }) => {
            let pairs = pairs.into_iter();
            Data::List(pairs.filter_map(|it| pair(it, prefix, *is_deep)).collect())
        }
        (Raw::Service(mut entries), Form::Instances { states }) => {
            entries.retain(|entry| states.is_empty() || states.contains(entry.status()));
            if !is_sorted {
                let key =
                    |entry: &ServiceEntry| (entry.node.name.clone(), entry.service.id.clone());
                entries.sort_by_cached_key(key);
            }
            Data::List(entries.into_iter().map(instance).collect())
        }
        (Raw::Services(services), _) => {
            let services = services.into_iter().map(|(name, mut tags)| {
                tags.sort();
                Data::record([("Name", Data::Text(name)), ("Tags", Data::texts(tags))])
            });
            Data::List(services.collect())
        }
        (Raw::Node(None), _) => Data::Nil,
        (Raw::Node(Some(found)), _) => with_services(found),
        (Raw::Nodes(mut nodes), _) => {
            if !is_sorted {
                nodes.sort_by(|a, b| (&a.name, &a.address).cmp(&(&b.name, &b.address)));
            }
            Data::List(nodes.into_iter().map(node).collect())
        }
        (Raw::Datacenters(names), _) => Data::texts(names),
        // A query has one form: see `query::read`.
        (Raw::Keys(_) | Raw::Service(_), _) => return Answer::Missing,
    };
    Answer::Data(data)
}

fn pair(pair: KvPair, prefix: &str, is_deep: bool) -> Option<Data> {
    let key = pair
        .key
        .strip_prefix(prefix)?
        .trim_start_matches('/')
        .to_owned();
    let is_shown = if is_deep {
        // Folders are keys with a slash at their end.
        !key.is_empty() && !key.ends_with('/')
    } else {
        !key.is_empty() && !key.contains('/')
    };
    is_shown.then(|| {
        Data::record([
            ("Path", Data::Text(pair.key)),
            ("Key", Data::Text(key)),
            ("Value", Data::Text(pair.value)),
            ("Exists", Data::Bool(true)),
            ("CreateIndex", Data::Uint(pair.create_index)),
            ("ModifyIndex", Data::Uint(pair.modify_index)),
            ("LockIndex", Data::Uint(pair.lock_index)),
            ("Flags", Data::Uint(pair.flags)),
            ("Session", Data::Text(pair.session)),
        ])
    })
}

fn instance(entry: ServiceEntry) -> Data {
    let status = entry.status();
    let ServiceEntry {
        node,
        service,
        checks,
    } = entry;
    let address = if service.address.is_empty() {
        node.address.clone()
    } else {
        service.address
    };
    Data::record([
        ("Node", Data::Text(node.name)),
        ("NodeID", Data::Text(node.id)),
        ("NodeAddress", Data::Text(node.address)),
        ("NodeDatacenter", Data::Text(node.datacenter)),
        ("NodeTaggedAddresses", Data::text_map(node.tagged_addresses)),
        ("NodeMeta", Data::text_map(node.meta)),
        ("ServiceMeta", Data::text_map(service.meta)),
        ("ServiceTaggedAddresses", tagged(service.tagged_addresses)),
        ("Address", Data::Text(address)),
        ("ID", Data::Text(service.id)),
        ("Name", Data::Text(service.name)),
        ("Kind", Data::Text(service.kind)),
        ("Port", Data::Int(service.port.into())),
        ("Status", Data::text(status)),
        ("Tags", tags(service.tags)),
        (
            "Weights",
            Data::record([
                ("Passing", Data::Int(service.weights.passing.into())),
                ("Warning", Data::Int(service.weights.warning.into())),
            ]),
        ),
        (
            "Checks",
            Data::List(checks.into_iter().map(check).collect()),
        ),
    ])
}

fn check(check: AgentCheck) -> Data {
    let status = match check.status {
        CheckState::Passing => "passing",
        CheckState::Warning => "warning",
        CheckState::Critical => "critical",
    };
    Data::record([
        ("CheckID", Data::Text(check.id)),
        ("Name", Data::Text(check.name)),
        ("Status", Data::text(status)),
        ("Output", Data::Text(check.output)),
        ("ServiceID", Data::Text(check.service_id)),
    ])
}

fn tagged(addresses: BTreeMap<String, TaggedAddress>) -> Data {
    let addresses = addresses.into_iter().map(|(name, address)| {
        let record = Data::record([
            ("Address", Data::Text(address.address)),
            ("Port", Data::Int(address.port.into())),
        ]);
        (name, record)
    });
    Data::Map(addresses.collect())
}

fn tags(mut tags: Vec<String>) -> Data {
    tags.sort();
    Data::texts(tags)
}

fn with_services(found: NodeServices) -> Data {
    let mut services: Vec<AgentService> = found.services.into_values().collect();
    services.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    let services = services.into_iter().map(|service| {
        Data::record([
            ("ID", Data::Text(service.id)),
            ("Service", Data::Text(service.name)),
            ("Address", Data::Text(service.address)),
            ("Tags", tags(service.tags)),
            ("Meta", Data::text_map(service.meta)),
            ("Port", Data::Int(service.port.into())),
            ("EnableTagOverride", Data::Bool(service.enable_tag_override)),
        ])
    });
    Data::record([
        ("Services", Data::List(services.collect())),
        ("Node", node(found.node)),
    ])
}

fn node(node: Node) -> Data {
    Data::record([
        ("ID", Data::Text(node.id)),
        ("Node", Data::Text(node.name)),
        ("Address", Data::Text(node.address)),
        ("Datacenter", Data::Text(node.datacenter)),
        ("TaggedAddresses", Data::text_map(node.tagged_addresses)),
        ("Meta", Data::text_map(node.meta)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(keys: &[&str], is_deep: bool) -> Vec<String> {
        let pairs = keys.iter().map(|key| KvPair {
            key: (*key).to_owned(),
            ..KvPair::default()
        });
        let form = Form::Pairs {
            prefix: "app/".to_owned(),
            is_deep,
        };
        let Answer::Data(Data::List(found)) = answer(Raw::Keys(pairs.collect()), &form, false)
        else {
            panic!("pairs are a list");
        };
        let key = |data: Data| match data {
            Data::Record(fields) => match &fields["Key"] {
                Data::Text(key) => key.clone(),
                _ => panic!("a key is a text"),
            },
            _ => panic!("a pair is a record"),
        };
        found.into_iter().map(key).collect()
    }

    #[test]
    fn a_list_has_the_keys_directly_below_and_a_tree_all_but_folders() {
        let keys = ["app/", "app/a", "app/b/", "app/b/c"];
        assert_eq!(pairs(&keys, false), ["a"]);
        assert_eq!(pairs(&keys, true), ["a", "b/c"]);
    }

    #[test]
    fn instances_are_chosen_by_their_state_and_sorted_unless_consul_did() {
        let entry = |node: &str, status| ServiceEntry {
            node: Node {
                name: node.to_owned(),
                address: "10.0.0.1".to_owned(),
                ..Node::default()
            },
            checks: vec![AgentCheck {
                status,
                ..AgentCheck::default()
            }],
            ..ServiceEntry::default()
        };
        let all = vec![
            entry("b", CheckState::Passing),
            entry("a", CheckState::Warning),
            entry("c", CheckState::Critical),
        ];
        let of = |states: &[&str], is_sorted| {
            let states = states.iter().map(|it| (*it).to_owned()).collect();
            let form = Form::Instances { states };
            let Answer::Data(Data::List(found)) =
                answer(Raw::Service(all.clone()), &form, is_sorted)
            else {
                panic!("instances are a list");
            };
            let name = |data: Data| match data {
                Data::Record(fields) => {
                    assert_eq!(fields["Address"], Data::text("10.0.0.1"), "the node's");
                    match &fields["Node"] {
                        Data::Text(name) => name.clone(),
                        _ => panic!("a name is a text"),
                    }
                }
                _ => panic!("an instance is a record"),
            };
            found.into_iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(of(&["passing"], false), ["b"]);
        assert_eq!(of(&["passing", "warning"], false), ["a", "b"]);
        assert_eq!(of(&[], true), ["b", "a", "c"]);
    }

    #[test]
    fn what_does_not_exist_is_absent_or_nil() {
        assert_eq!(answer(Raw::Key(None), &Form::Key, false), Answer::Absent);
        let none = answer(Raw::Node(None), &Form::Node, false);
        assert_eq!(none, Answer::Data(Data::Nil));
    }
}
