//! The deployment stage of the monitor, including automatic reverts.

use std::collections::{BTreeMap, BTreeSet};

use proto::v1;

use super::line::{Ending, Output, Progress};
use super::question::{Ask, Event, Next, Reverted};
use super::wait_reason;
use crate::exit::Exit;
use crate::render::{Style, alloc, deployment, task};

/// Queries for the deployment that reverts a failed one, each up to [`super::question::WAIT`]. The
/// scheduler creates it within milliseconds, or after a failover.
const MAX_LOOKS: u32 = 5;

/// Allocations whose failure reason is shown. Most fail for the same reason.
const MAX_REASONS: usize = 5;

/// The state of one deployment as printed so far.
#[derive(Debug)]
pub(super) struct DeploymentWatch {
    id: String,
    /// The index of the last answer to the current request.
    seen_index: u64,
    /// The last printed body.
    body: String,
    /// Allocation ID → the last printed reason of its failure.
    reasons: BTreeMap<String, String>,
    /// Allocations with a printed first failure.
    restarting: BTreeSet<String>,
    /// The need for a manual promotion has been printed.
    said_waiting: bool,
    /// The current pause has been printed.
    said_paused: bool,
    /// The deployment failed and the job is reverted to an earlier version.
    revert: Option<Revert>,
    /// The deployment of the last answer, with its allocations.
    last: Option<(Box<v1::Deployment>, Vec<v1::Allocation>)>,
}

#[derive(Debug)]
struct Revert {
    job_id: String,
    create_index: u64,
    failed_version: u64,
    earlier_version: Option<u64>,
    looks: u32,
}

impl DeploymentWatch {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            seen_index: 0,
            body: String::new(),
            reasons: BTreeMap::new(),
            restarting: BTreeSet::new(),
            said_waiting: false,
            said_paused: false,
            revert: None,
            last: None,
        }
    }

    pub(super) fn ask(&self) -> Ask {
        let after = self.seen_index;
        match &self.revert {
            None => Ask::Deployment {
                id: self.id.clone(),
                after,
            },
            Some(revert) => Ask::Deployments {
                job_id: revert.job_id.clone(),
                after,
            },
        }
    }

    /// Returns the reason of the wait; `None` before the first answer, and while a revert is awaited.
    pub(super) fn wait_reason(&self, style: &Style) -> Option<String> {
        let (deployment, allocs) = self.last.as_ref().filter(|_| self.revert.is_none())?;
        Some(wait_reason::of_deployment(style, deployment, allocs))
    }

    pub(super) fn step(&mut self, style: &Style, event: Event, out: &mut Vec<Output>) -> Next {
        match event {
            Event::Deployment {
                deployment,
                allocs,
                index,
            } => {
                self.seen_index = index;
                self.failures(style, &allocs, out);
                self.restarts(style, &allocs, out);
                self.progress(style, &deployment, &allocs, out);
                self.waiting(style, &deployment, out);
                self.paused(style, &deployment, out);
                let next = self.ended(&deployment);
                self.last = Some((deployment, allocs));
                next
            }
            Event::Deployments { deployments, index } => {
                self.seen_index = index;
                self.reverted(&deployments)
            }
            Event::NotFound => {
                let id = style.id(&self.id);
                out.push(Output::Step(format!(
                    "No deployment with id \"{id}\" found"
                )));
                Next::Ended(Exit::Failure)
            }
            _ => Next::Stay,
        }
    }

    /// Prints the reason for each unhealthy allocation.
    fn failures(&mut self, style: &Style, allocs: &[v1::Allocation], out: &mut Vec<Output>) {
        let is_unhealthy = |alloc: &&v1::Allocation| {
            let health = alloc.deployment_health.as_ref();
            alloc.client_status == "failed" || health.is_some_and(|health| !health.healthy)
        };
        for alloc in allocs.iter().filter(is_unhealthy) {
            if self.reasons.len() >= MAX_REASONS && !self.reasons.contains_key(&alloc.id) {
                continue;
            }
            let id = style.id(&alloc.id);
            let reason = task::failure(alloc).unwrap_or_else(|| alloc.client_description.clone());
            if self.reasons.get(&alloc.id) == Some(&reason) {
                continue;
            }
            out.push(Output::Detail(format!(
                "Allocation \"{id}\" is unhealthy: {reason}; see 'kafila alloc status {id}'"
            )));
            self.reasons.insert(alloc.id.clone(), reason);
        }
    }

    /// Prints the first failure of a task that is started again, long before its allocation counts as
    /// unhealthy.
    fn restarts(&mut self, style: &Style, allocs: &[v1::Allocation], out: &mut Vec<Output>) {
        for alloc in allocs {
            let is_known =
                self.reasons.contains_key(&alloc.id) || self.restarting.contains(&alloc.id);
            if is_known || self.restarting.len() >= MAX_REASONS {
                continue;
            }
            let Some(reason) = task::restarting(alloc) else {
                continue;
            };
            let id = style.id(&alloc.id);
            out.push(Output::Detail(format!(
                "Allocation \"{id}\" is not healthy yet: {reason}; see 'kafila alloc status {id}'"
            )));
            self.restarting.insert(alloc.id.clone());
        }
    }

    fn progress(
        &mut self,
        style: &Style,
        deployment: &v1::Deployment,
        allocs: &[v1::Allocation],
        out: &mut Vec<Output>,
    ) {
        let mut body = deployment::body(deployment, style);
        if style.verbose {
            let section = alloc::section(allocs, style);
            body.push_str(&style.section("Allocations", &section));
        }
        if body == self.body {
            return;
        }
        self.body.clone_from(&body);
        let ending = ending(&deployment.status);
        let how = match ending {
            Ending::Open => "in progress...",
            Ending::Well | Ending::Badly => deployment.status.as_str(),
        };
        out.push(Output::Progress(Progress {
            headline: format!("Deployment \"{}\" {how}", style.id(&self.id)),
            body,
            ending,
        }));
    }

    /// Prints once that the canaries are healthy and need a manual promotion.
    fn waiting(&mut self, style: &Style, deployment: &v1::Deployment, out: &mut Vec<Output>) {
        let groups = deployment.task_groups.values();
        let mut waiting = groups
            .filter(|group| group.desired_canaries > 0 && !group.promoted)
            .peekable();
        let asks = waiting.clone().any(|group| !group.auto_promote);
        let is_ready = waiting.peek().is_some()
            && waiting.all(|group| group.healthy_allocs >= group.desired_canaries);
        if deployment.status != "running" || !asks || !is_ready || self.said_waiting {
            return;
        }
        self.said_waiting = true;
        let id = style.id(&self.id);
        out.push(Output::Detail(format!(
            "The canaries are healthy. Promote them with 'kafila deployment promote {id}', or reject \
             them with 'kafila deployment fail {id}'"
        )));
    }

    /// Prints each pause with the command that resumes the deployment.
    fn paused(&mut self, style: &Style, deployment: &v1::Deployment, out: &mut Vec<Output>) {
        let is_paused = deployment.status == "paused";
        if is_paused && !self.said_paused {
            let id = style.id(&self.id);
            out.push(Output::Detail(format!(
                "The deployment is paused. Resume it with 'kafila deployment resume {id}'"
            )));
        }
        self.said_paused = is_paused;
    }

    fn ended(&mut self, deployment: &v1::Deployment) -> Next {
        match ending(&deployment.status) {
            Ending::Open => Next::Stay,
            Ending::Well => Next::Ended(Exit::Success),
            Ending::Badly if goes_back(deployment) => {
                self.revert = Some(Revert {
                    job_id: deployment.job_id.clone(),
                    create_index: deployment.create_index,
                    failed_version: deployment.job_version,
                    earlier_version: earlier_version(deployment),
                    looks: 0,
                });
                self.seen_index = 0;
                Next::Stay
            }
            Ending::Badly => Next::Ended(Exit::Failure),
        }
    }

    /// Continues with the deployment that reverts this one, once it exists.
    fn reverted(&mut self, deployments: &[v1::Deployment]) -> Next {
        let Some(revert) = &mut self.revert else {
            return Next::Stay;
        };
        let newer = deployments
            .iter()
            .filter(|other| other.create_index > revert.create_index && other.id != self.id)
            .max_by_key(|other| other.create_index);
        if let Some(newer) = newer {
            return Next::Revert(Reverted {
                deployment_id: newer.id.clone(),
                failed_version: revert.failed_version,
                new_version: newer.job_version,
                earlier_version: revert.earlier_version,
            });
        }
        revert.looks += 1;
        if revert.looks < MAX_LOOKS {
            Next::Stay
        } else {
            Next::Ended(Exit::Failure)
        }
    }
}

fn ending(status: &str) -> Ending {
    match status {
        "successful" => Ending::Well,
        "failed" | "cancelled" | "blocked" => Ending::Badly,
        _ => Ending::Open,
    }
}

/// Returns the version that a failed deployment goes back to, from its description.
fn earlier_version(deployment: &v1::Deployment) -> Option<u64> {
    let (_, version) = deployment
        .status_description
        .rsplit_once("rolling back to job version ")?;
    version.trim().parse().ok()
}

/// Tells whether the job is being reverted, by the flags of its groups and the status description.
fn goes_back(deployment: &v1::Deployment) -> bool {
    let description = &deployment.status_description;
    let stays = ["not rolling back", "no stable job version"];
    deployment.status == "failed"
        && deployment
            .task_groups
            .values()
            .any(|group| group.auto_revert)
        && !stays.iter().any(|words| description.contains(words))
}
