//! The client against the stand-in for Consul.

use std::time::Duration;

use consul::agent::{CheckProbe, CheckRegistration, CheckState, Registration};
use consul::{Client, ConsulConfig, Failure, Login, Scope, Token, Wait};
use consul_test_kit::{Consul, Fault};

fn client(consul: &Consul) -> Client {
    open(consul, |_| ())
}

fn open(consul: &Consul, change: impl FnOnce(&mut ConsulConfig)) -> Client {
    let mut config = ConsulConfig {
        enabled: true,
        address: consul.address(),
        timeout: Duration::from_secs(1),
        ..ConsulConfig::default()
    };
    change(&mut config);
    Client::open(&config).expect("the settings are valid")
}

fn service() -> Registration {
    Registration {
        id: "_nomad-task-1".to_owned(),
        name: "web".to_owned(),
        tags: vec!["v1".to_owned()],
        port: 80,
        checks: vec![CheckRegistration {
            id: "c1".to_owned(),
            name: "script".to_owned(),
            probe: CheckProbe::Ttl {
                ttl: Duration::from_secs(36),
            },
            ..CheckRegistration::default()
        }],
        ..Registration::default()
    }
}

#[tokio::test]
async fn services_and_checks_are_registered_updated_and_deregistered() {
    let consul = Consul::start().await;
    let client = client(&consul);
    client.register(&service()).await.unwrap();
    let listed = client.agent_services().await.unwrap();
    let web = &listed["_nomad-task-1"];
    assert_eq!((web.name.as_str(), web.port), ("web", 80));
    assert_eq!(web.tags, ["v1"]);
    let status = async || client.agent_checks().await.unwrap()["c1"].status;
    assert_eq!(status().await, CheckState::Critical);
    let passing = client.update_check("c1", CheckState::Passing, "ok");
    passing.await.unwrap();
    assert_eq!(status().await, CheckState::Passing);
    client.deregister_check("c1").await.unwrap();
    client.deregister_check("c1").await.unwrap();
    client.deregister("_nomad-task-1").await.unwrap();
    client.deregister("_nomad-task-1").await.unwrap();
    assert!(client.agent_services().await.unwrap().is_empty());
    let unknown = client.update_check("c1", CheckState::Passing, "").await;
    assert!(
        matches!(unknown, Err(Failure::Absent { .. })),
        "{unknown:?}"
    );
    let about = client.agent_self().await.unwrap();
    assert_eq!(about.config.version, "1.17.1");
    assert!(about.debug_config.connect_enabled);
}

#[tokio::test]
async fn a_query_with_an_index_waits_for_a_change() {
    let consul = Consul::start().await;
    let client = client(&consul);
    let scope = Scope::default();
    let absent = client.key("app/a b", &scope, Wait::None).await.unwrap();
    assert_eq!(absent.data, None);
    let wait = Wait::after(Wait::None, absent.index);
    let waiting = client.key("app/a b", &scope, wait);
    let writing = async {
        // Longer than the timeout of other requests.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        consul.put_key("app/a b", "one");
    };
    let (found, ()) = tokio::join!(waiting, writing);
    assert_eq!(found.unwrap().data.unwrap().value, "one");
    consul.put_key("app/c/d", "two");
    let listed = client.keys("app/", &scope, Wait::None).await.unwrap().data;
    let keys: Vec<_> = listed.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys, ["app/a b", "app/c/d"]);
    let none = client.keys("none/", &scope, Wait::None).await.unwrap();
    assert!(none.data.is_empty());
}

#[tokio::test]
async fn the_catalog_is_read() {
    let consul = Consul::start().await;
    let client = client(&consul);
    client.register(&service()).await.unwrap();
    let scope = Scope {
        datacenter: "dc1".to_owned(),
        ..Scope::default()
    };
    let health = async |tag, passing| {
        let found = client.service(("web", tag), passing, &scope, Wait::None);
        found.await.unwrap().data.len()
    };
    assert_eq!(health("", false).await, 1);
    assert_eq!(health("", true).await, 0);
    assert_eq!(health("v2", false).await, 0);
    consul.set_check("script", "passing");
    assert_eq!(health("v1", true).await, 1);
    assert!(consul.count("dc=dc1") > 0);
    let services = client.services(&scope, Wait::None).await.unwrap().data;
    assert_eq!(services["web"], ["v1"]);
    let nodes = client.nodes(&scope, Wait::None).await.unwrap().data;
    assert_eq!(nodes[0].name, "consul-test");
    let node = client
        .node("consul-test", &scope, Wait::None)
        .await
        .unwrap();
    assert_eq!(node.data.unwrap().services.len(), 1);
    let none = client.node("none", &scope, Wait::None).await.unwrap();
    assert_eq!(none.data, None);
    let datacenters = client.datacenters(&Token::default()).await.unwrap();
    assert_eq!(datacenters, ["dc1", "dc2"]);
}

#[tokio::test]
async fn a_login_gives_a_token_until_the_logout() {
    let consul = Consul::start().await;
    consul.put_auth_method("nomad-workloads", "consul.io", Duration::ZERO);
    consul.require_token("management");
    let client = client(&consul);
    let jwt = |audience: &str| {
        use base64::Engine as _;
        let claims = format!(r#"{{"aud":["{audience}"]}}"#);
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims);
        Token::new(format!("e30.{claims}.s1gnature"))
    };
    let login = |audience: &str| Login {
        auth_method: "nomad-workloads".to_owned(),
        jwt: jwt(audience),
        meta: [("requested_by".to_owned(), "web".to_owned())].into(),
        namespace: String::new(),
        partition: String::new(),
    };
    let refused = client.log_in(&login("other")).await.unwrap_err();
    assert!(matches!(refused, Failure::Forbidden { .. }), "{refused}");
    let token = client.log_in(&login("consul.io")).await.unwrap().secret;
    let scope = Scope {
        token: token.clone(),
        ..Scope::default()
    };
    assert!(client.key("a", &scope, Wait::None).await.is_ok());
    let known = client.token_self(&token).await.unwrap();
    assert_eq!(known.expiration_time, None);
    client.log_out(&token).await.unwrap();
    let gone = client.key("a", &scope, Wait::None).await.unwrap_err();
    assert!(matches!(gone, Failure::Forbidden { .. }), "{gone}");
    assert!(!format!("{gone} {scope:?}").contains(token.expose()));
}

#[tokio::test]
async fn the_nodes_token_comes_from_its_file() {
    let consul = Consul::start().await;
    consul.require_token("second");
    let file = std::env::temp_dir().join(format!("consul-token-{}", std::process::id()));
    std::fs::write(&file, "first\n").unwrap();
    let client = open(&consul, |config| config.token_file = Some(file.clone()));
    let denied = client.agent_services().await;
    assert!(
        matches!(denied, Err(Failure::Forbidden { .. })),
        "{denied:?}"
    );
    std::fs::write(&file, "second\n").unwrap();
    client.reload_token().unwrap();
    assert!(client.agent_services().await.is_ok());
    std::fs::remove_file(&file).unwrap();
    assert!(client.reload_token().is_err());
    assert!(
        client.agent_services().await.is_ok(),
        "the last token stays"
    );
}

#[tokio::test]
async fn failures_say_whether_a_retry_may_help() {
    let mut consul = Consul::start().await;
    let client = client(&consul);
    for (fault, is_transient) in [
        (Fault::NoLeader, true),
        (Fault::Throttled, true),
        (Fault::Denied, false),
        (Fault::Slow(Duration::from_secs(3)), true),
        (Fault::Html, true),
    ] {
        consul.fail(Some(fault));
        let failure = client.agent_services().await.unwrap_err();
        assert_eq!(failure.is_transient(), is_transient, "{failure:?}");
    }
    consul.fail(None);
    consul.stop();
    let failure = client.agent_services().await.unwrap_err();
    assert!(failure.is_transient(), "{failure:?}");
}
