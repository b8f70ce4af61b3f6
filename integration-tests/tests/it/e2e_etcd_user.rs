//! A suite whose etcd has authentication on: every service logs in as a user with rights to its prefix alone, and
//! again when etcd has forgotten its tokens.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_client::{ConnectOptions, Permission, PermissionType};
use integration_tests::api::eventually;
use integration_tests::load::{Promise, check_promises, sleeper};
use integration_tests::suite::{Options, Suite};
use test_kit::etcd::Etcd;

const TIMEOUT: Duration = Duration::from_secs(60);
const PASSWORD: &str = "a secret";

#[tokio::test(flavor = "multi_thread")]
async fn a_suite_works_as_a_user_of_etcd_with_rights_to_its_prefix_alone() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut etcd = Etcd::start().await?;
    enable_authentication(&etcd).await?;
    let folder = tempfile::tempdir()?;
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, format!("{PASSWORD}\n"))?;
    let suite = Suite::start(Options {
        store: Some(etcd.endpoint()),
        store_user: Some(store::User {
            name: "kafila".to_owned(),
            password_file,
        }),
        ..Options::default()
    })
    .await?;
    let result = Box::pin(play(&suite, &mut etcd)).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &Suite, etcd: &mut Etcd) -> Result<()> {
    let api = suite.api()?;
    run(suite, "before").await?;
    // The password is not optional, and the rights end with the prefix.
    let mut anonymous = etcd_client::Client::connect([etcd.endpoint()], None).await?;
    ensure!(anonymous.get("/kafila/v1/", None).await.is_err());
    let mut user = connect(etcd, "kafila").await?;
    ensure!(user.put("elsewhere", "x", None).await.is_err());

    // Tokens are in etcd's memory alone.
    etcd.restart().await?;
    run(suite, "after").await?;
    let stop = suite.kafila(&["job", "stop", "-purge", "before"]).await?;
    stop.ok()?;
    let promises = [("after".to_owned(), Promise::Running { count: 2 })].into();
    eventually(TIMEOUT, || check_promises(&api, &promises)).await?;
    api.stop_surely("after", true, TIMEOUT).await
}

async fn run(suite: &Suite, name: &str) -> Result<()> {
    let api = suite.api()?;
    api.register_surely(&sleeper(name, 2), name, TIMEOUT)
        .await?;
    let promises = [(name.to_owned(), Promise::Running { count: 2 })].into();
    eventually(TIMEOUT, || check_promises(&api, &promises)).await
}

/// Makes the users `root` and `kafila` as docs/security.md says, and turns authentication on.
async fn enable_authentication(etcd: &Etcd) -> Result<()> {
    let mut admin = etcd_client::Client::connect([etcd.endpoint()], None).await?;
    let prefix = Permission::new(PermissionType::Readwrite, "/kafila/").with_prefix();
    for role in ["root", "kafila"] {
        admin.role_add(role).await?;
    }
    admin.role_grant_permission("kafila", prefix).await?;
    for user in ["root", "kafila"] {
        admin.user_add(user, PASSWORD, None).await?;
        admin.user_grant_role(user, user).await?;
    }
    admin.auth_enable().await?;
    Ok(())
}

async fn connect(etcd: &Etcd, user: &str) -> Result<etcd_client::Client> {
    let options = ConnectOptions::new().with_user(user, PASSWORD);
    Ok(etcd_client::Client::connect([etcd.endpoint()], Some(options)).await?)
}
