//! A stand-in for a Consul agent in tests: it answers as Consul's documented HTTP API does, and fails on request.
//!
//! It keeps the services and checks that are registered at it, which are its whole catalog beside
//! [`Consul::put_instance`]; keys and values; and tokens of logins with a JWT, whose claims it checks and
//! whose signature it does not. Queries with an index wait for any change. It runs no check: a test sets
//! the states. [`Consul`] is the server, [`state`] its memory, [`api`] the answers.
//! Source: Consul's public API documentation; it has not been compared with a real server.

mod api;
mod state;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use api::Call;
use state::State;
pub use state::{Fault, Write};

/// Bytes of a request.
const REQUEST_MAX: usize = 1 << 20;
/// The longest wait of a query, as Consul limits it.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A running server. It ends when it is dropped.
pub struct Consul {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Consul {
    /// Starts a server on a free port of loopback.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn start() -> Self {
        let mut consul = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            shared: Arc::default(),
            server: None,
        };
        consul.serve().await;
        consul
    }

    /// Serves again after [`Self::stop`], on the same port, with the same memory.
    ///
    /// # Panics
    /// The port is taken.
    pub async fn serve(&mut self) {
        let listener = TcpListener::bind(self.address)
            .await
            .expect("the port is free");
        self.address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::clone(&self.shared);
        let router = Router::new().fallback(move |request| answer(Arc::clone(&shared), request));
        self.server = Some(tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        }));
    }

    /// Ends the server: connections are refused, and open queries break off. Its memory stays.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
        }
        self.state().stops += 1;
        self.shared.changed.notify_waiters();
    }

    /// `host:port` of the server.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Every following request fails in this way; `None`: none.
    pub fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// Denies requests without one of the server's tokens: the given one, or one of a login.
    pub fn require_token(&self, token: &str) {
        self.state().management_token = Some(token.to_owned());
    }

    /// Adds an auth method for logins; tokens end after `ttl`, unless it is zero.
    pub fn put_auth_method(&self, name: &str, audience: &str, ttl: Duration) {
        let method = (audience.to_owned(), ttl);
        self.state().auth_methods.insert(name.to_owned(), method);
    }

    /// Writes a key.
    pub fn put_key(&self, key: &str, value: &str) {
        self.change(|state| state.put_key(key, value));
    }

    pub fn delete_key(&self, key: &str) {
        self.change(|state| drop(state.keys.remove(key)));
    }

    /// Adds an instance of another node to the catalog, as in `{"Node": {…}, "Service": {…}, "Checks": […]}`;
    /// one with the same id of node and service is replaced.
    pub fn put_instance(&self, entry: Value) {
        self.change(|state| state.put_instance(entry));
    }

    /// Sets the state of all checks with this name, as their runs would.
    ///
    /// # Panics
    /// There is no such check.
    pub fn set_check(&self, name: &str, status: &str) {
        self.change(|state| {
            let mut count = 0;
            for check in state.checks.values_mut().filter(|it| it["Name"] == name) {
                check["Status"] = status.into();
                count += 1;
            }
            assert!(count > 0, "no check {name:?} is registered");
        });
    }

    /// Forgets all services and checks, as an agent without its data directory does.
    pub fn forget_services(&self) {
        self.change(|state| {
            state.services.clear();
            state.checks.clear();
        });
    }

    /// Registers a service as another program would.
    pub fn put_service(&self, body: Value) {
        self.change(|state| state.register(&body));
    }

    /// Replaces the tags of a service in the catalog.
    pub fn set_tags(&self, id: &str, tags: &[&str]) {
        self.change(|state| {
            if let Some(service) = state.services.get_mut(id) {
                service["Tags"] = tags.iter().copied().collect();
            }
        });
    }

    /// The services of the agent, by id.
    pub fn services(&self) -> BTreeMap<String, Value> {
        self.state().services.clone()
    }

    /// The checks of the agent, by id.
    pub fn checks(&self) -> BTreeMap<String, Value> {
        self.state().checks.clone()
    }

    /// The tokens of logins that are valid now.
    pub fn tokens(&self) -> Vec<String> {
        self.state().valid_tokens()
    }

    /// Ends all tokens of logins.
    pub fn revoke_all(&self) {
        self.state().tokens.clear();
    }

    /// The requests so far that changed something.
    pub fn writes(&self) -> Vec<Write> {
        self.state().writes.clone()
    }

    /// The number of requests so far whose method and path contain `part`.
    pub fn count(&self, part: &str) -> usize {
        let state = self.state();
        let requests = state.requests.iter();
        requests.filter(|request| request.contains(part)).count()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.index += 1;
        drop(state);
        self.shared.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

async fn answer(shared: Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_MAX).await.unwrap_or_default();
    let token = parts.headers.get("x-consul-token");
    let token = token.and_then(|value| value.to_str().ok());
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let query = parts.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), decode(value))
    };
    let call = Call {
        method: parts.method.as_str().to_owned(),
        path: decode(parts.uri.path().trim_start_matches("/v1/")),
        query: pairs.map(pair).collect(),
        token: token.unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let (fault, stops) = {
        let mut state = shared.state();
        state
            .requests
            .push(format!("{} {}?{query}", call.method, call.path));
        if call.method != "GET" {
            let path = parts.uri.path_and_query().map(|path| decode(path.as_str()));
            state.writes.push(Write {
                method: call.method.clone(),
                path: path.unwrap_or_default(),
                body: call.body.clone(),
            });
        }
        (state.fault, state.stops)
    };
    if let Some(Fault::Slow(delay)) = fault {
        tokio::time::sleep(delay).await;
    }
    if fault.is_none() {
        wait(&shared, &call, stops).await;
    }
    let answer = {
        let mut state = shared.state();
        match fault.filter(|fault| !matches!(fault, Fault::Slow(_))) {
            // An aborted server does not end its open connections.
            None if state.stops != stops => api::broken(),
            None => api::answer(&mut state, &call),
            Some(fault) => api::faulty(fault),
        }
    };
    if call.method != "GET" && answer.status == 200 {
        shared.state().index += 1;
        shared.changed.notify_waiters();
    }
    let index = shared.state().index;
    let mut response = Response::builder().status(answer.status);
    if answer.has_index {
        response = response.header("X-Consul-Index", index);
    }
    let body = match answer.body {
        Value::Null => Body::empty(),
        Value::String(text) => Body::from(text),
        body => Body::from(body.to_string()),
    };
    response.body(body).expect("the parts are valid")
}

/// Waits as a blocking query: until something has changed since its index.
async fn wait(shared: &Shared, call: &Call, stops: u64) {
    let Some(index) = call
        .query
        .get("index")
        .and_then(|text| text.parse::<u64>().ok())
    else {
        return;
    };
    let seconds = call.query.get("wait").map_or("300s", String::as_str);
    let seconds = seconds.trim_end_matches('s').parse().unwrap_or(300);
    let deadline = Instant::now() + Duration::from_secs(seconds).min(WAIT_MAX);
    loop {
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        {
            let state = shared.state();
            if state.index > index || state.stops != stops {
                return;
            }
        }
        if timeout_at(deadline, changed).await.is_err() {
            return;
        }
    }
}
