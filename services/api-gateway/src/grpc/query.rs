//! Queries that all nouns share: a list, a get, and a read of anything else.

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use admission::cluster::change::OneWrite;
use futures::Stream;
use gateway_core::{Error, Step};
use listing::{Namespaces, Page, PageKey, UuidPrefix};
use model::{FieldErrors, JobKey};
use proto::v1::{QueryMeta, QueryOptions};
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::gateway::Shared;
use crate::reads::blocking::{self, Query};
use crate::reads::index;
use crate::reads::options;

/// A streamed answer.
pub(super) type Parts<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Implements every service of the public API. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Api {
    pub(super) gateway: Shared,
}

/// The options and the deadline of a read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) options: QueryOptions,
    timeout: Option<Duration>,
}

impl Read {
    /// Takes the options out of a request, with the timeout of its caller.
    pub(super) fn new(options: Option<QueryOptions>, timeout: Option<Duration>) -> Self {
        Self {
            options: options.unwrap_or_default(),
            timeout,
        }
    }

    pub(super) fn namespaces(&self) -> Namespaces {
        Namespaces::read(&self.options.namespace)
    }

    /// Returns the key of the job that is read.
    pub(super) fn job_key(&self, job_id: &str) -> Result<JobKey, FieldErrors> {
        options::job_key("options.namespace", &self.options.namespace, job_id)
    }
}

/// A list request: filters of its options, and the page.
#[derive(Clone, Debug)]
pub(super) struct List<K> {
    read: Read,
    namespaces: Namespaces,
    id_prefix: Option<UuidPrefix>,
    page: Page<K>,
}

impl<K: PageKey> List<K> {
    /// # Errors
    /// The page's token is not one of this list.
    pub(super) fn new(
        options: Option<QueryOptions>,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let read = Read::new(options, timeout);
        Ok(Self {
            namespaces: read.namespaces(),
            id_prefix: None,
            page: Page::new(read.options.per_page, &read.options.next_token)?,
            read,
        })
    }

    /// Reads the prefix of the options as the start of ids.
    ///
    /// # Errors
    /// It is not the start of a UUID.
    pub(super) fn by_id(self) -> Result<Self, Error> {
        let id_prefix = options::uuid_prefix(&self.read.options)?;
        Ok(Self { id_prefix, ..self })
    }

    /// Lists in reverse if the options say so.
    pub(super) fn reversible(self) -> Self {
        let page = self.page.reversed(self.read.options.reverse);
        Self { page, ..self }
    }

    /// Returns the key of the job whose objects are listed.
    pub(super) fn job_key(&self, job_id: &str) -> Result<JobKey, FieldErrors> {
        self.read.job_key(job_id)
    }

    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contain(namespace)
    }

    pub(super) fn has_id(&self, id: Uuid) -> bool {
        self.id_prefix.is_none_or(|prefix| prefix.matches(id))
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        name.starts_with(&self.read.options.prefix)
    }

    /// Returns the page of `items` as they are shown, and the token of the next page.
    pub(super) fn page<T, V>(
        &self,
        items: impl Iterator<Item = (K, T)>,
        show: impl Fn(T) -> V,
    ) -> (Vec<V>, String) {
        let (items, token) = self.page.of(items);
        (items.into_iter().map(show).collect(), token)
    }
}

/// A query made of functions.
struct Functions<'a, A, I, F> {
    tables: &'a [Table],
    index: I,
    answer: F,
    marker: PhantomData<fn() -> A>,
}

impl<A, I, F> Query for Functions<'_, A, I, F>
where
    I: Fn(&Snapshot) -> u64,
    F: Fn(&Snapshot) -> Result<(A, String), Error>,
{
    type Answer = A;

    fn tables(&self) -> &[Table] {
        self.tables
    }

    fn index(&self, snapshot: &Snapshot) -> u64 {
        (self.index)(snapshot)
    }

    fn answer(&self, snapshot: &Snapshot) -> Result<(A, String), Error> {
        (self.answer)(snapshot)
    }
}

impl Api {
    /// Answers a list; its index is the newest change of `tables`.
    pub(super) async fn list<K: PageKey, V>(
        &self,
        list: &List<K>,
        tables: &[Table],
        answer: impl Fn(&Snapshot) -> Result<(Vec<V>, String), Error>,
    ) -> Result<(Vec<V>, Option<QueryMeta>), Error> {
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, tables);
        self.query(&list.read, tables, index, answer).await
    }

    /// Answers with one object: `find` looks it up, `index` is its index while it exists, and `show`
    /// returns the answer.
    pub(super) async fn get<T, A>(
        &self,
        read: &Read,
        tables: &[Table],
        find: impl Fn(&Snapshot) -> Result<T, Error>,
        index: impl Fn(&Snapshot, &T) -> u64,
        show: impl Fn(&Snapshot, &T) -> A,
    ) -> Result<(A, Option<QueryMeta>), Error> {
        let index = |snapshot: &Snapshot| match find(snapshot) {
            Ok(found) => index(snapshot, &found),
            Err(_) => index::of_tables(snapshot, tables),
        };
        let answer = |snapshot: &Snapshot| Ok((show(snapshot, &find(snapshot)?), String::new()));
        self.query(read, tables, index, answer).await
    }

    /// Answers a query. `answer` returns the result and, for a list, the token of the next page.
    pub(super) async fn query<A>(
        &self,
        read: &Read,
        tables: &[Table],
        index: impl Fn(&Snapshot) -> u64,
        answer: impl Fn(&Snapshot) -> Result<(A, String), Error>,
    ) -> Result<(A, Option<QueryMeta>), Error> {
        let mode = options::mode(&read.options)?;
        let query = Functions {
            tables,
            index,
            answer,
            marker: PhantomData,
        };
        let answered = blocking::answer(&self.gateway, mode, read.timeout, &query).await;
        answered.map(|(answer, meta)| (answer, Some(meta)))
    }
}

/// Returns the message of a request, and the timeout of its caller.
pub(super) fn open<T>(request: Request<T>) -> (T, Option<Duration>) {
    let timeout = options::caller_timeout(request.metadata());
    (request.into_inner(), timeout)
}

/// Converts the result of a handler.
pub(super) fn reply<T>(result: Result<T, Error>) -> Result<Response<T>, Status> {
    Ok(Response::new(result?))
}

/// Converts a decision on one object; the answer is the object's modify index.
pub(super) fn step(change: OneWrite) -> Step<u64> {
    match change {
        OneWrite::Unchanged { modify_index } => Step::IfFresh(modify_index),
        OneWrite::Write(write) => Step::Commit {
            writes: vec![*write],
            answer: Box::new(|revision| revision),
        },
    }
}
