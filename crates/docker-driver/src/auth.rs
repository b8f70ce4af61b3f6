//! Credentials for a registry: the task's `auth` block, else the node's file, else its helper.
//!
//! Source: the public format of Docker's config.json and the protocol of its credential helpers.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::image::Image;
use crate::options::Options;
use crate::settings::Settings;

/// Docker Hub in config.json and for helpers.
const HUB: &str = "https://index.docker.io/v1/";
/// Timeout of a credential helper, which may ask a cloud's service.
const HELPER_LIMIT: Duration = Duration::from_secs(30);
/// A helper's user name for an identity token.
const TOKEN_USER: &str = "<token>";
/// Answer of a helper without credentials for the registry.
const HELPER_NONE: &str = "credentials not found";

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    auths: HashMap<String, Entry>,
    #[serde(rename = "credsStore")]
    store: String,
    #[serde(rename = "credHelpers")]
    helpers: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// base64 of `user:password`.
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// Returns the credentials for an image's registry; `None`: pull without.
pub(crate) async fn credentials(
    options: &Options,
    settings: &Settings,
    image: &Image,
) -> Result<Option<DockerCredentials>, String> {
    if let Some(auth) = options
        .auth
        .as_ref()
        .filter(|auth| !auth.username.is_empty())
    {
        let server = match auth.server_address.as_str() {
            "" => server(&image.registry),
            address => address,
        };
        return Ok(Some(DockerCredentials {
            email: Some(auth.email.clone()).filter(|email| !email.is_empty()),
            ..password(server, auth.username.clone(), auth.password.clone())
        }));
    }
    if let Some(path) = &settings.config.auth_config
        && let Some(found) = from_file(path, &image.registry).await?
    {
        return Ok(Some(found));
    }
    if settings.config.auth_helper.is_empty() {
        return Ok(None);
    }
    from_helper(&settings.config.auth_helper, server(&image.registry)).await
}

async fn from_file(path: &Path, registry: &str) -> Result<Option<DockerCredentials>, String> {
    let wrong = |error: &dyn std::fmt::Display| {
        format!(
            "cannot read auth_config of the node, {}: {error}",
            path.display()
        )
    };
    let bytes = tokio::fs::read(path).await.map_err(|error| wrong(&error))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    if let Some(helper) = find(&file.helpers, registry) {
        return from_helper(helper, server(registry)).await;
    }
    if let Some(entry) = find(&file.auths, registry)
        && let Some(found) = from_entry(entry, server(registry)).map_err(|error| wrong(&error))?
    {
        return Ok(Some(found));
    }
    if file.store.is_empty() {
        return Ok(None);
    }
    from_helper(&file.store, server(registry)).await
}

fn from_entry(entry: &Entry, server: &str) -> Result<Option<DockerCredentials>, String> {
    if !entry.identitytoken.is_empty() {
        return Ok(Some(token(server, entry.identitytoken.clone())));
    }
    if !entry.username.is_empty() {
        let (user, secret) = (entry.username.clone(), entry.password.clone());
        return Ok(Some(password(server, user, secret)));
    }
    if entry.auth.is_empty() {
        return Ok(None);
    }
    let decoded = BASE64_STANDARD.decode(entry.auth.trim()).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = text.as_deref().and_then(|text| text.split_once(':'));
    let (user, secret) = pair.ok_or("an auth is not base64 of user:password")?;
    Ok(Some(password(server, user.to_owned(), secret.to_owned())))
}

async fn from_helper(helper: &str, server: &str) -> Result<Option<DockerCredentials>, String> {
    let program = format!("docker-credential-{helper}");
    let failed = |error: &dyn std::fmt::Display| format!("{program}: {error}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&error))?;
    let asked = async {
        if let Some(mut input) = child.stdin.take() {
            input.write_all(server.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = timeout(HELPER_LIMIT, asked)
        .await
        .map_err(|_| failed(&format!("no answer within {HELPER_LIMIT:?}")))?
        .map_err(|error| failed(&error))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        if text.contains(HELPER_NONE) {
            return Ok(None);
        }
        return Err(failed(&text.trim()));
    }
    let answer: HelperAnswer =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))?;
    Ok(Some(if answer.username == TOKEN_USER {
        token(server, answer.secret)
    } else {
        password(server, answer.username, answer.secret)
    }))
}

/// Finds a registry's entry. Keys are host names, with or without a scheme and path.
fn find<'a, T>(entries: &'a HashMap<String, T>, registry: &str) -> Option<&'a T> {
    let wanted = host(server(registry));
    let mut entries = entries.iter();
    entries
        .find(|(key, _)| key.as_str() == registry || host(key) == wanted)
        .map(|(_, entry)| entry)
}

fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn server(registry: &str) -> &str {
    if registry == "docker.io" {
        HUB
    } else {
        registry
    }
}

fn password(server: &str, username: String, password: String) -> DockerCredentials {
    DockerCredentials {
        username: Some(username),
        password: Some(password),
        serveraddress: Some(server.to_owned()),
        ..DockerCredentials::default()
    }
}

fn token(server: &str, token: String) -> DockerCredentials {
    DockerCredentials {
        identitytoken: Some(token),
        serveraddress: Some(server.to_owned()),
        ..DockerCredentials::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(file: &serde_json::Value, image: &str) -> Option<DockerCredentials> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, file.to_string()).unwrap();
        let mut settings = Settings::new("/".into(), String::new());
        settings.config.auth_config = Some(path);
        let image = Image::parse(image).unwrap();
        credentials(&Options::default(), &settings, &image)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn the_file_names_registries_in_several_ways() {
        let file = serde_json::json!({"auths": {
            HUB: {"auth": BASE64_STANDARD.encode("ada:se:cret")},
            "https://r.example/v2/": {"username": "bob", "password": "p"},
            "10.0.0.1:5000": {"identitytoken": "t"},
            "empty.example": {},
        }});
        let hub = found(&file, "redis:7").await.unwrap();
        assert_eq!(hub.username.as_deref(), Some("ada"));
        assert_eq!(hub.password.as_deref(), Some("se:cret"));
        assert_eq!(hub.serveraddress.as_deref(), Some(HUB));
        let other = found(&file, "r.example/a/b:1").await.unwrap();
        assert_eq!(other.username.as_deref(), Some("bob"));
        let token = found(&file, "10.0.0.1:5000/x:1").await.unwrap();
        assert_eq!(token.identitytoken.as_deref(), Some("t"));
        assert_eq!(found(&file, "empty.example/x:1").await, None);
        assert_eq!(found(&file, "ghcr.io/x:1").await, None);
    }

    #[tokio::test]
    async fn the_tasks_own_credentials_come_first_and_a_missing_file_is_named() {
        let mut settings = Settings::new("/".into(), String::new());
        settings.config.auth_config = Some("/nonexistent/config.json".into());
        let image = Image::parse("r.example/x:1").unwrap();
        let error = credentials(&Options::default(), &settings, &image).await;
        assert!(error.unwrap_err().contains("/nonexistent/config.json"));
        let config = serde_json::json!({"auth": [{"username": "u", "password": "p"}]});
        let options = serde_json::from_value::<Options>(config).unwrap();
        let found = credentials(&options, &settings, &image).await.unwrap();
        let found = found.unwrap();
        assert_eq!(found.username.as_deref(), Some("u"));
        assert_eq!(found.serveraddress.as_deref(), Some("r.example"));
    }
}
