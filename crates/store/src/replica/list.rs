//! Lists everything below the prefix as of one revision.

use std::time::Duration;

use etcd_client::GetOptions;
use state::State;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::error::Error;
use crate::replica::decode::to_objects;
use crate::replica::options::ReplicaOptions;
use crate::revision;

/// The deadline of one page, which may be hundreds of megabytes where jobs are large.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the state at the revision of the first page.
///
/// # Errors
/// etcd fails, or compacts that revision before the last page.
pub(super) async fn list(client: &Client, options: &ReplicaOptions) -> Result<State, Error> {
    let prefix = client.keyspace.prefix().as_bytes().to_vec();
    let end = end_of(&prefix);
    let mut start = prefix;
    let mut at = 0;
    // Decoded while the next page is on its way.
    let mut pages = Vec::new();
    loop {
        let page_options = GetOptions::new()
            .with_range(end.clone())
            .with_limit(i64::from(options.page_size))
            .with_revision(revision::to_etcd(at));
        let response = client
            .call_within(PAGE_TIMEOUT, "list the store", || {
                let (mut kv, start, options) =
                    (client.kv.clone(), start.clone(), page_options.clone());
                async move { kv.get(start, Some(options)).await }
            })
            .await?;
        if at == 0 {
            at = client.note_revision(&response);
        }
        let page = response.0;
        let more = page.more;
        if let Some(last) = page.kvs.last() {
            start = last.key.clone();
            start.push(0);
        }
        let (keyspace, metrics) = (client.keyspace.clone(), options.metrics.clone());
        let interest = options.interest;
        pages.push(blocking::spawn(move || {
            to_objects(&keyspace, page.kvs, &metrics, interest)
        }));
        if !more {
            break;
        }
    }
    let mut objects = Vec::new();
    for page in pages {
        objects.push(finish(page).await);
    }
    Ok(finish(blocking::spawn(move || {
        State::from_list(at, objects.into_iter().flatten())
    }))
    .await)
}

/// Waits for work on a blocking thread; passes its panic on.
async fn finish<T>(work: JoinHandle<T>) -> T {
    match work.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Cancelled: the runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Returns the first key after all keys below `prefix`, which ends with a slash.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
