//! Services and their checks.

use model::{consul, service};

use super::{list, to_message};
use crate::object::stored_object;
use crate::{Check, CheckRestart, Service, ServiceWeights};

impl From<&service::Service> for Service {
    fn from(service: &service::Service) -> Self {
        Self {
            name: Some(service.name.clone()),
            port: Some(service.port.clone()),
            provider: Some(service.provider.as_str().to_owned()),
            tags: service.tags.clone(),
            canary_tags: service.canary_tags.clone(),
            address: Some(service.address.clone()),
            address_mode: Some(service.address_mode.as_str().to_owned()),
            meta: service.meta.clone(),
            task: Some(service.task.clone()),
            on_update: Some(service.on_update.as_str().to_owned()),
            checks: list(&service.checks),
            // The checks carry their own by now.
            check_restart: None,
            enable_tag_override: Some(service.enable_tag_override),
            cluster: Some(consul::Consul::DEFAULT_CLUSTER.to_owned()),
            kind: Some(service.kind.clone()),
            canary_meta: service.canary_meta.clone(),
            tagged_addresses: service.tagged_addresses.clone(),
            weights: service.weights.map(|weights| ServiceWeights {
                passing: Some(i64::from(weights.passing)),
                warning: Some(i64::from(weights.warning)),
            }),
        }
    }
}

impl From<&service::ServiceCheck> for Check {
    fn from(check: &service::ServiceCheck) -> Self {
        let header = check.header.iter();
        let header = header.map(|(name, values)| (name.clone(), values.clone().into()));
        let mode = check.address_mode.map(service::AddressMode::as_str);
        let initial = check.initial_status.map(service::InitialStatus::as_str);
        Self {
            name: Some(check.name.clone()),
            r#type: Some(check.check_type.as_str().to_owned()),
            interval: to_message(check.interval),
            timeout: to_message(check.timeout),
            port: Some(check.port.clone()),
            address_mode: Some(mode.unwrap_or_default().to_owned()),
            path: Some(check.path.clone()),
            protocol: Some(check.protocol.clone()),
            method: Some(check.method.clone()),
            header: (!check.header.is_empty()).then(|| stored_object(&header.collect())),
            body: Some(check.body.clone()),
            tls_server_name: Some(check.tls_server_name.clone()),
            tls_skip_verify: Some(check.tls_skip_verify),
            grpc_service: Some(check.grpc_service.clone()),
            grpc_use_tls: Some(check.grpc_use_tls),
            initial_status: Some(initial.unwrap_or_default().to_owned()),
            task: Some(check.task.clone()),
            success_before_passing: Some(i64::from(check.success_before_passing)),
            failures_before_critical: Some(i64::from(check.failures_before_critical)),
            failures_before_warning: Some(i64::from(check.failures_before_warning)),
            on_update: Some(check.on_update.as_str().to_owned()),
            check_restart: check.check_restart.as_ref().map(Into::into),
            command: Some(check.command.clone()),
            args: check.args.clone(),
            expose: Some(false),
            advertise: Some(String::new()),
            notes: Some(check.notes.clone()),
        }
    }
}

impl From<&service::CheckRestart> for CheckRestart {
    fn from(restart: &service::CheckRestart) -> Self {
        Self {
            limit: Some(i64::from(restart.limit)),
            grace: to_message(restart.grace),
            ignore_warnings: Some(restart.ignore_warnings),
        }
    }
}
