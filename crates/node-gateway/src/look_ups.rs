//! Look-ups of templates, on behalf of the tasks of a node.

use admission::nodes::look_ups::{LookUp, Readable, readable};
use gateway_core::Error;
use keyring::variable_requests::{show, stub};
use model::{NodeId, VariableKey};
use proto::internal::v1::look_up_request::Data;
use proto::internal::v1::{LookUpRequest, LookUpResponse};
use state::{ShownService, Snapshot};
use store::VariableFilter;

use crate::node_gateway::NodeGateway;

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
    let mut found = Vec::new();
    // One by one: a list of the prefix may have any number of variables of other jobs.
    for path in readable.paths_from(prefix) {
        let filter = VariableFilter {
            namespace: Some(&readable.namespace),
            prefix: path,
            after: None,
        };
        // The variable itself is the first one that begins with its path.
        let page = gateway.keyring.variables().list(filter, 1).await?;
        let first = page.variables.into_iter();
        found.extend(first.filter(|first| first.key.path == path));
    }
    let found = found.into_iter();
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
    LookUpResponse {
        services: api_view::service::summaries(of_namespace(snapshot, readable)),
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
