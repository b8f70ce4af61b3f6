//! Look-ups of templates: variables and names of services from the current gateway, instances from the
//! node's subscription.

use std::sync::Arc;

use proto::internal::v1::look_up_request::Data;
use proto::internal::v1::{LookUpRequest, LookUpResponse};
use proto::v1;
use service_kit::request;
use service_watch::{Instance, Services};
use task_drivers::driver::BoxFuture;
use task_runner::{DataSource, Requester};
use template::Lookup;
use template::source::{Answer, ServiceInstance, ServiceName, Variable};

use crate::sources::{CALL_TIMEOUT, GatewaySources};

impl DataSource for GatewaySources {
    fn look_up(
        &self,
        requester: &Requester,
        lookup: &Lookup,
    ) -> BoxFuture<'static, Result<Answer, String>> {
        if let Lookup::Service { name, .. } = lookup {
            let name = service_watch::ServiceName {
                namespace: requester.namespace.clone(),
                name: name.clone(),
            };
            return Box::pin(instances(Arc::clone(&self.services), name));
        }
        let (data, namespace, region) = match lookup {
            Lookup::Variable { path } => {
                let data = Data::Variable(path.path.clone());
                (Some(data), path.namespace.clone(), path.region.clone())
            }
            Lookup::Variables { prefix } => {
                let data = Data::Variables(prefix.path.clone());
                (Some(data), prefix.namespace.clone(), prefix.region.clone())
            }
            _ => (None, requester.namespace.clone(), String::new()),
        };
        let message = LookUpRequest {
            node_id: self.node_id.clone(),
            secret: self.secret.clone(),
            alloc_id: requester.alloc_id.to_string(),
            task: requester.task.clone(),
            namespace,
            region,
            data,
        };
        let (gateways, lookup) = (Arc::clone(&self.gateways), lookup.clone());
        Box::pin(async move {
            let asked = gateways
                .call(async |mut client| client.look_up(request(message, CALL_TIMEOUT)).await)
                .await;
            let answer = asked.map_err(|status| status.message().to_owned())?;
            Ok(read(&lookup, answer))
        })
    }
}

fn read(lookup: &Lookup, answer: LookUpResponse) -> Answer {
    match lookup {
        Lookup::Variable { .. } => {
            let found = answer.variables.into_iter().next();
            found.map_or(Answer::Absent, |found| Answer::Variable(variable(found)))
        }
        Lookup::Variables { .. } => {
            Answer::Variables(answer.variables.into_iter().map(variable).collect())
        }
        _ => Answer::Services(answer.services.into_iter().map(service).collect()),
    }
}

fn variable(found: v1::Variable) -> Variable {
    Variable {
        namespace: found.namespace,
        path: found.path,
        items: found.items.into_iter().collect(),
        create_index: found.create_index,
        modify_index: found.modify_index,
        create_time: i64::try_from(found.create_time_ns).unwrap_or(i64::MAX),
        modify_time: i64::try_from(found.modify_time_ns).unwrap_or(i64::MAX),
    }
}

/// Returns the instances of a service, whatever the results of their checks, ordered by allocation.
async fn instances(
    services: Arc<Services>,
    name: service_watch::ServiceName,
) -> Result<Answer, String> {
    let found = services.look_up(&name, CALL_TIMEOUT).await;
    match found.map_err(|error| error.to_string())? {
        service_watch::Answer::Refused(reason) => Err(reason),
        service_watch::Answer::Instances(found) => {
            let is_exact = |it: &&Instance| it.namespace == name.namespace && it.name == name.name;
            let exact = found.iter().filter(is_exact).map(instance);
            Ok(Answer::Instances(exact.collect()))
        }
    }
}

fn instance(found: &Instance) -> ServiceInstance {
    ServiceInstance {
        id: found.id.clone(),
        name: found.name.clone(),
        node: found.node_id.clone(),
        address: found.address.clone(),
        port: found.port,
        datacenter: found.datacenter.clone(),
        tags: found.tags.clone(),
        job_id: found.job_id.clone(),
        alloc_id: found.alloc_id.clone(),
    }
}

fn service(found: v1::ServiceSummary) -> ServiceName {
    ServiceName {
        name: found.name,
        tags: found.tags,
    }
}

#[cfg(test)]
mod tests {
    use template::source::VariablePath;

    use super::*;

    #[test]
    fn a_variable_that_is_not_there_is_absent() {
        let path = VariablePath {
            path: "nomad/jobs/web".to_owned(),
            namespace: "default".to_owned(),
            region: String::new(),
        };
        let lookup = Lookup::Variable { path };
        assert_eq!(read(&lookup, LookUpResponse::default()), Answer::Absent);
        let found = LookUpResponse {
            variables: vec![v1::Variable {
                items: [("k".to_owned(), "v".to_owned())].into(),
                modify_index: 7,
                ..v1::Variable::default()
            }],
            ..LookUpResponse::default()
        };
        let Answer::Variable(read) = read(&lookup, found) else {
            panic!("no variable");
        };
        assert_eq!((read.items["k"].as_str(), read.modify_index), ("v", 7));
    }
}
