//! A stand-in for S3: one bucket in memory, behind HTTP on loopback.
//!
//! It refuses requests as the API reference of Amazon S3 describes: without a signature in the URL, with
//! another access key or region, with an unsigned or wrong checksum. It does not verify the signature
//! itself. [`Fault`]s make chosen requests fail.

mod http;
mod store;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http::Request;
pub use crate::store::{ACCESS_KEY, BUCKET, REGION};
use crate::store::{Store, respond};

/// A failure of one request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A refusal with this status and code, without effect.
    Refuse(u16, &'static str),
    /// Status 200 with an error in its body, without effect.
    LateError(&'static str),
    /// No answer and no effect; the connection stays open for this time.
    Stall(Duration),
    /// The connection ends within the request, without effect.
    Break,
    /// The request has its effect, and the connection ends without an answer.
    LoseAnswer,
}

/// The store, which runs until the process ends.
pub struct S3 {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    store: Mutex<Store>,
    faults: Mutex<Vec<(String, Fault)>>,
    /// `METHOD path?query` of each request, the signature left out.
    requests: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl S3 {
    /// Starts a store whose lists have `page` keys at most.
    #[expect(
        clippy::missing_panics_doc,
        reason = "for tests: without a port there is no test"
    )]
    pub fn start(page: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            store: Mutex::new(Store::new(page)),
            faults: Mutex::default(),
            requests: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the next request fail whose line contains `part`, as in `PUT /backups/a`. Faults of the same
    /// part are used in order.
    pub fn fail(&self, part: &str, fault: Fault) {
        locked(&self.shared.faults).push((part.to_owned(), fault));
    }

    pub fn put(&self, key: &str, content: &[u8]) {
        let mut store = locked(&self.shared.store);
        store.objects.insert(key.to_owned(), content.to_vec());
    }

    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        locked(&self.shared.store).objects.clone()
    }

    /// Returns the number of uploads in parts that are neither complete nor aborted.
    pub fn open_uploads(&self) -> usize {
        locked(&self.shared.store).uploads.len()
    }

    /// Returns `METHOD path?query` of each request, without the parameters of the signature.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.shared.requests).clone()
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        loop {
            let Some(head) = http::read_head(&mut stream) else {
                return;
            };
            let line = head.line();
            locked(&self.requests).push(line.clone());
            let fault = self.take_fault(&line);
            if matches!(fault, Some(Fault::Break)) {
                return;
            }
            let Some(request): Option<Request> = head.read_body(&mut stream) else {
                return;
            };
            let answer = match fault {
                Some(Fault::Stall(time)) => {
                    std::thread::sleep(time);
                    return;
                }
                Some(Fault::Refuse(status, code)) => store::refusal(status, code),
                Some(Fault::LateError(code)) => store::refusal(200, code),
                Some(Fault::LoseAnswer) => {
                    respond(&mut locked(&self.store), &request);
                    return;
                }
                Some(Fault::Break) | None => respond(&mut locked(&self.store), &request),
            };
            if !http::write(&mut stream, &request, &answer) {
                return;
            }
        }
    }

    fn take_fault(&self, line: &str) -> Option<Fault> {
        let mut faults = locked(&self.faults);
        let found = faults.iter().position(|(part, _)| line.contains(part))?;
        Some(faults.remove(found).1)
    }
}
