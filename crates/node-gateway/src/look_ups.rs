//! Look-ups of templates, on behalf of the tasks of a node.

use std::collections::{BTreeMap, BTreeSet};

use admission::nodes::look_ups::{LookUp, Readable, readable};
use gateway_core::Error;
use keyring::variable_requests::{show, stub};
use model::{NodeId, VariableKey};
use proto::internal::v1::look_up_request::Data;
use proto::internal::v1::{LookUpRequest, LookUpResponse};
use proto::v1;
use state::{ShownService, Snapshot};
use store::VariableFilter;

use crate::node_gateway::NodeGateway;

/// Variables of one list, at most.
const LISTED_MAX: usize = 1_000;

/// Answers a request of an authenticated node.
///
/// # Errors
/// The task may not read the data, or the store does not answer.
pub(crate) async fn look_up(
    gateway: &NodeGateway,
    node_id: NodeId,
    request: LookUpRequest,
) -> Result<LookUpResponse, Error> {
    let asked = LookUp {
        alloc_id: request
            .alloc_id
            .parse()
            .map_err(|error: model::ids::InvalidId| {
                Error::invalid_field("alloc_id", error.to_string())
            })?,
        task: request.task,
        namespace: request.namespace,
        region: request.region,
    };
    let core = &gateway.core;
    let mut snapshot = core.snapshot(true).await?;
    let readable = match readable(&snapshot, node_id, &asked) {
        Ok(readable) => readable,
        // The allocation may have been placed a moment ago.
        Err(_) => {
            snapshot = core.fresh().await?;
            readable(&snapshot, node_id, &asked)?
        }
    };
    match request.data {
        Some(Data::Variable(path)) => variable(gateway, &readable, path).await,
        Some(Data::Variables(prefix)) => variables(gateway, &readable, &prefix).await,
        Some(Data::Service(name)) => Ok(instances(&snapshot, &readable, &name)),
        None => Ok(services(&snapshot, &readable)),
    }
}

async fn variable(
    gateway: &NodeGateway,
    readable: &Readable,
    path: String,
) -> Result<LookUpResponse, Error> {
    readable.check_path(&path)?;
    let key = VariableKey::new(readable.namespace.as_str(), path);
    let found = gateway.keyring.variables().get(&key).await?;
    Ok(LookUpResponse {
        variables: found
            .map(|found| show(key, found, None))
            .into_iter()
            .collect(),
        ..LookUpResponse::default()
    })
}

async fn variables(
    gateway: &NodeGateway,
    readable: &Readable,
    prefix: &str,
) -> Result<LookUpResponse, Error> {
    let filter = VariableFilter {
        namespace: Some(&readable.namespace),
        prefix,
        after: None,
    };
    let page = gateway.keyring.variables().list(filter, LISTED_MAX).await?;
    let found = page.variables.into_iter();
    let found = found.filter(|found| readable.has_path(&found.key.path));
    Ok(LookUpResponse {
        variables: found.map(|listed| stub(listed, None)).collect(),
        ..LookUpResponse::default()
    })
}

fn instances(snapshot: &Snapshot, readable: &Readable, name: &str) -> LookUpResponse {
    let found = of_namespace(snapshot, readable);
    let found = found.filter(|service| service.registration.name == name);
    LookUpResponse {
        instances: found.map(api_view::service::registration).collect(),
        ..LookUpResponse::default()
    }
}

fn services(snapshot: &Snapshot, readable: &Readable) -> LookUpResponse {
    let mut found = BTreeMap::<&str, BTreeSet<&str>>::new();
    for service in of_namespace(snapshot, readable) {
        let tags = found.entry(service.registration.name.as_str()).or_default();
        tags.extend(service.tags.iter().map(String::as_str));
    }
    let summary = |(name, tags): (&str, BTreeSet<&str>)| v1::ServiceSummary {
        namespace: readable.namespace.clone(),
        name: name.to_owned(),
        tags: tags.into_iter().map(str::to_owned).collect(),
    };
    LookUpResponse {
        services: found.into_iter().map(summary).collect(),
        ..LookUpResponse::default()
    }
}

fn of_namespace<'s>(
    snapshot: &'s Snapshot,
    readable: &'s Readable,
) -> impl Iterator<Item = ShownService<'s>> {
    let services = snapshot.services();
    services.filter(|service| *service.alloc.alloc.namespace == *readable.namespace)
}
