//! One history: the same steps on both stores, compared one by one.

use embedded_etcd::{Config, EmbeddedEtcd};
use etcd_client::proto::{PbRangeRequest, PbRangeResponse, PbTxnRequest, PbTxnResponse};
use rand::{SeedableRng, rngs::StdRng};
use test_kit::etcd::Etcd;

use super::{
    generate::{Generator, Known, ODD_STREAM},
    normalise::{Stream, same_but_for_ties},
    side::{STREAMS, Side},
    step::{Answer, Step},
};
use crate::support::{
    etcd_process::{self, EtcdOptions},
    raw::progress,
    wait_for,
};

/// Small, so that the limit is met.
const MAX_TXN_OPS: usize = 8;

pub(super) struct History {
    seed: u64,
    generator: Generator,
    store: EmbeddedEtcd,
    _etcd: Etcd,
    ours: Side,
    theirs: Side,
    /// For the summary: the answers, errors by their text.
    counts: std::collections::BTreeMap<String, usize>,
}

impl History {
    pub(super) async fn start(seed: u64) -> Self {
        let config = Config {
            max_txn_ops: MAX_TXN_OPS,
            ..Config::in_memory()
        };
        let options = EtcdOptions {
            max_txn_ops: MAX_TXN_OPS,
            max_request_bytes: config.max_request_bytes,
            progress_interval: "10m",
        };
        let etcd = etcd_process::start(&options).await;
        let store = EmbeddedEtcd::start(config).await.unwrap();
        Self {
            seed,
            generator: Generator {
                rng: StdRng::seed_from_u64(seed),
                hashes: seed.is_multiple_of(2),
                known: Known {
                    revision: 1,
                    compact_revision: -1,
                    ..Known::default()
                },
            },
            ours: Side::new("the embedded store", store.channel()).await,
            theirs: Side::new("etcd", etcd_process::channel(&etcd)).await,
            store,
            _etcd: etcd,
            counts: std::collections::BTreeMap::new(),
        }
    }

    pub(super) async fn run(&mut self, steps: u64) {
        for number in 0..steps {
            let step = self.generator.next();
            self.step(number, step).await;
        }
        self.step(steps, Step::Settle).await;
        if self.generator.hashes {
            self.step(steps, Step::HashKv { revision: 0 }).await;
        }
    }

    pub(super) async fn end(self) {
        self.store.shutdown().await;
    }

    pub(super) fn summary(&self) -> String {
        let revision = self.generator.known.revision;
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(what, count)| format!("{what} {count}"))
            .collect();
        format!("revision {revision}; {}", counts.join(", "))
    }

    async fn step(&mut self, number: u64, step: Step) {
        let must_settle = matches!(
            step,
            Step::Compact(_) | Step::CancelWatch { .. } | Step::Settle
        );
        if must_settle {
            self.settle(number).await;
        }
        let (mut ours, mut theirs) =
            tokio::join!(self.ours.perform(&step), self.theirs.perform(&step));
        if matches!(step, Step::HashKv { .. }) && ours != theirs {
            // etcd's compaction may still be at work, which its hash can tell when no key is left.
            let first = theirs.clone();
            theirs = wait_for(
                async || {
                    let theirs = self.theirs.perform(&step).await;
                    (theirs == ours).then_some(theirs)
                },
                || {
                    let seed = self.seed;
                    format!("seed {seed} step {number} {step:?}: {ours:?} against {first:?}")
                },
            )
            .await;
        }
        forgive_ties(&step, &mut ours, &theirs);
        assert_eq!(
            ours, theirs,
            "seed {} step {number}: the embedded store (left) and etcd (right) differ on {step:?}",
            self.seed
        );
        self.learn(&step, &ours);
        self.count(&step, &ours);
    }

    /// Waits until both sides have heard all there is to hear, and compares it.
    async fn settle(&mut self, number: u64) {
        let revision = self.generator.known.revision;
        for stream in 0..STREAMS {
            if stream != ODD_STREAM && !self.generator.known.watches[stream].is_empty() {
                catch_up(&self.ours, stream, revision).await;
                catch_up(&self.theirs, stream, revision).await;
            }
            let pair = || {
                let ours = Stream::of(self.ours.received(stream));
                (ours, Stream::of(self.theirs.received(stream)))
            };
            wait_for(
                async || {
                    let (ours, theirs) = pair();
                    (ours == theirs).then_some(())
                },
                || {
                    let (ours, theirs) = pair();
                    let (seed, known) = (self.seed, &self.generator.known);
                    let difference = difference(&ours, &theirs);
                    format!("seed {seed} step {number} stream {stream} {known:?}: {difference}")
                },
            )
            .await;
        }
    }

    fn learn(&mut self, step: &Step, answer: &Answer) {
        let known = &mut self.generator.known;
        if let Some(revision) = answer.revision() {
            known.revision = known.revision.max(revision);
        }
        match (step, answer) {
            (Step::Compact(request), Answer::Compact(_)) => {
                known.compact_revision = request.revision;
            }
            (Step::Grant { id, .. }, Answer::Grant(_)) => {
                known.leases.push(*id);
                known.granted += 1;
            }
            (Step::Revoke { id }, Answer::Revoke(_)) => {
                known.leases.retain(|other| other != id);
            }
            (Step::Watch { stream, .. } | Step::CancelWatch { stream, .. }, _) => {
                known.watches[*stream] = Stream::of(self.ours.received(*stream)).active();
            }
            _ => {}
        }
    }

    fn count(&mut self, step: &Step, answer: &Answer) {
        let what = match answer {
            Answer::Error(_, message) => message.clone(),
            _ => {
                let name = format!("{step:?}");
                let end = name.find(['(', ' ']).unwrap_or(name.len());
                name[..end].to_owned()
            }
        };
        *self.counts.entry(what).or_default() += 1;
    }
}

/// Reports that are waited for: the first may still be the answer to an earlier request, from
/// before the last watch was created.
const FRESH_REPORTS: usize = 3;

/// Asks for progress until it is reported: then the stream has caught up with `revision`. etcd
/// looks after watches that are behind ten times a second, and leaves requests unanswered until
/// then.
async fn catch_up(side: &Side, stream: usize, revision: i64) {
    let reported = || Stream::of(side.received(stream)).reports_of(revision);
    let before = reported();
    wait_for(
        async || {
            side.control(stream, progress()).await;
            (reported() >= before + FRESH_REPORTS).then_some(())
        },
        || {
            let heard = Stream::of(side.received(stream));
            let (name, last) = (side.name, heard.progress.last());
            let controls = heard.controls();
            format!("{name} reports {revision}, not {last:?}, on stream {stream}: {controls:?}")
        },
    )
    .await;
}

/// Gives our answer etcd's order of equal keys where that order is unspecified.
fn forgive_ties(step: &Step, ours: &mut Answer, theirs: &Answer) {
    match (step, ours, theirs) {
        (Step::Range(request), Answer::Range(ours), Answer::Range(theirs)) => {
            forgive_in_range(request, ours, theirs);
        }
        (Step::Txn(request), Answer::Txn(ours), Answer::Txn(theirs)) => {
            forgive_in_txn(request, ours, theirs);
        }
        _ => {}
    }
}

fn forgive_in_range(
    request: &PbRangeRequest,
    ours: &mut PbRangeResponse,
    theirs: &PbRangeResponse,
) {
    if same_but_for_ties(request, &ours.kvs, &theirs.kvs, theirs.count) {
        ours.kvs.clone_from(&theirs.kvs);
    }
}

fn forgive_in_txn(request: &PbTxnRequest, ours: &mut PbTxnResponse, theirs: &PbTxnResponse) {
    use etcd_client::proto::{PbTxnOpRequest as Asked, PbTxnOpResponse as Answered};
    let ops = if theirs.succeeded {
        &request.success
    } else {
        &request.failure
    };
    for ((op, ours), theirs) in ops.iter().zip(&mut ours.responses).zip(&theirs.responses) {
        match (&op.request, &mut ours.response, &theirs.response) {
            (
                Some(Asked::RequestRange(request)),
                Some(Answered::ResponseRange(ours)),
                Some(Answered::ResponseRange(theirs)),
            ) => forgive_in_range(request, ours, theirs),
            (
                Some(Asked::RequestTxn(request)),
                Some(Answered::ResponseTxn(ours)),
                Some(Answered::ResponseTxn(theirs)),
            ) => forgive_in_txn(request, ours, theirs),
            _ => {}
        }
    }
}

/// The first thing that the streams heard differently.
fn difference(ours: &Stream, theirs: &Stream) -> String {
    if ours.progress != theirs.progress {
        return format!("progress {:?} against {:?}", ours.progress, theirs.progress);
    }
    let ids = ours.watches.keys().chain(theirs.watches.keys());
    for id in ids {
        let none = Vec::new();
        let ours = ours.watches.get(id).unwrap_or(&none);
        let theirs = theirs.watches.get(id).unwrap_or(&none);
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        if same < ours.len().max(theirs.len()) {
            return format!(
                "watch {id} heard {same} things alike, then {:#?} against etcd's {:#?}",
                ours.get(same),
                theirs.get(same)
            );
        }
    }
    "nothing any more".to_owned()
}
