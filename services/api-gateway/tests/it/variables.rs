//! Variables through the API: stored sealed, changed where they were read, listed in pages, and kept
//! from the deletion of their namespace.

use std::path::PathBuf;

use model::VariableKey;
use proto::internal::v1::LookUpRequest;
use proto::internal::v1::look_up_request::Data;
use proto::v1;
use state::{Entity, Key};
use store::VariableFilter;
use tempfile::TempDir;
use test_kit::wait_for;
use tonic::{Code, Status};

use crate::sessions::register;
use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

const KEY: &str = "6161616161616161616161616161616161616161616161616161616161616161";
const NEWER: &str = "6262626262626262626262626262626262626262626262626262626262626262";

struct Cluster {
    suite: Suite,
    key_file: PathBuf,
    _directory: TempDir,
}

impl Cluster {
    /// Two gateways with a key file.
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key_file = directory.path().join("keyring_key");
        std::fs::write(&key_file, KEY).unwrap();
        let suite = Suite::start_with(2, |config| {
            config.keyring_key_file = Some(key_file.clone());
        });
        Self {
            suite: suite.await,
            key_file,
            _directory: directory,
        }
    }

    async fn put_in(
        &self,
        (namespace, path): (&str, &str),
        items: &[(&str, &str)],
        check_index: Option<u64>,
    ) -> Result<v1::Variable, Status> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let request = v1::PutVariableRequest {
            namespace: namespace.to_owned(),
            path: path.to_owned(),
            items: items.iter().map(owned).collect(),
            check_index,
            lock_id: String::new(),
        };
        let answer = self.suite.variables(0).put(ask(request)).await?;
        Ok(answer.into_inner().variable.unwrap())
    }

    async fn put(&self, path: &str, items: &[(&str, &str)]) -> Result<v1::Variable, Status> {
        self.put_in(("", path), items, None).await
    }

    async fn get(&self, gateway: usize, path: &str) -> Result<v1::Variable, Status> {
        let request = v1::GetVariableRequest {
            namespace: String::new(),
            path: path.to_owned(),
        };
        let answer = self.suite.variables(gateway).get(ask(request)).await?;
        Ok(answer.into_inner().variable.unwrap())
    }

    async fn list(&self, request: v1::ListVariablesRequest) -> (Vec<String>, String) {
        let answer = self.suite.variables(1).list(ask(request)).await.unwrap();
        let answer = answer.into_inner();
        let named = |it: v1::Variable| {
            assert!(it.items.is_empty(), "{it:?}");
            format!("{}:{}", it.namespace, it.path)
        };
        let meta = answer.meta.unwrap();
        assert!(meta.index > 0);
        (
            answer.variables.into_iter().map(named).collect(),
            meta.next_token,
        )
    }

    async fn delete(&self, path: &str, check_index: Option<u64>) -> Result<u64, Status> {
        let request = v1::DeleteVariableRequest {
            namespace: String::new(),
            path: path.to_owned(),
            check_index,
            lock_id: String::new(),
        };
        let answer = self.suite.variables(1).delete(ask(request)).await?;
        Ok(answer.into_inner().index)
    }

    async fn stored(&self, path: &str) -> model::SealedVariable {
        let key = Key::Variable(VariableKey::new("default", path));
        match self.suite.get(&key).await.unwrap().entity {
            Entity::Variable(variable) => *variable,
            other => panic!("{other:?}"),
        }
    }

    async fn add_namespace(&self, name: &str) {
        let request = v1::UpsertNamespaceRequest {
            namespace: Some(v1::Namespace {
                name: name.to_owned(),
                ..v1::Namespace::default()
            }),
            check_index: None,
        };
        self.suite.namespaces(0).upsert(ask(request)).await.unwrap();
    }
}

#[tokio::test]
async fn a_variable_is_read_at_every_gateway_and_stored_sealed() {
    let cluster = Cluster::start().await;
    let made = cluster
        .put("app/db", &[("password", "hunter2")])
        .await
        .unwrap();
    let read = cluster.get(1, "app/db").await.unwrap();
    assert_eq!(read, made);
    assert_eq!(read.items["password"], "hunter2");
    assert_eq!(
        (read.create_index, read.create_time_ns),
        (read.modify_index, read.modify_time_ns)
    );
    let text = serde_json::to_string(&cluster.stored("app/db").await).unwrap();
    assert!(
        !text.contains("hunter2") && !text.contains("password"),
        "{text}"
    );
    let again = cluster
        .put("app/db", &[("password", "hunter2")])
        .await
        .unwrap();
    assert_eq!(again, made);
    let changed = cluster
        .put("app/db", &[("password", "hunter3")])
        .await
        .unwrap();
    assert_eq!(
        (changed.create_index, changed.create_time_ns),
        (made.create_index, made.create_time_ns)
    );
    assert!(changed.modify_index > made.modify_index);
    let missing = cluster.get(0, "app/none").await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing}");
}

#[tokio::test]
async fn a_check_index_decides_about_changes_and_deletions() {
    let cluster = Cluster::start().await;
    let items = [("k", "v")];
    let missing = cluster
        .put_in(("", "a"), &items, Some(7))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::Aborted, "{missing}");
    let made = cluster.put_in(("", "a"), &items, Some(0)).await.unwrap();
    let exists = cluster
        .put_in(("", "a"), &[("k", "w")], Some(0))
        .await
        .unwrap_err();
    assert_eq!(exists.code(), Code::Aborted, "{exists}");
    assert!(
        exists.message().contains(&made.modify_index.to_string()),
        "{exists}"
    );
    let index = made.modify_index;
    let changed = cluster
        .put_in(("", "a"), &[("k", "w")], Some(index))
        .await
        .unwrap();
    cluster.delete("a", Some(index)).await.unwrap_err();
    assert!(
        cluster
            .delete("a", Some(changed.modify_index))
            .await
            .unwrap()
            > changed.modify_index
    );
    let gone = cluster.delete("a", None).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound, "{gone}");
    let again = cluster.put_in(("", "a"), &items, Some(0)).await.unwrap();
    assert!(again.create_index > changed.modify_index);
}

#[tokio::test]
async fn of_many_creators_one_wins_and_no_change_is_lost() {
    let cluster = Cluster::start().await;
    let tries = (0..8).map(|n| {
        let (cluster, value) = (&cluster, n.to_string());
        async move {
            cluster
                .put_in(("", "race"), &[("n", &value)], Some(0))
                .await
        }
    });
    let made: Vec<_> = futures::future::join_all(tries).await;
    assert_eq!(
        made.iter().filter(|made| made.is_ok()).count(),
        1,
        "{made:?}"
    );
    // Without a condition each is stored, one after the other.
    let tries = (0..8).map(|n| {
        let (cluster, value) = (&cluster, format!("x{n}"));
        async move {
            cluster
                .put("race", &[("n", &value)])
                .await
                .unwrap()
                .modify_index
        }
    });
    let mut indexes = futures::future::join_all(tries).await;
    indexes.sort_unstable();
    indexes.dedup();
    assert_eq!(indexes.len(), 8);
}

#[tokio::test]
async fn lists_have_pages_prefixes_and_namespaces() {
    let cluster = Cluster::start().await;
    cluster.add_namespace("prod").await;
    for path in ["app/a", "app/b", "app/c", "web"] {
        cluster.put(path, &[("k", "v")]).await.unwrap();
    }
    cluster
        .put_in(("prod", "app/d"), &[("k", "v")], None)
        .await
        .unwrap();
    let mut request = v1::ListVariablesRequest {
        namespace: "*".to_owned(),
        prefix: "app/".to_owned(),
        per_page: 2,
        next_token: String::new(),
    };
    let (first, token) = cluster.list(request.clone()).await;
    assert_eq!(first, ["default:app/a", "default:app/b"]);
    request.next_token = token;
    let (second, token) = cluster.list(request.clone()).await;
    assert_eq!(second, ["default:app/c", "prod:app/d"]);
    assert_eq!(token, "");
    let default = v1::ListVariablesRequest::default();
    let (all, _) = cluster.list(default.clone()).await;
    assert_eq!(
        all,
        [
            "default:app/a",
            "default:app/b",
            "default:app/c",
            "default:web"
        ]
    );
    let wrong = v1::ListVariablesRequest {
        next_token: "x".to_owned(),
        ..default
    };
    let refused = cluster
        .suite
        .variables(0)
        .list(ask(wrong))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}

#[tokio::test]
async fn pages_are_complete_beyond_one_response_of_the_store() {
    let cluster = Cluster::start().await;
    for n in 0..40 {
        cluster
            .put(&format!("many/{n:02}"), &[("k", "v")])
            .await
            .unwrap();
    }
    let filter = VariableFilter {
        namespace: Some("default"),
        prefix: "many/",
        after: None,
    };
    for (limit, has_more) in [(39, true), (40, false), (17, true)] {
        let page = cluster.suite.store.variables(filter, limit).await.unwrap();
        let paths: Vec<_> = page
            .variables
            .iter()
            .map(|it| it.key.path.clone())
            .collect();
        let expected: Vec<_> = (0..limit.min(40)).map(|n| format!("many/{n:02}")).collect();
        assert_eq!((paths, page.has_more), (expected, has_more), "{limit}");
    }
}

/// A list by prefix would hold variables of other jobs first.
#[tokio::test]
async fn a_task_lists_its_own_variables_behind_any_number_of_others() {
    let cluster = Cluster::start().await;
    let (suite, node, job) = (&cluster.suite, node(1), job("web"));
    register(suite, 0, &node).await.unwrap();
    let registered = suite.register(&job).await;
    let placed = alloc(1, &job, &node, registered.index);
    suite.put_alloc(&placed).await;
    let task = &job.task_groups[0].tasks[0].name;
    let own = format!("nomad/jobs/web/{}/{task}", placed.task_group);
    for path in ["nomad/jobs/web", "nomad/jobs/web2", own.as_str()] {
        cluster.put(path, &[("k", "v")]).await.unwrap();
    }
    let other = Entity::Variable(Box::new(cluster.stored("nomad/jobs/web2").await));
    for n in 0..1_000 {
        let key = VariableKey::new("default", format!("nomad/jobs/a{n}"));
        suite.put(&Key::Variable(key), &other).await;
    }
    for (prefix, expected) in [
        ("nomad/jobs", vec!["nomad/jobs/web", own.as_str()]),
        ("nomad/jobs/web/", vec![own.as_str()]),
        ("nomad/jobs/web2", vec![]),
    ] {
        let request = LookUpRequest {
            node_id: node.id.to_string(),
            secret: node.secret.clone(),
            alloc_id: placed.id.to_string(),
            task: task.clone(),
            namespace: "default".to_owned(),
            data: Some(Data::Variables(prefix.to_owned())),
            ..LookUpRequest::default()
        };
        let answer = suite.sessions(0).look_up(ask(request)).await.unwrap();
        let listed = answer.into_inner().variables.into_iter();
        let paths: Vec<_> = listed.map(|variable| variable.path).collect();
        assert_eq!(paths, expected, "{prefix}");
    }
}

#[tokio::test]
async fn a_namespace_stays_as_long_as_it_has_variables() {
    let cluster = Cluster::start().await;
    let unknown = cluster
        .put_in(("prod", "a"), &[("k", "v")], None)
        .await
        .unwrap_err();
    assert!(
        unknown.message().contains("nonexistent namespace"),
        "{unknown}"
    );
    cluster.add_namespace("prod").await;
    cluster
        .put_in(("prod", "a"), &[("k", "v")], None)
        .await
        .unwrap();
    let request = v1::DeleteNamespaceRequest {
        name: "prod".to_owned(),
    };
    let refused = cluster
        .suite
        .namespaces(1)
        .delete(ask(request.clone()))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("kafila var list"), "{refused}");
    let purge = v1::DeleteVariableRequest {
        namespace: "prod".to_owned(),
        path: "a".to_owned(),
        check_index: None,
        lock_id: String::new(),
    };
    cluster.suite.variables(0).delete(ask(purge)).await.unwrap();
    cluster
        .suite
        .namespaces(1)
        .delete(ask(request))
        .await
        .unwrap();
}

#[tokio::test]
async fn invalid_variables_are_refused_by_field() {
    let cluster = Cluster::start().await;
    let large = "x".repeat(64 << 10);
    for (path, items, part) in [
        ("a b", vec![("k", "v")], "invalid path"),
        ("nomad/secret", vec![("k", "v")], "reserved"),
        ("a", vec![], "missing required Items"),
        ("a", vec![("k", large.as_str())], "limited to 64KiB"),
    ] {
        let refused = cluster.put(path, &items).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(part), "{refused}");
    }
}

#[tokio::test]
async fn a_new_key_encryption_key_seals_all_variables_again() {
    let mut cluster = Cluster::start().await;
    let made = cluster.put("app", &[("k", "v")]).await.unwrap();
    let before = cluster.stored("app").await;
    std::fs::write(&cluster.key_file, format!("{NEWER}\n{KEY}")).unwrap();
    // A gateway that starts reads the file, and looks through all variables at once.
    let key_file = cluster.key_file.clone();
    cluster
        .suite
        .add_gateway(|config| config.keyring_key_file = Some(key_file.clone()))
        .await;
    let after = wait_for("the variable sealed again", WAIT_LIMIT, async || {
        let stored = cluster.stored("app").await;
        (stored.items.sealed_with != before.items.sealed_with).then_some(stored)
    })
    .await;
    assert_eq!(
        (after.created_at, after.modified_at),
        (before.created_at, before.modified_at)
    );
    // The old gateways have not read the file yet.
    let read = cluster.get(0, "app").await.unwrap();
    assert_eq!(read.items, made.items);
}

#[tokio::test]
async fn a_gateway_with_another_key_than_the_cluster_is_not_ready_until_its_file_has_it() {
    let mut cluster = Cluster::start().await;
    cluster.put("app", &[("k", "v")]).await.unwrap();
    let before = cluster.stored("app").await.items.sealed_with;
    let is_ready = async |suite: &Suite, gateway: usize| {
        wait_for("a ready gateway", WAIT_LIMIT, async || {
            suite.is_ready(gateway).await.then_some(())
        })
        .await;
    };
    is_ready(&cluster.suite, 0).await;

    let wrong = cluster.key_file.with_file_name("wrong_key");
    std::fs::write(&wrong, NEWER).unwrap();
    let edit = |config: &mut api_gateway::Config| config.keyring_key_file = Some(wrong.clone());
    cluster.suite.add_gateway(edit).await;
    wait_for("a refused key file", WAIT_LIMIT, async || {
        let metrics = cluster.suite.metrics(2).await;
        let failures = "kafila_api_gateway_keyring_failures_total 2";
        metrics.lines().any(|line| line == failures).then_some(())
    })
    .await;
    assert!(!cluster.suite.is_ready(2).await);
    // Other gateways could not open what it seals.
    let request = v1::PutVariableRequest {
        path: "new".to_owned(),
        items: [("k".to_owned(), "v".to_owned())].into(),
        ..v1::PutVariableRequest::default()
    };
    let refused = cluster.suite.variables(2).put(ask(request)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    for part in [
        "`keyring_key_file`",
        "wrong_key",
        "give every gateway the same keys",
    ] {
        assert!(refused.message().contains(part), "{refused}");
    }
    let rotation = v1::RotateSigningKeyRequest {};
    let mut operator = cluster.suite.operator(2);
    let refused = operator.rotate_signing_key(ask(rotation)).await;
    let refused = refused.unwrap_err();
    assert!(refused.message().contains("wrong_key"), "{refused}");

    std::fs::write(&wrong, format!("{NEWER}\n{KEY}")).unwrap();
    is_ready(&cluster.suite, 2).await;
    cluster.get(2, "app").await.unwrap();

    // A key that is being replaced leaves gateways ready whose file has not changed yet.
    wait_for("the variable sealed again", WAIT_LIMIT, async || {
        let stored = cluster.stored("app").await;
        (stored.items.sealed_with != before).then_some(())
    })
    .await;
    assert!(cluster.suite.is_ready(0).await);
}

#[tokio::test]
async fn without_a_key_file_the_setting_is_named() {
    let suite = Suite::start(1).await;
    let request = v1::PutVariableRequest {
        path: "a".to_owned(),
        items: [("k".to_owned(), "v".to_owned())].into(),
        ..v1::PutVariableRequest::default()
    };
    let refused = suite.variables(0).put(ask(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.message().contains("keyring_key_file"), "{refused}");
}
