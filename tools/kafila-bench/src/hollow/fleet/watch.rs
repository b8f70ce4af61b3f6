//! Streams of hollow nodes: the allocations that the servers assign.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::internal::v1 as internal;
use proto::v1;
use service_kit::request;
use tokio::time::sleep;

use super::{CALL_TIMEOUT, Fleet, Member, RETRY_PAUSE, lock};
use crate::hollow::node::Assigned;
use crate::hollow::script::Script;
use crate::hollow::wire;

impl Fleet {
    /// Follows the stream of one node, until the runtime ends.
    pub(super) async fn watch(self: Arc<Self>, member: Arc<Member>) {
        let mut has_begun = false;
        loop {
            if member.state().is_dead {
                member.turned.notified().await;
                continue;
            }
            let message = internal::WatchAllocationsRequest {
                node_id: wire::text(member.id),
                secret: wire::text(member.secret),
                seen_revision: member.state().node.revision(),
            };
            let opened = self
                .sessions(&member)
                .watch_allocations(request(message, CALL_TIMEOUT))
                .await;
            if let Ok(answer) = opened {
                let mut stream = answer.into_inner();
                if !std::mem::replace(&mut has_begun, true) {
                    self.watching.fetch_add(1, Ordering::Relaxed);
                }
                loop {
                    tokio::select! {
                        () = member.turned.notified() => break,
                        message = stream.message() => match message {
                            Ok(Some(update)) => self.apply(&member, update),
                            Ok(None) | Err(_) => break,
                        }
                    }
                }
            }
            sleep(Duration::from_millis(rand::random_range(
                RETRY_PAUSE / 2..RETRY_PAUSE,
            )))
            .await;
        }
    }

    fn apply(&self, member: &Member, update: internal::AllocationsUpdate) {
        let now = self.now();
        let assigned = self.read(update.jobs, update.assignments);
        let removed = update.removed_alloc_ids.iter();
        let removed: Vec<u128> = removed.filter_map(|id| wire::number(id)).collect();
        let mut state = member.state();
        if state.is_dead || !state.node.advance(update.revision) {
            return;
        }
        let mut events = Vec::new();
        if update.full {
            let listed: HashSet<u128> = assigned.iter().map(|assigned| assigned.id).collect();
            events.extend(state.node.keep_only(&listed));
        }
        events.extend(removed.into_iter().filter_map(|id| state.node.remove(id)));
        for assigned in assigned {
            events.extend(state.node.assign(assigned, self.options.behaviour, now));
        }
        self.schedule(&mut state, member.number, now);
        drop(state);
        self.registry().record(member.number, &events, now);
    }

    fn read(&self, jobs: Vec<v1::Job>, assignments: Vec<internal::Assignment>) -> Vec<Assigned> {
        let mut registry = self.registry();
        let mut scripts = lock(&self.scripts);
        for job in &jobs {
            for group in &job.task_groups {
                let number = registry.group(job.namespace(), job.id(), group.name());
                let script = scripts.entry((number, job.version()));
                script.or_insert_with(|| Arc::new(Script::of(group)));
            }
        }
        let mut read = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let Some(alloc) = &assignment.allocation else {
                continue;
            };
            let group = registry.group(&alloc.namespace, &alloc.job_id, &alloc.task_group);
            let script = scripts.get(&(group, alloc.job_version)).cloned();
            // The stop of an allocation may come without its job, which was purged.
            read.extend(wire::read(assignment, group, script.unwrap_or_default()));
        }
        read
    }
}
