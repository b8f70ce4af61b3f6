//! Functions that look data up outside the node: Nomad's variables and services, Consul, Vault.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::function::{Call, Failure, Function, between, exact, many};
use crate::source::{Answer, Choice, Lookup, ServiceInstance, Variable, VariablePath};
use crate::value::{Map, Record, Value};

mod ask;
mod consul;
mod secrets;
mod written;

use self::ask::ask;
pub(crate) use self::written::{in_trees, variables_in_trees};

pub(super) const FUNCTIONS: &[Function] = &[
    exact("nomadVar", 1, |call| {
        let path = variable_path(call, &call.text(0)?);
        match ask(call, Lookup::Variable { path })? {
            Some(Answer::Variable(variable)) => Ok(items(variable)?),
            Some(_) => Err("the source gave no variable".into()),
            None => Ok(Value::Nil),
        }
    }),
    exact("nomadVarExists", 1, |call| {
        let lookup = Lookup::Variable {
            path: variable_path(call, &call.text(0)?),
        };
        match call.interpreter.context().source.look_up(&lookup) {
            Answer::Absent => Ok(Value::Bool(false)),
            Answer::Missing => {
                call.interpreter.wait_for(lookup);
                Ok(Value::Bool(false))
            }
            _ => Ok(Value::Bool(true)),
        }
    }),
    between("nomadVarList", 0, 1, |call| variables(call, false)),
    between("nomadVarListSafe", 0, 1, |call| variables(call, true)),
    between("nomadService", 1, 3, |call| {
        let lookup = match call.count() {
            1 => Lookup::Service {
                name: call.text(0)?.to_string(),
                choice: None,
            },
            3 => {
                let choice = Choice {
                    count: call.size(0)?,
                    key: call.text(1)?.to_string(),
                };
                Lookup::Service {
                    name: call.text(2)?.to_string(),
                    choice: Some(choice),
                }
            }
            _ => return Err("takes a service, or a count, a key and a service".into()),
        };
        match ask(call, lookup)? {
            Some(Answer::Instances(instances)) => Ok(Value::list(
                instances
                    .into_iter()
                    .map(instance)
                    .collect::<Result<_, _>>()?,
            )?),
            Some(_) => Err("the source gave no instances".into()),
            None => Ok(Value::list(Vec::new())?),
        }
    }),
    exact("nomadServices", 0, |call| {
        match ask(call, Lookup::Services)? {
            Some(Answer::Services(services)) => {
                let records = services.into_iter().map(|service| {
                    Ok(Value::record([
                        ("Name", service.name.into()),
                        ("Tags", Value::texts(service.tags)?),
                    ]))
                });
                Ok(Value::list(records.collect::<Result<_, String>>()?)?)
            }
            Some(_) => Err("the source gave no services".into()),
            None => Ok(Value::list(Vec::new())?),
        }
    }),
    // Each gives, while its data is missing, the empty value of its type.
    exact("key", 1, consul::text),
    exact("keyExists", 1, consul::exists),
    exact("keyOrDefault", 2, consul::or_default),
    exact("ls", 1, consul::list),
    exact("safeLs", 1, consul::filled_list),
    exact("tree", 1, consul::list),
    exact("safeTree", 1, consul::filled_list),
    many("service", 1, consul::list),
    between("services", 0, 1, consul::list),
    between("node", 0, 1, consul::nil),
    between("nodes", 0, 1, consul::list),
    between("datacenters", 0, 1, consul::list),
    many("connect", 1, consul::list),
    exact("caRoots", 0, consul::list),
    exact("caLeaf", 1, consul::nil),
    exact("partitions", 0, consul::list),
    many("peerings", 0, consul::list),
    exact("exportedServices", 1, consul::list),
    many("importedServices", 0, consul::list),
    many("secret", 1, secrets::secret),
    exact("secrets", 1, secrets::secrets),
    many("pkiCert", 1, secrets::pki_cert),
];

/// Reads a path, with the namespace and region of the task where the path names none.
fn variable_path(call: &Call<'_>, written: &str) -> VariablePath {
    let context = call.interpreter.context();
    let mut path = read_variable_path(written);
    if path.namespace.is_empty() {
        context.namespace.clone_into(&mut path.namespace);
    }
    if path.region.is_empty() {
        context.region.clone_into(&mut path.region);
    }
    path
}

/// `path`, `path@namespace` or `path@namespace.region`; a part that is not written is empty.
fn read_variable_path(written: &str) -> VariablePath {
    let (path, place) = written.split_once('@').unwrap_or((written, ""));
    let (namespace, region) = place.split_once('.').unwrap_or((place, ""));
    VariablePath {
        path: path.trim_matches('/').to_owned(),
        namespace: namespace.to_owned(),
        region: region.to_owned(),
    }
}

fn variables(call: &mut Call<'_>, waits_while_empty: bool) -> Result<Value, Failure> {
    let written = if call.count() == 1 {
        call.text(0)?
    } else {
        "".into()
    };
    let lookup = Lookup::Variables {
        prefix: variable_path(call, &written),
    };
    let found = match ask(call, lookup.clone())? {
        Some(Answer::Variables(found)) => found,
        Some(_) => return Err("the source gave no variables".into()),
        None => Vec::new(),
    };
    if found.is_empty() && waits_while_empty {
        call.interpreter.wait_for(lookup);
    }
    Ok(Value::list(
        found
            .iter()
            .map(|variable| metadata(variable, true))
            .collect(),
    )?)
}

/// A variable as templates see it: its items, each with `.Key` and `.Value`, and `.Keys`, `.Values`, `.Tuples`,
/// `.Metadata`, `.Parent`.
fn items(variable: Variable) -> Result<Value, String> {
    let item = |key: &str, value: &str, fields: [&'static str; 2], text: Option<Rc<str>>| {
        let fields = fields
            .into_iter()
            .zip([Value::text(key), Value::text(value)])
            .collect();
        Value::Record(Rc::new(Record {
            fields,
            text,
            entries: None,
        }))
    };
    let entries: BTreeMap<Rc<str>, Value> = variable
        .items
        .iter()
        .map(|(key, value)| {
            (
                key.as_str().into(),
                item(key, value, ["Key", "Value"], Some(value.as_str().into())),
            )
        })
        .collect();
    let tuples = variable
        .items
        .iter()
        .map(|(key, value)| item(key, value, ["K", "V"], None))
        .collect();
    let metadata = metadata(&variable, true);
    let Value::Map(entries) = Value::map(entries)? else {
        return Ok(Value::Nil);
    };
    let fields = BTreeMap::from([
        (
            "Keys",
            Value::texts(variable.items.keys().map(String::as_str))?,
        ),
        (
            "Values",
            Value::texts(variable.items.values().map(String::as_str))?,
        ),
        ("Tuples", Value::list(tuples)?),
        ("Metadata", metadata.clone()),
        ("Parent", metadata),
    ]);
    let entries: Option<Rc<Map>> = Some(entries);
    Ok(Value::Record(Rc::new(Record {
        fields,
        text: None,
        entries,
    })))
}

fn metadata(variable: &Variable, is_path: bool) -> Value {
    let fields = BTreeMap::from([
        ("Namespace", Value::text(variable.namespace.as_str())),
        ("Path", Value::text(variable.path.as_str())),
        ("CreateIndex", Value::Uint(variable.create_index)),
        ("ModifyIndex", Value::Uint(variable.modify_index)),
        ("CreateTime", Value::Int(variable.create_time)),
        ("ModifyTime", Value::Int(variable.modify_time)),
    ]);
    Value::Record(Rc::new(Record {
        fields,
        text: is_path.then(|| variable.path.as_str().into()),
        entries: None,
    }))
}

fn instance(instance: ServiceInstance) -> Result<Value, String> {
    Ok(Value::record([
        ("ID", instance.id.into()),
        ("Name", instance.name.into()),
        ("Node", instance.node.into()),
        ("Address", instance.address.into()),
        ("Port", Value::Int(instance.port.into())),
        ("Datacenter", instance.datacenter.into()),
        ("Tags", Value::texts(instance.tags)?),
        ("JobID", instance.job_id.into()),
        ("AllocID", instance.alloc_id.into()),
    ]))
}
