//! Look-ups of templates, answered by the current gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proto::internal::v1::look_up_request::Data;
use proto::internal::v1::{LookUpRequest, LookUpResponse};
use proto::v1;
use service_kit::request;
use task_drivers::driver::BoxFuture;
use task_runner::{Asker, DataSource};
use template::Lookup;
use template::source::{Answer, ServiceInstance, ServiceName, Variable};

use crate::session::gateways::Gateways;

/// Timeout of a call: a gateway answers within milliseconds, and may wait for the store first.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The look-ups of one node's tasks.
pub(crate) struct LookUps {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) node_id: String,
    pub(crate) secret: String,
}

/// Leaves out the secret.
impl fmt::Debug for LookUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookUps")
            .field("node_id", &self.node_id)
            .finish_non_exhaustive()
    }
}

impl DataSource for LookUps {
    fn look_up(
        &self,
        asker: &Asker,
        lookup: &Lookup,
    ) -> BoxFuture<'static, Result<Answer, String>> {
        let (data, namespace, region) = match lookup {
            Lookup::Variable { path } => {
                let data = Data::Variable(path.path.clone());
                (Some(data), path.namespace.clone(), path.region.clone())
            }
            Lookup::Variables { prefix } => {
                let data = Data::Variables(prefix.path.clone());
                (Some(data), prefix.namespace.clone(), prefix.region.clone())
            }
            Lookup::Service { name, .. } => (
                Some(Data::Service(name.clone())),
                asker.namespace.clone(),
                String::new(),
            ),
            _ => (None, asker.namespace.clone(), String::new()),
        };
        let message = LookUpRequest {
            node_id: self.node_id.clone(),
            secret: self.secret.clone(),
            alloc_id: asker.alloc_id.to_string(),
            task: asker.task.clone(),
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
        Lookup::Service { .. } => {
            Answer::Instances(answer.instances.into_iter().map(instance).collect())
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

fn instance(found: v1::ServiceRegistration) -> ServiceInstance {
    ServiceInstance {
        id: found.id,
        name: found.name,
        node: found.node_id,
        address: found.address,
        port: u16::try_from(found.port).unwrap_or_default(),
        datacenter: found.datacenter,
        tags: found.tags,
        job_id: found.job_id,
        alloc_id: found.alloc_id,
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
