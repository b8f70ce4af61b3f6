//! Fixed cases that random histories seldom or never meet, on both stores.

use std::time::Duration;

use embedded_etcd::{Config, EmbeddedEtcd};
use etcd_client::proto::{
    PbCompactionRequest, PbPutRequest, PbRangeRequest, PbTxnOpRequest, PbTxnRequest,
    PbTxnRequestOp, PbWatchResponse,
};
use test_kit::etcd::Etcd;

use super::{
    normalise::Stream,
    side::Side,
    step::{Answer, Step},
};
use crate::support::{
    etcd_process::{self, EtcdOptions},
    raw::{Create, RawClient, WatchStream, progress},
    wait_for,
};

/// Small, so that limits are met with little data.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// From this size on etcd cuts messages: half a MiB more than a request may have.
const FRAGMENT_BYTES: usize = MAX_REQUEST_BYTES + 512 * 1024;

/// The shortest interval that etcd takes.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// An embedded store and an etcd, started alike.
struct Pair {
    store: EmbeddedEtcd,
    etcd: Etcd,
    ours: Side,
    theirs: Side,
}

impl Pair {
    /// `None` if there is no etcd to compare with.
    async fn start(test: &str) -> Option<Self> {
        if !etcd_process::is_available(test) {
            return None;
        }
        let config = Config {
            max_request_bytes: MAX_REQUEST_BYTES,
            watch_progress_interval: PROGRESS_INTERVAL,
            ..Config::in_memory()
        };
        let options = EtcdOptions {
            max_txn_ops: config.max_txn_ops,
            max_request_bytes: config.max_request_bytes,
            progress_interval: "100ms",
        };
        let etcd = etcd_process::start(&options).await;
        let store = EmbeddedEtcd::start(config).await.unwrap();
        Some(Self {
            ours: Side::new("the embedded store", store.channel()).await,
            theirs: Side::new("etcd", etcd_process::channel(&etcd)).await,
            store,
            etcd,
        })
    }

    /// The answer that both give.
    async fn both(&mut self, step: Step) -> Answer {
        let ours = self.ours.perform(&step).await;
        let theirs = self.theirs.perform(&step).await;
        assert_eq!(ours, theirs, "the embedded store (left) on {step:?}");
        ours
    }

    fn clients(&self) -> [RawClient; 2] {
        [self.store.channel(), etcd_process::channel(&self.etcd)].map(RawClient::new)
    }
}

fn put(key: &str, value_bytes: usize) -> Step {
    Step::Put(PbPutRequest {
        key: key.into(),
        value: vec![b'x'; value_bytes],
        ..PbPutRequest::default()
    })
}

fn compact(revision: i64) -> Step {
    Step::Compact(PbCompactionRequest {
        revision,
        physical: true,
    })
}

fn range_at(revision: i64) -> PbRangeRequest {
    PbRangeRequest {
        key: b"k".to_vec(),
        revision,
        ..PbRangeRequest::default()
    }
}

fn range_in_txn(revision: i64) -> Step {
    let range = PbTxnOpRequest::RequestRange(range_at(revision));
    Step::Txn(PbTxnRequest {
        success: vec![PbTxnRequestOp {
            request: Some(range),
        }],
        ..PbTxnRequest::default()
    })
}

#[tokio::test]
async fn compactions_and_revisions_at_the_edges() {
    let Some(mut pair) = Pair::start("compactions_and_revisions_at_the_edges").await else {
        return;
    };
    for _ in 0..4 {
        pair.both(put("k", 1)).await;
    }
    for compact_at in [-1, 1_000, 0, 0, 1, 3, 3, 2, 5, 5] {
        pair.both(compact(compact_at)).await;
        for revision in -2..7 {
            pair.both(Step::Range(range_at(revision))).await;
            // In a txn a negative revision is not taken for the current one.
            pair.both(range_in_txn(revision)).await;
        }
    }
    pair.both(Step::Txn(PbTxnRequest::default())).await;
    pair.store.shutdown().await;
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_and_a_large_answer_is_not() {
    let test = "a_request_over_the_limit_is_refused_and_a_large_answer_is_not";
    let Some(mut pair) = Pair::start(test).await else {
        return;
    };
    let refused = pair.both(put("k", MAX_REQUEST_BYTES)).await;
    assert!(matches!(
        refused,
        Answer::Error(tonic::Code::InvalidArgument, _)
    ));
    for number in 0..100 {
        pair.both(put(&format!("k{number}"), MAX_REQUEST_BYTES - 1_000))
            .await;
    }
    // More than 6 MiB.
    let all = PbRangeRequest {
        key: vec![0],
        range_end: vec![0],
        ..PbRangeRequest::default()
    };
    pair.both(Step::Range(all)).await;
    pair.store.shutdown().await;
}

#[tokio::test]
async fn an_ended_lease_takes_its_keys_and_is_gone() {
    let Some(mut pair) = Pair::start("an_ended_lease_takes_its_keys_and_is_gone").await else {
        return;
    };
    // Extended to two seconds.
    let grant = Step::Grant {
        id: 7,
        chosen: true,
        ttl: 1,
    };
    let Answer::Grant(granted) = pair.both(grant).await else {
        panic!("it is granted");
    };
    assert_eq!(granted.ttl, 2);
    let watch = Step::Watch {
        stream: 0,
        create: Create {
            key: vec![0],
            range_end: vec![0],
            prev_kv: true,
            ..Create::default()
        },
    };
    pair.both(watch).await;
    for key in ["b", "a", "c"] {
        let put = PbPutRequest {
            key: key.into(),
            lease: 7,
            ..PbPutRequest::default()
        };
        pair.both(Step::Put(put)).await;
    }
    let deletions = |side: &Side| {
        let last = side.received(0).pop().unwrap();
        last.events.iter().filter(|event| event.r#type == 1).count()
    };
    for side in [&pair.ours, &pair.theirs] {
        wait_for(
            async || (deletions(side) == 3).then_some(()),
            || format!("{} deletes the keys", side.name),
        )
        .await;
    }
    let heard = |side: &Side| Stream::of(side.received(0));
    assert_eq!(heard(&pair.ours), heard(&pair.theirs));
    for step in [
        Step::KeepAlive { id: 7 },
        Step::TimeToLive { id: 7, keys: true },
        Step::Revoke { id: 7 },
        Step::Leases,
        Step::HashKv { revision: 0 },
    ] {
        pair.both(step).await;
    }
    pair.store.shutdown().await;
}

#[tokio::test]
async fn a_watch_that_takes_fragments_gets_no_message_over_the_limit() {
    const PUTS: usize = 40;
    let test = "a_watch_that_takes_fragments_gets_no_message_over_the_limit";
    let Some(mut pair) = Pair::start(test).await else {
        return;
    };
    for number in 0..PUTS {
        pair.both(put(&format!("k{number}"), MAX_REQUEST_BYTES - 1_000))
            .await;
    }
    let create = Create {
        key: b"k".to_vec(),
        range_end: b"l".to_vec(),
        start_revision: 1,
        fragment: true,
        ..Create::default()
    };
    let mut heard = Vec::new();
    for mut client in pair.clients() {
        let stream = client.watch(create.to_union()).await;
        let all = |responses: &[PbWatchResponse]| {
            responses
                .iter()
                .map(|response| response.events.len())
                .sum::<usize>()
                == PUTS
        };
        let responses = received(&stream, all).await;
        let sizes: Vec<usize> = responses.iter().map(prost::Message::encoded_len).collect();
        assert!(sizes.iter().all(|size| *size < FRAGMENT_BYTES), "{sizes:?}");
        assert!(responses.iter().any(|response| response.fragment));
        assert!(!responses.last().unwrap().fragment);
        let events: Vec<_> = responses
            .into_iter()
            .flat_map(|response| response.events)
            .collect();
        heard.push(events);
    }
    assert_eq!(heard[0], heard[1]);
    pair.store.shutdown().await;
}

#[tokio::test]
async fn a_quiet_watch_gets_the_revision_periodically() {
    let Some(mut pair) = Pair::start("a_quiet_watch_gets_the_revision_periodically").await else {
        return;
    };
    let create = Create {
        key: b"quiet".to_vec(),
        progress_notify: true,
        watch_id: 9,
        ..Create::default()
    };
    let mut streams = Vec::new();
    for mut client in pair.clients() {
        streams.push(client.watch(create.to_union()).await);
    }
    pair.both(put("other", 1)).await;
    for stream in streams {
        let tells = |responses: &[PbWatchResponse]| {
            let last = responses.last().unwrap();
            last.header.as_ref().unwrap().revision == 2
        };
        let responses = received(&stream, tells).await;
        let last = responses.last().unwrap();
        assert_eq!(
            (last.watch_id, last.created, last.events.len()),
            (9, false, 0)
        );
    }
    pair.store.shutdown().await;
}

#[tokio::test]
async fn a_compacted_watch_silences_progress_until_it_is_cancelled() {
    let test = "a_compacted_watch_silences_progress_until_it_is_cancelled";
    let Some(mut pair) = Pair::start(test).await else {
        return;
    };
    for _ in 0..4 {
        pair.both(put("k", 1)).await;
    }
    pair.both(compact(4)).await;
    let create = Create {
        key: b"k".to_vec(),
        start_revision: 2,
        ..Create::default()
    };
    let mut heard = Vec::new();
    for mut client in pair.clients() {
        let stream = client.watch(create.to_union()).await;
        let is_told = |responses: &[PbWatchResponse]| {
            responses
                .iter()
                .any(|response| response.compact_revision == 4)
        };
        received(&stream, is_told).await;
        // The first request stays unanswered; the second, after the cancellation, too: there is no
        // watch left to report on. The third is answered.
        stream.send(progress()).await;
        stream.send(crate::support::raw::cancel(0)).await;
        stream.send(progress()).await;
        let present = Create {
            start_revision: 0,
            ..create.clone()
        };
        stream.send(present.to_union()).await;
        stream.send(progress()).await;
        let reports = |responses: &[PbWatchResponse]| {
            responses.iter().any(|response| response.watch_id == -1)
        };
        let mut responses = received(&stream, reports).await;
        for response in &mut responses {
            let header = response.header.take().unwrap();
            response.header = Some(etcd_client::proto::PbResponseHeader {
                revision: header.revision,
                ..Default::default()
            });
        }
        // etcd sends answers to requests and what watches hear in either order.
        responses.sort_by_key(|response| response.watch_id == -1);
        heard.push(responses);
    }
    assert_eq!(heard[0], heard[1]);
    pair.store.shutdown().await;
}

#[tokio::test]
async fn a_watch_goes_on_after_the_client_has_closed_its_requests() {
    let test = "a_watch_goes_on_after_the_client_has_closed_its_requests";
    let Some(mut pair) = Pair::start(test).await else {
        return;
    };
    let create = Create {
        key: b"k".to_vec(),
        ..Create::default()
    };
    let mut streams = Vec::new();
    for mut client in pair.clients() {
        let (requests, mut responses) = client.watch_unread(create.to_union()).await;
        assert!(responses.message().await.unwrap().unwrap().created);
        drop(requests);
        streams.push(responses);
    }
    pair.both(put("k", 1)).await;
    for mut responses in streams {
        let next = tokio::time::timeout(crate::support::WAIT_LIMIT, responses.message());
        assert_eq!(next.await.unwrap().unwrap().unwrap().events.len(), 1);
    }
    pair.store.shutdown().await;
}

/// Returns a stream's messages as soon as `is_enough` accepts them.
async fn received(
    stream: &WatchStream,
    is_enough: impl Fn(&[PbWatchResponse]) -> bool,
) -> Vec<PbWatchResponse> {
    wait_for(
        async || {
            let responses = stream.received();
            (!responses.is_empty() && is_enough(&responses)).then_some(responses)
        },
        || format!("more than {:?}", stream.received()),
    )
    .await
}
