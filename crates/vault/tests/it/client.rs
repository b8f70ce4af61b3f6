//! Operations of the client.

use std::time::Duration;

use serde_json::json;
use vault::kv::{Mount, Use};
use vault::{Failure, Token};
use vault_test_kit::{Role, Vault};

use crate::support::{client, log_in, login};

#[tokio::test]
async fn a_login_gives_a_token_that_lives_until_it_is_revoked() {
    let vault = Vault::start().await;
    let client = client(&vault);
    let auth = log_in(&client).await;
    assert_eq!(auth.lifetime(), Some(Duration::from_secs(3600)));
    assert_eq!(vault.tokens(), [auth.token.expose()]);
    let renewed = client.renew_self(&auth.token).await.unwrap();
    assert_eq!(renewed.token, auth.token);
    client.revoke_self(&auth.token).await.unwrap();
    assert!(vault.tokens().is_empty());
    let again = client.renew_self(&auth.token).await;
    assert!(matches!(again, Err(Failure::Forbidden { .. })), "{again:?}");
}

#[tokio::test]
async fn a_refused_login_says_why_and_hides_the_jwt() {
    let vault = Vault::start().await;
    let client = client(&vault);
    let failure = client.log_in(&login("none")).await.unwrap_err();
    assert!(!failure.is_transient());
    assert!(
        failure.to_string().contains("could not be found"),
        "{failure}"
    );
    let other = Role {
        audiences: vec!["other".to_owned()],
        ..Role::default()
    };
    vault.put_role("bound", other);
    let failure = client.log_in(&login("bound")).await.unwrap_err();
    assert!(failure.to_string().contains("audience"), "{failure}");
    assert!(!format!("{failure:?} {failure}").contains("PLANTED"));
}

#[tokio::test]
async fn secrets_of_both_versions_are_read_and_listed() {
    let vault = Vault::start().await;
    vault.put("kv/app", json!({ "user": "one" }));
    vault.put("secret/app/db", json!({ "user": "old" }));
    vault.put("secret/app/db", json!({ "user": "new" }));
    let client = client(&vault);
    let token = log_in(&client).await.token;
    let mount = client.mount("secret/app/db", &token).await.unwrap();
    assert_eq!(
        mount,
        Mount {
            path: "secret/".to_owned(),
            is_kv2: true
        }
    );
    let path = mount.api_path("secret/app/db", Use::Read);
    let read = async |version| client.read(&path, version, &token).await.unwrap().data;
    assert_eq!(read(None).await["data"]["user"], "new");
    assert_eq!(read(Some(1)).await["data"]["user"], "old");
    let listed = client.list("secret/metadata/app", &token).await.unwrap();
    assert_eq!(listed.keys(), ["db"]);
    assert!(!client.mount("kv/app", &token).await.unwrap().is_kv2);
    let secret = client.read("kv/app", None, &token).await.unwrap();
    assert_eq!(
        (secret.data["user"].as_str(), secret.has_lease()),
        (Some("one"), false)
    );
    client
        .write("kv/other", &json!({ "a": "b" }), &token)
        .await
        .unwrap();
    let secret = client.read("kv/other", None, &token).await.unwrap();
    assert_eq!(secret.data, json!({ "a": "b" }));
}

#[tokio::test]
async fn what_is_not_there_is_absent_and_what_is_forbidden_is_not() {
    let vault = Vault::start().await;
    vault.put("secret/gone", json!({ "a": "b" }));
    vault.delete("secret/gone");
    let client = client(&vault);
    let token = log_in(&client).await.token;
    for path in ["kv/none", "secret/data/none", "secret/data/gone"] {
        let read = client.read(path, None, &token).await;
        assert_eq!(read, Err(Failure::Absent), "{path}");
    }
    let read = client
        .read("kv/none", None, &Token::new("hvs.PLANTED"))
        .await
        .unwrap_err();
    assert!(
        matches!(read, Failure::Forbidden { .. }) && !read.is_transient(),
        "{read:?}"
    );
}

#[tokio::test]
async fn leases_are_renewed_and_end_with_the_token() {
    let vault = Vault::start().await;
    vault.put_credentials("app", Duration::from_secs(60), true);
    let client = client(&vault);
    let token = log_in(&client).await.token;
    let secret = client
        .read("database/creds/app", None, &token)
        .await
        .unwrap();
    assert!(secret.renewable);
    let renewed = client.renew_lease(&secret.lease_id, &token).await.unwrap();
    assert_eq!(renewed.lease(), Some(Duration::from_secs(60)));
    assert_eq!(vault.leases(), std::slice::from_ref(&secret.lease_id));
    client.revoke_self(&token).await.unwrap();
    assert!(vault.leases().is_empty());
    let token = log_in(&client).await.token;
    let renewed = client
        .renew_lease(&secret.lease_id, &token)
        .await
        .unwrap_err();
    assert!(renewed.to_string().contains("lease not found"), "{renewed}");
}

#[tokio::test]
async fn requests_name_their_namespace_but_the_health_check_does_not() {
    let vault = Vault::start().await;
    let client = client(&vault).in_namespace("team/a");
    assert_eq!(client.in_namespace("").namespace(), "team/a");
    log_in(&client).await;
    client.health().await.unwrap();
    let requests = vault.requests();
    assert_eq!(requests[0], "POST auth/jwt-nomad/login @team/a");
    assert!(requests[1].starts_with("GET sys/health?") && !requests[1].contains('@'));
}
