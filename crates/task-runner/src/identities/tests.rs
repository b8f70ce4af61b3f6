//! Tokens of tasks: files, variables, waiting, renewal.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use local_state::LocalState;
use model::RestartScope;
use model::{NodeId, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use task_drivers::driver::BoxFuture;
use task_drivers::{AllocDirs, MockDriver, NodeFacts, TaskId, alloc_dirs};
use test_kit::builders;
use workload_identity::Token;

use super::*;
use crate::context::Context;

/// Answers in order; the last one repeats.
#[derive(Debug)]
struct Scripted {
    answers: Mutex<VecDeque<Result<SignedToken, TokenError>>>,
    calls: Mutex<Vec<Vec<TokenRequest>>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Result<SignedToken, TokenError>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            calls: Mutex::default(),
        })
    }
}

impl TokenSource for Scripted {
    fn sign(
        &self,
        requests: Vec<TokenRequest>,
    ) -> BoxFuture<'static, Result<Vec<SignedToken>, TokenError>> {
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        let count = requests.len();
        self.calls.lock().unwrap().push(requests);
        Box::pin(async move { Ok(vec![answer?; count]) })
    }
}

/// A token that claims these times, in seconds.
fn token(issued: u64, expires: u64) -> SignedToken {
    let claims = URL_SAFE_NO_PAD.encode(format!("{{\"iat\":{issued},\"exp\":{expires}}}"));
    SignedToken {
        token: Token::new(format!("e30.{claims}.c2ln")),
        issued_at: Timestamp::from_secs(issued),
        expires_at: Timestamp::from_secs(expires),
    }
}

fn fresh() -> SignedToken {
    let now = service_kit::Clock::real().now() / 1_000_000_000;
    token(now, now + 3_600)
}

fn identity(name: &str) -> WorkloadIdentity {
    WorkloadIdentity {
        name: name.to_owned(),
        file: true,
        env: true,
        ..WorkloadIdentity::default()
    }
}

fn resolved(identities: Vec<WorkloadIdentity>) -> Result<Vec<Identity>, StartFailure> {
    let job = builders::service("web", 1);
    let group = &job.task_groups[0];
    let task = Task {
        identities,
        ..group.tasks[0].clone()
    };
    let alloc = builders::allocation(1, &job, NodeId::from_random(1));
    let facts = NodeFacts::default();
    let env = TaskEnv::new(&job, group, &task, &alloc, &facts, None);
    of_task(&task, &env)
}

fn dirs() -> (tempfile::TempDir, TaskDirs) {
    let base = tempfile::tempdir().unwrap();
    let dirs = AllocDirs::new(base.path(), AllocId::from_random(1));
    alloc_dirs::build(&dirs, ["web"].into_iter(), None).unwrap();
    let dirs = dirs.task("web");
    (base, dirs)
}

#[test]
fn an_identity_has_the_file_and_the_variable_of_its_name() {
    let found = resolved(vec![identity("default"), identity("aws-eu")]).unwrap();
    let shown: Vec<_> = found
        .into_iter()
        .map(|one| (one.variable.unwrap(), one.file.unwrap()))
        .collect();
    let file = |path: &str| AllocPath::Task(path.into());
    assert_eq!(
        shown,
        [
            ("NOMAD_TOKEN".to_owned(), file("secrets/nomad_token")),
            (
                "NOMAD_TOKEN_aws_eu".to_owned(),
                file("secrets/nomad_aws-eu.jwt")
            ),
        ]
    );
    let unseen = WorkloadIdentity {
        file: false,
        env: false,
        ..identity("x")
    };
    assert_eq!(resolved(vec![unseen]).unwrap(), []);
    let elsewhere = |filepath: &str| WorkloadIdentity {
        filepath: filepath.to_owned(),
        ..identity("x")
    };
    let found = resolved(vec![elsewhere("local/${NOMAD_GROUP_NAME}.jwt")]).unwrap();
    let group = builders::service("web", 1).task_groups[0].name.clone();
    assert_eq!(found[0].file, Some(file(&format!("local/{group}.jwt"))));
    let refused = resolved(vec![elsewhere("../../x")]).unwrap_err();
    assert!(refused.message.contains("identity \"x\": filepath"));
}

#[test]
fn a_token_file_is_the_users_alone() {
    let (_base, dirs) = dirs();
    let found = resolved(vec![identity("default")]).unwrap();
    let signed = token(1, 2);
    write_files(&dirs, &TaskUser::default(), found.iter().zip([&signed])).unwrap();
    let path = dirs.secrets.join("nomad_token");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        signed.token.expose()
    );
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path), 0o600);
    assert_eq!(
        variables(&found, std::slice::from_ref(&signed))["NOMAD_TOKEN"],
        signed.token.expose()
    );
    // A user that only the image knows.
    let unknown = TaskUser {
        user: "no-such-user".to_owned(),
        ..TaskUser::default()
    };
    write_files(&dirs, &unknown, found.iter().zip([&signed])).unwrap();
    assert_eq!(mode(dirs.secrets.join("nomad_token")), 0o644);
    assert_eq!(mode(dirs.secrets.clone()), 0o700);
}

#[tokio::test]
async fn a_start_waits_for_a_gateway_and_says_so_once_and_ends_with_a_refusal() {
    let away = || Err(TokenError::Unavailable("no gateway answers".to_owned()));
    let refused = Err(TokenError::Refused("no identity".to_owned()));
    let requests = super::requests(AllocId::from_random(1), "web", &[]);
    let (answers, mut events) = mpsc::channel(10);
    let mut rng = StdRng::seed_from_u64(1);
    let source = Scripted::new([away(), away(), refused]);
    let waited = wait_for_tokens(&*source, &requests, &mut rng, ("web", &answers)).await;
    assert_eq!(waited.unwrap_err(), "no identity");
    let Ok(Event::IdentityMessage { message, .. }) = events.try_recv() else {
        panic!("no event");
    };
    assert_eq!(message, "Waiting for an identity token: no gateway answers");
    assert!(events.try_recv().is_err());
}

struct Running {
    _base: tempfile::TempDir,
    dirs: TaskDirs,
    context: Arc<Context>,
    source: Arc<Scripted>,
    identity: Identity,
}

/// A task whose token is half an hour past its half-life.
fn running(change: Change, answers: Vec<Result<SignedToken, TokenError>>) -> Running {
    let (base, dirs) = dirs();
    let mut identity = resolved(vec![identity("default")]).unwrap().remove(0);
    identity.change = change;
    let now = service_kit::Clock::real().now() / 1_000_000_000;
    let old = token(now - 3_600, now + 60);
    write_files(&dirs, &TaskUser::default(), [(&identity, &old)].into_iter()).unwrap();
    let source = Scripted::new(answers);
    let mut context = Context::for_test(LocalState::none(), MockDriver::default());
    context.tokens = Arc::clone(&source) as Arc<dyn TokenSource>;
    Running {
        _base: base,
        dirs,
        context: Arc::new(context),
        source,
        identity,
    }
}

impl Running {
    /// Renews until an event or for `limit`.
    async fn renew(&self, limit: Duration) -> Option<Event> {
        let id = TaskId {
            alloc_id: AllocId::from_random(1),
            task: "web".to_owned(),
            attempt: 1,
        };
        let (answers, mut events) = mpsc::channel(10);
        let driver = MockDriver::default();
        let renewal = Renewal {
            context: &self.context,
            id: &id,
            dirs: self.dirs.clone(),
            user: TaskUser::default(),
            driver: &driver,
            answers: &answers,
        };
        let held =
            RenewedIdentity::found(&self.identity, &self.dirs, &mut StdRng::seed_from_u64(1));
        tokio::select! {
            event = events.recv() => event,
            never = renewal.run(vec![held]) => match never {},
            () = sleep(limit) => None,
        }
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.dirs.secrets.join("nomad_token")).unwrap()
    }
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_renewed_token_replaces_the_file_and_restarts_the_task() {
    let new = fresh();
    let task = running(Change::Restart, vec![Ok(new.clone())]);
    let event = task.renew(LONG).await.unwrap();
    let Event::Restart { scope, reason } = event else {
        panic!("{event:?}");
    };
    assert_eq!(scope, RestartScope::Task("web".to_owned()));
    assert!(reason.contains("\"default\" has a new token"), "{reason}");
    assert_eq!(task.file(), new.token.expose());
    let calls = task.source.calls.lock().unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0][0].identity, "default");
}

#[tokio::test]
async fn a_renewal_signals_the_task_or_leaves_it_alone() {
    let task = running(Change::Signal("SIGHUP".to_owned()), vec![Ok(fresh())]);
    let event = task.renew(LONG).await.unwrap();
    assert!(
        matches!(&event, Event::IdentityMessage { message, .. } if message.contains("SIGHUP")),
        "{event:?}"
    );
    let new = fresh();
    let task = running(Change::Noop, vec![Ok(new.clone())]);
    assert_eq!(task.renew(SHORT).await, None);
    assert_eq!(task.file(), new.token.expose());
    // It is not due again.
    assert_eq!(task.source.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_outage_leaves_the_task_and_its_last_token_alone() {
    let away = Err(TokenError::Unavailable("no gateway answers".to_owned()));
    let task = running(Change::Restart, vec![away]);
    let before = task.file();
    assert_eq!(task.renew(SHORT).await, None);
    assert_eq!(task.file(), before);
    assert_eq!(task.context.metrics.identity_renewal_failures.get(), 1);
    assert_eq!(task.source.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_not_due_is_kept_after_a_restart_of_the_agent() {
    let task = running(Change::Restart, vec![Ok(fresh())]);
    write_files(
        &task.dirs,
        &TaskUser::default(),
        [(&task.identity, &fresh())].into_iter(),
    )
    .unwrap();
    assert_eq!(task.renew(SHORT).await, None);
    assert!(task.source.calls.lock().unwrap().is_empty());
    // Without its file the times are unknown: a new token, and no reaction.
    std::fs::remove_file(task.dirs.secrets.join("nomad_token")).unwrap();
    assert_eq!(task.renew(SHORT).await, None);
    assert_eq!(task.source.calls.lock().unwrap().len(), 1);
    assert!(!task.file().is_empty());
}
