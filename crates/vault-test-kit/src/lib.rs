//! A stand-in for Vault in tests: it answers as Vault's documented HTTP API does, and fails on request.
//!
//! It has a JWT auth method at `auth/jwt-nomad`, KV version 1 at `kv/`, KV version 2 at `secret/`, dynamic
//! credentials at `database/creds/<role>` and certificates at `pki/issue/<role>`. It checks the claims of
//! a JWT and not its signature. Its tokens and leases end after their time, and a token's leases end with
//! it. [`Vault`] is the server, [`state`] its memory, [`api`] the answers.
//! Source: Vault's public API documentation; it has not been compared with a real server.

mod api;
mod state;

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
use tokio::task::JoinHandle;

pub use state::{Fault, Role};

use api::Call;
use state::State;

/// Bytes of a request.
const REQUEST_MAX: usize = 1 << 20;

/// A running server. It ends when it is dropped.
pub struct Vault {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: Option<JoinHandle<()>>,
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Vault {
    /// Starts a server on a free port of loopback. It has the role `web` with a token of an hour.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn start() -> Self {
        let mut vault = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            state: Arc::new(Mutex::new(State::default())),
            server: None,
        };
        vault.serve().await;
        vault
    }

    /// A server that does not run yet; its port is reserved by nobody.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn stopped() -> Self {
        let mut vault = Self::start().await;
        vault.stop();
        vault
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
        let state = Arc::clone(&self.state);
        let router = Router::new().fallback(move |request| answer(Arc::clone(&state), request));
        self.server = Some(tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        }));
    }

    /// Ends the server: connections are refused. Its memory stays.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
        }
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every following request fails in this way; `None`: none.
    pub fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// Creates or changes a role of the auth method.
    pub fn put_role(&self, name: &str, role: Role) {
        self.state().roles.insert(name.to_owned(), role);
    }

    pub fn delete_role(&self, name: &str) {
        self.state().roles.remove(name);
    }

    /// Writes a secret below `kv/` or `secret/`; the path is the one without `data/`.
    pub fn put(&self, path: &str, data: Value) {
        self.state().put(path, data);
    }

    /// Removes a secret, or the newest version of one in KV version 2.
    pub fn delete(&self, path: &str) {
        self.state().delete(path);
    }

    /// The lease of the credentials at `database/creds/<role>`, and whether it can be renewed.
    pub fn put_credentials(&self, role: &str, lease: Duration, renewable: bool) {
        self.state()
            .credentials
            .insert(role.to_owned(), (lease, renewable));
    }

    /// Ends all tokens, as an operator's revocation would.
    pub fn revoke_all(&self) {
        self.state().revoke_all();
    }

    /// The tokens that are valid now.
    pub fn tokens(&self) -> Vec<String> {
        self.state().valid_tokens()
    }

    /// The leases that are valid now.
    pub fn leases(&self) -> Vec<String> {
        self.state().valid_leases()
    }

    /// The requests so far: method, path and namespace, as in `GET secret/data/app @team`.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The number of requests so far whose text contains `part`.
    pub fn count(&self, part: &str) -> usize {
        let state = self.state();
        state
            .requests
            .iter()
            .filter(|request| request.contains(part))
            .count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_MAX).await.unwrap_or_default();
    let header = |name: &str| {
        let value = parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let path = parts.uri.path().trim_start_matches("/v1/");
    let call = Call {
        method: parts.method.as_str().to_owned(),
        path: percent_decode_str(path).decode_utf8_lossy().into_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        token: header("x-vault-token"),
        namespace: header("x-vault-namespace"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let fault = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(call.to_string());
        state.fault_of(&call.path)
    };
    if let Some(Fault::Slow(delay)) = fault {
        tokio::time::sleep(delay).await;
    }
    let answer = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            None | Some(Fault::Slow(_)) => api::answer(&mut state, &call),
            Some(fault) => api::faulty(fault, &call),
        }
    };
    let mut response = Response::builder().status(answer.status);
    if let Some(seconds) = answer.retry_after {
        response = response.header("retry-after", seconds);
    }
    let body = match answer.body {
        Value::Null => Body::empty(),
        Value::String(text) => Body::from(text),
        body => Body::from(body.to_string()),
    };
    response.body(body).expect("the parts are valid")
}
