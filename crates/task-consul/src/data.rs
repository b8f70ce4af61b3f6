//! The source of look-ups in Consul for one task.

use std::time::Duration;

use consul::{Failure, Scope};
use futures::future::BoxFuture;
use login_provider::TokenWatch;
use template::Lookup;
use template::source::Answer;
use template_watch::{Fetch, FetchError, Fetched};

use crate::answer::answer;
use crate::look_ups::LookUps;
use crate::node::Node;
use crate::query;

/// The interval of looks at the newest data, which the node has in memory.
const INTERVAL: Duration = Duration::from_secs(2);

/// The look-ups of one task. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Data {
    look_ups: LookUps,
    place: Scope,
    /// The task's own; `None`: the node's.
    token: Option<TokenWatch>,
}

impl Data {
    /// The look-ups of a task with its token; without one, with the node's. Empty texts of the place are the
    /// node's.
    pub fn new(
        node: &Node,
        token: Option<TokenWatch>,
        (namespace, partition): (&str, &str),
    ) -> Self {
        Self {
            look_ups: node.look_ups().clone(),
            place: Scope {
                namespace: namespace.to_owned(),
                partition: partition.to_owned(),
                ..Scope::default()
            },
            token,
        }
    }

    async fn look_up(self, lookup: Lookup) -> Result<Answer, FetchError> {
        let Lookup::Consul {
            function,
            arguments,
        } = &lookup
        else {
            return Err(FetchError::new("it is no look-up of Consul"));
        };
        let mut place = self.place.clone();
        if let Some(own) = &self.token {
            let token = own.now().token;
            place.token =
                token.ok_or_else(|| FetchError::new("the task has no token of Consul yet"))?;
        }
        let (query, form) = query::read(function, arguments, &place).map_err(FetchError::new)?;
        let is_sorted = !query.scope.near.is_empty();
        match self.look_ups.get(query).await {
            Ok(raw) => Ok(answer(raw, &form, is_sorted)),
            Err(failure) => {
                if let (Failure::Forbidden { .. }, Some(own)) = (&failure, &self.token) {
                    // The token may have been revoked.
                    own.request_test();
                }
                Err(FetchError::new(failure.to_string()))
            }
        }
    }
}

impl Fetch for Data {
    fn fetch(&self, lookup: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        let found = self.clone().look_up(lookup);
        Box::pin(async move {
            Ok(Fetched {
                answer: Some(found.await?),
                again: Some(INTERVAL),
            })
        })
    }
}
