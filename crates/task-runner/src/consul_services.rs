//! Services of an allocation in Consul: their registrations with checks, and the results of the checks.
//!
//! The ids, names and members are those of Nomad's registrations, on which other programs of a Consul
//! installation rely.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use consul::agent::{
    CheckProbe, CheckRegistration, CheckState, Registration, TaggedAddress, Weights,
};
use consul_sync::{CheckReport, Services};
use lifecycle::{Assignment, CheckKey, CheckOutcome, CheckResult, Event};
use model::service::{AddressMode, CheckType, InitialStatus, Provider, ServiceCheck};
use model::{Allocation, Job, NetworkStatus, Service, ServiceOwner, TaskGroup, registration_id};
use sha2::{Digest as _, Sha256};
use task_drivers::{DriverAddress, NodeFacts, TaskEnv};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::services::{self, Target};

/// A script that does not end within its interval and this time is critical in Consul. Source: Nomad's public
/// behaviour.
const TTL_MARGIN: Duration = Duration::from_secs(31);
/// Source: Nomad's meta, by which other programs know the services.
const SOURCE: (&str, &str) = ("external-source", "nomad");

/// The node's services in Consul.
#[derive(Clone, Debug)]
pub struct ConsulServices {
    pub services: Services,
    /// Tags of each service besides its own.
    pub tags: Vec<String>,
}

/// The services of one allocation in Consul.
#[derive(Debug, Default)]
pub(crate) struct ConsulRegistrations {
    /// The facts behind the last registrations; `None`: there are none yet.
    pub(crate) inputs: Option<RegistrationInputs>,
    /// Key of a check -> its id in Consul.
    pub(crate) check_ids: BTreeMap<CheckKey, String>,
}

/// The facts that registrations depend on, apart from addresses of drivers, which come with their owner.
#[derive(Debug, PartialEq)]
pub(crate) struct RegistrationInputs {
    pub(crate) owners: Vec<ServiceOwner>,
    pub(crate) alloc: Arc<Allocation>,
    pub(crate) job: Arc<Job>,
    pub(crate) network: Option<NetworkStatus>,
}

/// The registrations of an allocation.
#[derive(Debug, Default)]
pub(crate) struct AllocRegistrations {
    pub(crate) registrations: Vec<Registration>,
    pub(crate) check_ids: BTreeMap<CheckKey, String>,
}

/// Builds the registrations of the services of `owners` in Consul. `own` gives the address of a task in a network
/// of its driver. A service without an address of its mode is left out, and so is such a check.
pub(crate) fn build(
    assignment: &Assignment,
    owners: &[ServiceOwner],
    facts: &NodeFacts,
    own: impl Fn(&str) -> Option<DriverAddress>,
    tags: &[String],
) -> AllocRegistrations {
    let mut built = AllocRegistrations::default();
    let Some(group) = assignment.job.task_group(&assignment.alloc.task_group) else {
        return built;
    };
    for owner in owners {
        let services = services::of_owner(group, owner).iter().enumerate();
        let env = services::env(assignment, group, owner, facts);
        let driver = services::of_task(owner, &own);
        let context = ServiceContext {
            assignment,
            group,
            owner,
            env: &env,
            addresses: (facts, driver.as_ref()),
        };
        for (position, service) in services.filter(|(_, it)| it.provider == Provider::Consul) {
            let Some(mut registration) = context.registration(service, tags) else {
                continue;
            };
            if built
                .registrations
                .iter()
                .any(|it| it.id == registration.id)
            {
                continue;
            }
            for (number, check) in service.checks.iter().enumerate() {
                let Some(check) = context.check(service, check, (&registration.id, number)) else {
                    continue;
                };
                let key = CheckKey {
                    owner: owner.clone(),
                    service: position,
                    check: number,
                };
                built.check_ids.insert(key, check.id.clone());
                registration.checks.push(check);
            }
            built.registrations.push(registration);
        }
    }
    built
}

/// The context of a service: its owner, and the values and addresses there.
struct ServiceContext<'a> {
    assignment: &'a Assignment,
    group: &'a TaskGroup,
    owner: &'a ServiceOwner,
    env: &'a TaskEnv<'a>,
    addresses: (&'a NodeFacts, Option<&'a DriverAddress>),
}

impl ServiceContext<'_> {
    fn target(&self, service: &Service, wanted: (AddressMode, &str)) -> Option<Target> {
        let of = (self.owner, service);
        services::target(self.assignment, of, wanted, self.env, self.addresses)
    }

    fn text(&self, text: &str) -> String {
        self.env.interpolate(text)
    }

    fn registration(&self, service: &Service, tags: &[String]) -> Option<Registration> {
        let mut target = self.target(service, (service.address_mode, ""))?;
        let is_at_node = matches!(service.address_mode, AddressMode::Auto | AddressMode::Host);
        if service.port.is_empty() && service.address.is_empty() && is_at_node {
            // Consul then takes the address of its node.
            target.host.clear();
        }
        let alloc = &self.assignment.alloc;
        let own_tags = if alloc.canary && !service.canary_tags.is_empty() {
            &service.canary_tags
        } else {
            &service.tags
        };
        let own_meta = if alloc.canary && !service.canary_meta.is_empty() {
            &service.canary_meta
        } else {
            &service.meta
        };
        let name = self.text(&service.name);
        let id = registration_id(alloc.id, self.owner, &self.group.name, &name, &service.port);
        let mut meta: BTreeMap<String, String> = own_meta
            .iter()
            .map(|(key, value)| (self.text(key), self.text(value)))
            .collect();
        meta.insert(SOURCE.0.to_owned(), SOURCE.1.to_owned());
        let addresses = service.tagged_addresses.iter();
        let addresses = addresses.filter_map(|(name, address)| {
            let address = self.text(address);
            let (host, port) = address.rsplit_once(':')?;
            let address = TaggedAddress {
                address: host.trim_matches(['[', ']']).to_owned(),
                port: port.parse().ok()?,
            };
            Some((self.text(name), address))
        });
        Some(Registration {
            id,
            name,
            kind: service.kind.clone(),
            tags: own_tags
                .iter()
                .chain(tags)
                .map(|tag| self.text(tag))
                .collect(),
            port: target.port,
            address: target.host,
            tagged_addresses: addresses.collect(),
            enable_tag_override: service.enable_tag_override,
            meta,
            weights: service.weights.map(|weights| Weights {
                passing: weights.passing,
                warning: weights.warning,
            }),
            ..Registration::default()
        })
    }

    /// Returns a check with its id, which names its service, position and contents: a changed check is another
    /// one for Consul and starts anew.
    fn check(
        &self,
        service: &Service,
        check: &ServiceCheck,
        (service_id, position): (&str, usize),
    ) -> Option<CheckRegistration> {
        let is_script = check.check_type == CheckType::Script;
        let probe = if is_script {
            CheckProbe::Ttl {
                ttl: check.interval + TTL_MARGIN,
            }
        } else {
            let wanted = (services::mode_of_check(service, check), &*check.port);
            self.probe(check, &self.target(service, wanted)?)
        };
        let mut registration = CheckRegistration {
            id: String::new(),
            name: self.text(&check.name),
            interval: (!is_script).then_some(check.interval),
            timeout: Some(check.timeout),
            probe,
            status: check
                .initial_status
                .map_or("", InitialStatus::as_str)
                .to_owned(),
            notes: self.text(&check.notes),
            success_before_passing: check.success_before_passing,
            failures_before_critical: check.failures_before_critical,
            failures_before_warning: check.failures_before_warning,
        };
        registration.id = check_id(service_id, position, &registration);
        Some(registration)
    }

    fn probe(&self, check: &ServiceCheck, target: &Target) -> CheckProbe {
        let authority = target.authority();
        match check.check_type {
            CheckType::Http => {
                let scheme = match check.protocol.as_str() {
                    "" => "http",
                    protocol => protocol,
                };
                let path = self.text(&check.path);
                let slash = if path.starts_with('/') { "" } else { "/" };
                let header = check.header.iter().map(|(name, values)| {
                    let values = values.iter().map(|value| self.text(value));
                    (name.clone(), values.collect())
                });
                CheckProbe::Http {
                    url: format!("{scheme}://{authority}{slash}{path}"),
                    header: header.collect(),
                    method: check.method.clone(),
                    body: self.text(&check.body),
                    tls_server_name: self.text(&check.tls_server_name),
                    tls_skip_verify: check.tls_skip_verify,
                }
            }
            CheckType::Grpc => CheckProbe::Grpc {
                target: match self.text(&check.grpc_service) {
                    service if service.is_empty() => authority,
                    service => format!("{authority}/{service}"),
                },
                use_tls: check.grpc_use_tls,
                tls_server_name: self.text(&check.tls_server_name),
                tls_skip_verify: check.tls_skip_verify,
            },
            // Scripts have no target.
            CheckType::Tcp | CheckType::Script => CheckProbe::Tcp { target: authority },
        }
    }
}

fn check_id(service_id: &str, position: usize, check: &CheckRegistration) -> String {
    let content = serde_json::to_vec(check).unwrap_or_default();
    let hash = Sha256::new()
        .chain_update(service_id)
        .chain_update([0])
        .chain_update(position.to_string())
        .chain_update([0])
        .chain_update(content)
        .finalize();
    let mut id = consul_sync::plan::CHECK_PREFIX.to_owned();
    // 160 bits, as long as Nomad's.
    for byte in hash.iter().take(20) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// The results of a check that Consul runs.
pub(crate) struct Followed {
    pub(crate) services: Services,
    pub(crate) id: String,
    pub(crate) interval: Duration,
}

impl Followed {
    /// Sends each new state as a result, and the same state again once per interval: a restart counts
    /// failures. A state without a new answer of Consul is no result: an outage changes nothing.
    pub(crate) async fn run(self, key: CheckKey, epoch: u64, answers: mpsc::Sender<Event>) {
        let mut states = self.services.states();
        let (mut last, mut last_round) = (None, 0);
        let mut due = Instant::now() + self.interval;
        loop {
            let (round, report) = {
                let states = states.borrow_and_update();
                (states.round, states.by_id.get(&self.id).cloned())
            };
            let is_due = Instant::now() >= due && round > last_round;
            if let Some(report) = report
                && (is_due || last.as_ref() != Some(&report))
            {
                last_round = round;
                due = Instant::now() + self.interval;
                last = Some(report.clone());
                let (key, result) = (key.clone(), result(report));
                let sent = answers.send(Event::Checked { key, epoch, result });
                if sent.await.is_err() {
                    return;
                }
            }
            let next = due.max(Instant::now() + Duration::from_secs(1));
            tokio::select! {
                changed = states.changed() => if changed.is_err() { return },
                () = sleep_until(next) => {}
            }
        }
    }
}

fn result(report: CheckReport) -> CheckResult {
    CheckResult {
        outcome: match report.state {
            CheckState::Passing => CheckOutcome::Passed,
            CheckState::Warning => CheckOutcome::Warned,
            CheckState::Critical => CheckOutcome::Failed,
        },
        code: 0,
        output: report.output,
    }
}

/// Sends the result of a script to Consul.
pub(crate) async fn send_result(services: &Services, id: &str, result: &CheckResult) {
    let state = match result.outcome {
        CheckOutcome::Passed => CheckState::Passing,
        CheckOutcome::Warned => CheckState::Warning,
        CheckOutcome::Failed => CheckState::Critical,
    };
    services.update_check(id, state, &result.output).await;
}

#[cfg(test)]
mod tests;
