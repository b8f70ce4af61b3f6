//! Discovery, handshake and set-up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use driver_plugin_test_kit::control::UNHEALTHY;
use serde_json::json;
use test_kit::wait_for;

use crate::fixture::{FILE, Fixture, LIMIT, NAME, object};

#[tokio::test]
async fn a_plugin_is_found_and_fingerprinted() {
    let mut fixture = Fixture::new();
    fixture.config.config = object(json!({"greeting": "good day"}));
    let (plugins, driver) = fixture.driver().await;
    let found = driver.fingerprint();
    assert!(found.detected && found.healthy, "{found:?}");
    assert_eq!(found.description, "fine");
    let want = [
        ("driver.stand-in", "1"),
        ("driver.stand-in.greeting", "good day"),
    ];
    let want = want.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found.attributes, want.into(), "only those below its name");
    let version = format!("plugins.driver.{FILE}.version");
    assert_eq!(plugins.attributes()[&version], "1.2.3");

    let mut changes = plugins.changes();
    changes.mark_unchanged();
    fixture.switch(UNHEALTHY, Some(""));
    tokio::time::timeout(LIMIT, changes.changed())
        .await
        .unwrap()
        .unwrap();
    let found = driver.fingerprint();
    assert!(found.detected && !found.healthy);
    assert_eq!(found.description, "switched off");
    plugins.close().await;
    assert!(fixture.plugin_pids().is_empty(), "it has no tasks");
    assert_eq!(fixture.calls("Shutdown"), 1);
}

#[tokio::test]
async fn a_file_that_is_no_plugin_is_named() {
    for (arg, want) in [
        ("handshake=garbage", "its first line is \"hello, world\""),
        ("handshake=long", "its first line has more than 8192 bytes"),
        (
            "handshake=endless",
            "its first line has more than 8192 bytes",
        ),
        ("handshake=exit", "it printed: panic: cannot go on"),
        ("handshake=silent", "there is no handshake within"),
        ("handshake=tcp", "only socket files (unix) are supported"),
        ("handshake=tls", "it asks for TLS"),
        ("handshake=old", "version \"1\" of its protocol"),
        ("cookie=other", "it printed: this program is a plugin"),
        ("kind=device", "it is a plugin for devices"),
        (
            "ability=chroot",
            "isolation chroot: supported are none and image",
        ),
        ("ability=network", "must_create_network"),
        ("ability=remote", "remote_tasks"),
        ("name=docker", "the agent itself has the driver docker"),
        ("name=a/b", "its driver is called \"a/b\""),
    ] {
        let mut fixture = Fixture::new();
        fixture.config.args.push(arg.to_owned());
        fixture.timing.start_limit = Duration::from_secs(3);
        let plugins = fixture.start().await;
        assert_eq!(plugins.drivers().count(), 0, "{arg}");
        let problem = &plugins.attributes()[&format!("plugins.driver.{FILE}.problem")];
        assert!(problem.contains(want), "{arg}: {problem}");
        assert!(
            fixture.plugin_pids().is_empty(),
            "{arg}: its process is left"
        );
    }
}

#[tokio::test]
async fn a_setting_that_the_plugin_does_not_have_is_named() {
    for (config, want) in [
        (
            json!({"greetings": "x"}),
            "config.greetings: unknown option",
        ),
        (
            json!({"greeting": []}),
            "config.greeting: want a string, got a list",
        ),
        (
            json!({"greeting": ""}),
            "it refuses its config: the greeting is empty",
        ),
    ] {
        let mut fixture = Fixture::new();
        fixture.config.config = object(config);
        let plugins = fixture.start().await;
        let problem = &plugins.attributes()[&format!("plugins.driver.{FILE}.problem")];
        assert!(problem.contains(want), "{problem}");
    }
}

#[tokio::test]
async fn other_files_are_no_plugins_and_one_driver_has_one_plugin() {
    let fixture = Fixture::new();
    fixture.add("a-second-one");
    let directory = fixture.path("plugins");
    fs::create_dir(directory.join("folder")).unwrap();
    fs::write(directory.join("README"), "text").unwrap();
    let script = directory.join("script");
    fs::write(&script, "#!/bin/sh\necho no plugin\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let plugins = fixture.start().await;
    let names: Vec<_> = plugins.drivers().map(|(name, _)| name).collect();
    assert_eq!(names, [NAME]);
    let attributes = plugins.attributes();
    let names: Vec<&str> = attributes.keys().map(String::as_str).collect();
    let want = [
        "plugins.driver.a-second-one.version",
        "plugins.driver.script.problem",
        "plugins.driver.stand-in-plugin.problem",
    ];
    assert_eq!(names, want);
    let problem = &attributes["plugins.driver.stand-in-plugin.problem"];
    assert!(
        problem.contains("a-second-one has the driver stand-in already"),
        "{problem}"
    );
    plugins.close().await;
}

#[tokio::test]
async fn a_missing_directory_is_no_reason_not_to_start() {
    let fixture = Fixture::empty();
    let settings = fixture.settings();
    fs::remove_dir(&settings.plugin_dir).unwrap();
    let plugins = driver_plugin::Plugins::start(settings).await;
    assert_eq!(plugins.drivers().count(), 0);
    assert!(plugins.attributes().is_empty());
}

#[tokio::test]
async fn a_plugin_that_worked_once_is_waited_for() {
    let mut fixture = Fixture::new();
    let (plugins, _) = fixture.driver().await;
    plugins.close().await;
    fixture.config.args.push("handshake=exit".to_owned());
    let (plugins, driver) = fixture.driver().await;
    let found = driver.fingerprint();
    assert!(!found.detected && !found.healthy);
    assert!(
        found.description.starts_with("the plugin does not run: "),
        "{found:?}"
    );
    wait_for("another try", LIMIT, async || {
        let found = driver.fingerprint().description;
        found
            .contains("it has ended without a handshake")
            .then_some(())
    })
    .await;
    plugins.close().await;
}
