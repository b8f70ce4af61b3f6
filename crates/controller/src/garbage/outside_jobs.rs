//! Garbage outside of jobs: ended deployments, nodes that are down, orphaned volume claims, expired
//! introduction tokens, leftovers.

use std::collections::BTreeMap;

use model::{Indexed, JobKey, NodeStatus, Timestamp, VolumeClaim};
use rustc_hash::FxHashSet;
use state::{Key, Snapshot, Write};

use super::batch::{Batch, Counts, Packer};
use super::thresholds::Thresholds;

/// Appends batches to `out`, which has those of the jobs.
pub(super) fn sweep(
    snapshot: &Snapshot,
    now: Timestamp,
    thresholds: &Thresholds,
    out: &mut Vec<Batch>,
) {
    let gone: FxHashSet<Key> = out
        .iter()
        .flat_map(|batch| &batch.writes)
        .filter(|write| matches!(write, Write::Delete { .. }))
        .map(|write| write.key().clone())
        .collect();
    let mut sweep = Sweep {
        snapshot,
        now,
        thresholds,
        gone,
        packer: Packer::new(None, None, out),
    };
    sweep.deployments();
    sweep.nodes();
    let orphans = sweep.volume_claims();
    sweep.leftovers();
    sweep.introductions();
    sweep.packer.close();
    for (job, claims) in orphans {
        // A job that is registered meanwhile under that id keeps its claims.
        let absent = Write::RequireAbsent { key: Key::Job(job) };
        let mut packer = Packer::new(Some(absent), None, out);
        for claim in claims {
            let key = Key::VolumeClaim(claim.value.id());
            packer.add([(key, claim.modify_index)], Counts::default());
        }
        packer.close();
    }
}

/// Volume claims of jobs that do not exist.
type Orphans<'a> = BTreeMap<JobKey, Vec<&'a Indexed<VolumeClaim>>>;

struct Sweep<'a, 'o> {
    snapshot: &'a Snapshot,
    now: Timestamp,
    thresholds: &'a Thresholds,
    /// Keys that the batches of the jobs delete.
    gone: FxHashSet<Key>,
    packer: Packer<'o>,
}

impl<'a> Sweep<'a, '_> {
    fn deployments(&mut self) {
        for deployment in self.snapshot.deployments() {
            let (id, value) = (deployment.value.id, &deployment.value);
            let key = Key::Deployment(id);
            let newest = self.snapshot.latest_deployment(&value.job);
            // The scheduler reads the outcome of the job's newest deployment.
            let is_needed = newest.is_some_and(|newest| newest.value.id == id);
            // Writes of an allocation fail when its deployment is gone.
            let is_named = self
                .snapshot
                .allocs_by_deployment(id)
                .any(|view| !self.gone.contains(&Key::Alloc(view.alloc.id)));
            let is_old = value.modify_time.plus(self.thresholds.deployment) <= self.now;
            let is_gone = self.gone.contains(&key);
            if value.status.is_active() || is_needed || is_named || !is_old || is_gone {
                continue;
            }
            let counts = Counts {
                deployments: 1,
                ..Counts::default()
            };
            self.packer.add([(key, deployment.modify_index)], counts);
        }
    }

    fn nodes(&mut self) {
        for node in self.snapshot.nodes() {
            let (id, value) = (node.value.id, &node.value);
            let mut allocs = self.snapshot.allocs_by_node(id);
            let has_live = allocs.any(|view| !view.is_terminal());
            let is_old = value.status_updated_at.plus(self.thresholds.node) <= self.now;
            if value.status == NodeStatus::Down && !has_live && is_old {
                let counts = Counts {
                    nodes: 1,
                    ..Counts::default()
                };
                self.packer
                    .add([(Key::Node(id), node.modify_index)], counts);
            }
        }
    }

    /// Deletes claims of volumes that are gone; returns those of jobs that are gone.
    fn volume_claims(&mut self) -> Orphans<'a> {
        let mut orphans = Orphans::new();
        for claim in self.snapshot.volume_claims() {
            let value = &claim.value;
            let volume = self.snapshot.volume(&value.volume_key());
            // A volume created later under the same name has another id.
            if volume.is_none_or(|volume| volume.value.id != value.volume_id) {
                let key = Key::VolumeClaim(value.id());
                self.packer
                    .add([(key, claim.modify_index)], Counts::default());
            } else if self.snapshot.job(&value.job_key()).is_none() {
                orphans.entry(value.job_key()).or_default().push(claim);
            }
        }
        orphans
    }

    /// Reports without their allocation, and dispatch tokens without their child.
    fn leftovers(&mut self) {
        for (id, client, modify_index) in self.snapshot.clients_without_alloc() {
            if client.modify_time.plus(self.thresholds.eval) <= self.now {
                let key = Key::AllocClient(id);
                self.packer.add([(key, modify_index)], Counts::default());
            }
        }
        for (parent, token, row) in self.snapshot.dispatch_tokens() {
            let child = JobKey::new(&*parent.namespace, row.value.child_id.as_str());
            let key = Key::DispatchToken(parent.clone(), token.to_owned());
            if self.snapshot.job(&child).is_none() && !self.gone.contains(&key) {
                self.packer
                    .add([(key, row.modify_index)], Counts::default());
            }
        }
    }

    fn introductions(&mut self) {
        for token in self.snapshot.introduction_tokens() {
            let (id, value) = (token.value.id, &token.value);
            // An expired token stays for a while: the refusal of a late node can name the expiry.
            if value.expires_at.plus(self.thresholds.eval) <= self.now {
                let key = Key::IntroductionToken(id);
                self.packer
                    .add([(key, token.modify_index)], Counts::default());
            }
        }
        for (node_id, introduction) in self.snapshot.node_introductions() {
            // The pool of a node counts as long as the node has a certificate, or is known.
            let is_over = introduction.value.certified_until <= self.now;
            if is_over && self.snapshot.node(node_id).is_none() {
                let key = Key::NodeIntroduction(node_id);
                self.packer
                    .add([(key, introduction.modify_index)], Counts::default());
            }
        }
    }
}
