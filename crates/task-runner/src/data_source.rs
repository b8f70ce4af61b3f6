//! The source of Kafila's own data for templates: variables and services, from a gateway.

use std::fmt;
use std::time::Duration;

use model::AllocId;
use sha2::{Digest as _, Sha256};
use task_drivers::driver::BoxFuture;
use template::Lookup;
use template::source::{Answer, Choice, ServiceInstance};
use template_watch::{FetchError, Fetched};

/// The interval of looks at a variable, or at a list of them: a gateway reads the store for each.
const VARIABLE_INTERVAL: Duration = Duration::from_secs(5);
/// The interval of looks at services. The node has their instances in memory: a back end that is gone
/// leaves the file of a proxy within three seconds, with the time of a rendering.
const SERVICE_INTERVAL: Duration = Duration::from_secs(2);

/// The task that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    pub alloc_id: AllocId,
    pub task: String,
    /// The namespace of its job.
    pub namespace: String,
}

/// Looks data up on behalf of a task.
pub trait DataSource: fmt::Debug + Send + Sync {
    /// Makes one attempt of at most 10 s and returns the answer. For a service, the answer has all
    /// instances: the caller applies the look-up's `choice`.
    ///
    /// # Errors
    /// The reason, without secrets.
    fn look_up(
        &self,
        requester: &Requester,
        lookup: &Lookup,
    ) -> BoxFuture<'static, Result<Answer, String>>;
}

/// The source of a node without gateways.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoData;

impl DataSource for NoData {
    fn look_up(&self, _: &Requester, _: &Lookup) -> BoxFuture<'static, Result<Answer, String>> {
        Box::pin(async { Err("this node has no gateway".to_owned()) })
    }
}

/// Returns whether a look-up is one of Kafila's own data.
pub(crate) fn has(lookup: &Lookup) -> bool {
    match lookup {
        Lookup::Variable { .. }
        | Lookup::Variables { .. }
        | Lookup::Service { .. }
        | Lookup::Services => true,
        Lookup::Consul { .. }
        | Lookup::Secret { .. }
        | Lookup::Secrets { .. }
        | Lookup::SecretWrite { .. } => false,
    }
}

/// Looks data up once.
pub(crate) fn fetch(
    source: &dyn DataSource,
    requester: &Requester,
    lookup: Lookup,
) -> BoxFuture<'static, Result<Fetched, FetchError>> {
    let asked = source.look_up(requester, &lookup);
    Box::pin(async move {
        let answer = asked.await.map_err(FetchError::new)?;
        let again = match lookup {
            Lookup::Service { .. } | Lookup::Services => SERVICE_INTERVAL,
            _ => VARIABLE_INTERVAL,
        };
        let answer = match (answer, lookup) {
            (
                Answer::Instances(all),
                Lookup::Service {
                    choice: Some(choice),
                    ..
                },
            ) => Answer::Instances(chosen(all, &choice)),
            (answer, _) => answer,
        };
        Ok(Fetched {
            answer: Some(answer),
            again: Some(again),
        })
    })
}

/// Returns the instances with the lowest hash of the key and their id, so that another instance
/// replaces one that is gone, and the others stay (rendezvous hashing).
fn chosen(mut all: Vec<ServiceInstance>, choice: &Choice) -> Vec<ServiceInstance> {
    all.sort_by_cached_key(|instance| {
        let hash = Sha256::new().chain_update(&choice.key).chain_update([0]);
        hash.chain_update(&instance.id).finalize()
    });
    all.truncate(choice.count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(ids: impl IntoIterator<Item = u16>) -> Vec<ServiceInstance> {
        let instance = |port: u16| ServiceInstance {
            id: format!("i{port}"),
            port,
            ..ServiceInstance::default()
        };
        ids.into_iter().map(instance).collect()
    }

    #[test]
    fn a_choice_changes_only_for_the_instance_that_is_gone() {
        let choice = |key: &str| Choice {
            count: 3,
            key: key.to_owned(),
        };
        let before = chosen(instances(0..10), &choice("a"));
        assert_eq!(before.len(), 3);
        let gone = before[0].port;
        let after = chosen(
            instances((0..10).rev().filter(|port| *port != gone)),
            &choice("a"),
        );
        assert!(before[1..].iter().all(|instance| after.contains(instance)));
        assert_ne!(before, chosen(instances(0..10), &choice("b")));
        assert_eq!(chosen(instances(0..2), &choice("a")).len(), 2);
    }
}
