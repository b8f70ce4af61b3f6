//! Secrets of templates, through the watch of look-ups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use login_provider::Keeper;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use service_kit::Clock;
use task_vault::Secrets;
use template::Lookup;
use template::source::{Answer, Hidden, Source as _};
use template_watch::Watch;
use vault_test_kit::{Fault, Role, Vault};

use crate::support::{keeper, node, until};

struct Task {
    keeper: Keeper,
    watch: Watch,
}

async fn task(vault: &Vault) -> Task {
    let node = node(vault);
    let (keeper, _) = keeper(&node, "web", None);
    until(&keeper, |state| state.token.is_some()).await;
    let secrets = Secrets::new(&node, "", keeper.token(), Clock::real());
    let watch = Watch::spawn(Arc::new(secrets), StdRng::seed_from_u64(2));
    Task { keeper, watch }
}

fn read(path: &str) -> Lookup {
    Lookup::Secret {
        path: path.to_owned(),
    }
}

impl Task {
    fn want(&self, lookups: impl IntoIterator<Item = Lookup>) {
        self.watch
            .want(&lookups.into_iter().collect::<BTreeSet<_>>())
            .unwrap();
    }

    async fn until<T>(&self, wanted: impl Fn(&Watch) -> Option<T>) -> T {
        let mut seen = self.watch.subscribe();
        let waiting = async {
            loop {
                if let Some(found) = wanted(&self.watch) {
                    return found;
                }
                seen.changed().await.unwrap();
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        found.expect("the answer comes in time")
    }

    async fn data(&self, lookup: &Lookup, wanted: impl Fn(&Value) -> bool) -> Value {
        self.until(|watch| match watch.snapshot().look_up(lookup) {
            Answer::Secret(secret) if wanted(&secret.data) => Some(secret.data),
            _ => None,
        })
        .await
    }

    async fn problem(&self, lookup: &Lookup) -> String {
        self.until(|watch| watch.problems().get(lookup).cloned())
            .await
    }
}

#[tokio::test]
async fn secrets_of_both_versions_are_read_and_followed() {
    let vault = Vault::start().await;
    vault.put("secret/app", json!({ "user": "a" }));
    vault.put("kv/app", json!({ "user": "b" }));
    let task = task(&vault).await;
    let (short, full, old) = (read("secret/app"), read("secret/data/app"), read("kv/app"));
    task.want([short.clone(), full.clone(), old.clone()]);
    assert_eq!(task.data(&short, |_| true).await["data"]["user"], "a");
    assert_eq!(task.data(&full, |_| true).await["data"]["user"], "a");
    assert_eq!(task.data(&old, |_| true).await["user"], "b");
    vault.put("secret/app", json!({ "user": "c" }));
    let changed = task.data(&short, |data| data["data"]["user"] == "c").await;
    assert_eq!(changed["metadata"]["version"], 2);
    // An outage, and even the end of the secret, leave the data that the task has.
    vault.delete("secret/app");
    assert!(task.problem(&short).await.contains("nothing at this path"));
    vault.fail(Some(Fault::Sealed));
    task.until(|watch| watch.problems()[&short].contains("sealed").then_some(()))
        .await;
    assert_eq!(task.data(&short, |_| true).await["data"]["user"], "c");
}

#[tokio::test]
async fn a_missing_or_forbidden_secret_is_waited_for_with_a_reason() {
    let vault = Vault::start().await;
    let task = task(&vault).await;
    let (missing, unknown) = (read("secret/none"), read("other/none"));
    task.want([missing.clone(), unknown.clone()]);
    assert!(
        task.problem(&missing)
            .await
            .contains("nothing at this path")
    );
    assert!(task.problem(&unknown).await.contains("no handler"));
    vault.put("secret/none", json!({ "a": "now" }));
    assert_eq!(task.data(&missing, |_| true).await["data"]["a"], "now");
    let list = Lookup::Secrets {
        path: "secret".to_owned(),
    };
    task.want([list.clone()]);
    let names = task.until(|watch| match watch.snapshot().look_up(&list) {
        Answer::Names(names) => Some(names),
        _ => None,
    });
    assert_eq!(names.await, ["none"]);
}

#[tokio::test]
async fn dynamic_credentials_are_renewed_and_not_created_again() {
    let vault = Vault::start().await;
    vault.put_credentials("app", Duration::from_secs(2), true);
    let task = task(&vault).await;
    let lookup = read("database/creds/app");
    task.want([lookup.clone()]);
    let first = task.data(&lookup, |_| true).await;
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    assert_eq!(task.data(&lookup, |_| true).await, first);
    assert!(vault.count("sys/leases/renew") >= 2);
    assert_eq!(vault.count("GET database/creds/app"), 1);
    // The lease ends with the token; a new token has new credentials.
    vault.revoke_all();
    let second = task.data(&lookup, |data| *data != first).await;
    assert_ne!(second["username"], first["username"]);
    task.keeper.revoke().await;
    assert!(vault.leases().is_empty());
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_are_replaced() {
    let vault = Vault::start().await;
    vault.put_credentials("app", Duration::from_secs(2), false);
    let task = task(&vault).await;
    let lookup = read("database/creds/app");
    task.want([lookup.clone()]);
    let first = task.data(&lookup, |_| true).await;
    task.data(&lookup, |data| *data != first).await;
}

#[tokio::test]
async fn a_write_is_sent_once_and_its_values_are_in_no_reason() {
    let vault = Vault::start().await;
    let task = task(&vault).await;
    let write = |values: &[(&str, &str)]| Lookup::SecretWrite {
        path: "pki/issue/web".to_owned(),
        values: Hidden(
            values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        ),
    };
    let (good, bad) = (
        write(&[("common_name", "a.test")]),
        write(&[("name", "PLANTED")]),
    );
    task.want([good.clone(), bad.clone()]);
    let data = task.data(&good, |_| true).await;
    assert!(data["certificate"].as_str().unwrap().contains("of a.test"));
    let problem = task.problem(&bad).await;
    assert!(
        problem.contains("common_name") && !problem.contains("PLANTED"),
        "{problem}"
    );
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(task.data(&good, |_| true).await, data, "issued once");
}

#[tokio::test]
async fn a_denied_read_finds_out_that_the_token_is_lost() {
    let vault = Vault::start().await;
    vault.put_role("web", Role::default());
    vault.put("secret/app", json!({ "user": "a" }));
    let task = task(&vault).await;
    let lookup = read("secret/app");
    task.want([lookup.clone()]);
    task.data(&lookup, |_| true).await;
    // The renewal of a token of an hour is half an hour away.
    vault.revoke_all();
    until(&task.keeper, |state| state.generation == 2).await;
    vault.put("secret/app", json!({ "user": "b" }));
    task.data(&lookup, |data| data["data"]["user"] == "b").await;
}
