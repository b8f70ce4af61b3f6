//! Reports of hollow nodes: the states of their allocations, in batches.

use std::sync::Arc;
use std::time::Duration;

use proto::internal::v1 as internal;
use service_kit::request;
use tokio::time::sleep;
use tonic::Code;

use super::{CALL_TIMEOUT, Fleet, Member, REPORTS_PER_CALL, RETRY_PAUSE, TICK};
use crate::hollow::node::{Phase, Report};
use crate::hollow::wire;

impl Fleet {
    /// Makes the changes that are due, and sends the reports.
    pub(super) async fn report(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            let now = self.now();
            for (at, number) in self.reports.due(now) {
                let member = Arc::clone(&self.members[number as usize]);
                let mut state = member.state();
                if state.is_dead || state.scheduled != Some(at) {
                    continue;
                }
                state.scheduled = None;
                let events = state.node.tick(self.options.behaviour, now);
                let sends = state.node.has_reports() && !state.is_sending;
                if sends {
                    state.is_sending = true;
                    let fleet = Arc::clone(&self);
                    let member = Arc::clone(&member);
                    tokio::spawn(async move { fleet.send(&member).await });
                }
                self.schedule(&mut state, number, now);
                drop(state);
                self.registry().record(number, &events, now);
            }
        }
    }

    async fn send(&self, member: &Member) {
        let batch = member
            .state()
            .node
            .take_reports(REPORTS_PER_CALL, self.now());
        let reports = batch.iter();
        let message = internal::ReportAllocationsRequest {
            node_id: wire::text(member.id),
            secret: wire::text(member.secret),
            reports: reports
                .map(|report| wire::report(report, self.epoch_ns))
                .collect(),
        };
        let answer = self
            .sessions(member)
            .report_allocations(request(message, CALL_TIMEOUT))
            .await;
        let mut pause = 0;
        let again: Vec<(u128, u64)> = match answer {
            Ok(answer) => {
                let newer = answer.into_inner().newer_reports.into_iter();
                let newer =
                    newer.filter_map(|it| Some((wire::number(&it.alloc_id)?, it.report_number)));
                let newer: Vec<(u128, u64)> = newer.collect();
                self.acknowledge(&batch, &newer);
                newer
            }
            Err(status) => {
                pause = RETRY_PAUSE;
                if status.code() == Code::InvalidArgument {
                    let text = format!("a report was refused: {}", status.message());
                    self.registry().violations.push(text);
                    Vec::new()
                } else {
                    batch.iter().map(|report| (report.id, 0)).collect()
                }
            }
        };
        sleep(Duration::from_millis(pause)).await;
        let mut state = member.state();
        state.is_sending = false;
        if !state.is_dead {
            state.node.report_again(again);
            self.schedule(&mut state, member.number, self.now());
        }
    }

    fn acknowledge(&self, batch: &[Report], newer: &[(u128, u64)]) {
        let mut registry = self.registry();
        for report in batch {
            if newer.iter().any(|(id, _)| *id == report.id) {
                continue;
            }
            match report.phase {
                Phase::Ended { .. } => registry.progress.ended += 1,
                _ => registry.acknowledged_running(report.id),
            }
        }
    }
}
