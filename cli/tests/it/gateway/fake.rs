//! State and helpers of the fake gateway's RPCs.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::v1::*;
use tonic::{Request, Response, Status};

use crate::state::{FakeState, Seen};

/// Duration of blocking queries: the state of a test does not change by itself.
const BLOCK: Duration = Duration::from_millis(20);

pub(super) type Answer<T> = Result<Response<T>, Status>;

/// The server side of the gateway.
#[derive(Clone)]
pub(super) struct Fake(pub(super) Arc<Mutex<FakeState>>);

impl Fake {
    /// Records a call, and answers it if the state is broken.
    pub(super) async fn seen<T>(
        &self,
        method: &'static str,
        request: &Request<T>,
        options: Option<&QueryOptions>,
    ) -> Result<(), Status> {
        let metadata = request.metadata();
        let seen = Seen {
            method,
            options: options.cloned().unwrap_or_default(),
            has_deadline: metadata.contains_key("grpc-timeout"),
            trace_parent: metadata
                .get("traceparent")
                .map(|value| value.to_str().unwrap().to_owned()),
        };
        let (broken, mute) = {
            let mut state = self.state();
            state.seen.push(seen);
            (state.broken.clone(), state.mute)
        };
        if mute {
            std::future::pending::<()>().await;
        }
        broken.map_or(Ok(()), Err)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap()
    }
}

pub(super) fn lists(options: Option<&QueryOptions>, namespace: &str, id: &str) -> bool {
    let Some(options) = options else { return true };
    let wanted = match options.namespace.as_str() {
        "" => "default",
        wanted => wanted,
    };
    (wanted == "*" || wanted == namespace) && id.starts_with(&options.prefix)
}

/// Like [`lists`] for UUIDs, ignoring hyphens.
pub(super) fn lists_id(options: Option<&QueryOptions>, namespace: &str, id: &str) -> bool {
    let options = options.cloned().map(|options| QueryOptions {
        prefix: options.prefix.replace('-', ""),
        ..options
    });
    lists(options.as_ref(), namespace, &id.replace('-', ""))
}

/// Returns one page of a list, with the token of the next.
pub(super) fn page<T>(
    mut items: Vec<T>,
    options: Option<&QueryOptions>,
) -> (Vec<T>, Option<QueryMeta>) {
    let options = options.cloned().unwrap_or_default();
    let skipped = options.next_token.parse::<usize>().unwrap_or_default();
    let limit = usize::try_from(options.per_page).unwrap();
    let mut meta = meta(100);
    if options.reverse {
        items.reverse();
    }
    items.drain(..skipped.min(items.len()));
    if limit > 0 && items.len() > limit {
        items.truncate(limit);
        meta.next_token = (skipped + limit).to_string();
    }
    (items, Some(meta))
}

pub(super) fn meta(index: u64) -> QueryMeta {
    QueryMeta {
        index,
        ..QueryMeta::default()
    }
}

/// Blocks a blocking query for a short time.
pub(super) async fn block(options: Option<&QueryOptions>, index: u64) {
    let waits = options.is_some_and(|options| options.min_index >= index);
    if waits {
        tokio::time::sleep(BLOCK).await;
    }
}
