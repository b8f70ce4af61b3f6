//! Identity tokens over a real etcd: a task reads its token, which the published keys verify, and gets a
//! renewed one; it survives an outage of the gateway, and etcd has no private key.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use integration_tests::api::eventually;
use integration_tests::suite::{KEYRING_KEY, Options, Suite};
use model::Timestamp;
use service_kit::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use workload_identity::{Claims, JWKS_PATH, Jwks};

const TIMEOUT: Duration = Duration::from_secs(90);

/// Prints its tokens whenever one changes.
const JOB: &str = r#"
job "web" {
  group "app" {
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", <<EOT
stat -c 'mode %a' $NOMAD_SECRETS_DIR/nomad_token
echo "env $NOMAD_TOKEN_aws"
last=
while true; do
  now=$(cat local/aws.jwt)
  [ "$now" = "$last" ] || echo "file $now"
  last=$now
  sleep 0.2
done
EOT
        ]
      }
      identity {
        file = true
      }
      identity {
        name     = "aws"
        aud      = ["sts.amazonaws.com"]
        ttl      = "20s"
        env      = true
        file     = true
        filepath = "local/aws.jwt"
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_tokens_that_verify_and_are_renewed() -> Result<()> {
    if !test_kit::etcd::available() {
        return Ok(());
    }
    let mut suite = Suite::start(Options::default()).await?;
    let result = play(&mut suite).await;
    result.with_context(|| suite.log_tails())?;
    suite.stop().await
}

async fn play(suite: &mut Suite) -> Result<()> {
    suite.run_job(JOB).await?;
    let first = eventually(TIMEOUT, || printed(suite, 1)).await?;
    let keys = published(suite).await?;
    let claims = verify(&keys, &first[0])?;
    ensure!(
        claims.sub == "global:default:web:app:server:aws",
        "{claims:?}"
    );
    ensure!(claims.aud.contains("sts.amazonaws.com"), "{claims:?}");
    ensure!(claims.nomad_task.as_deref() == Some("server"), "{claims:?}");
    ensure!(claims.exp - claims.iat == 20, "{claims:?}");
    let log = log(suite).await?;
    ensure!(log.contains("mode 600"), "{log}");
    ensure!(log.contains(&format!("env {}", first[0])), "{log}");

    // The gateway is away when the renewal is due; the task runs on, and gets its token afterwards.
    suite.kill("api-gateway");
    tokio::time::sleep(Duration::from_secs(11)).await;
    suite.start_process("api-gateway")?;
    let renewed = eventually(TIMEOUT, || printed(suite, 2)).await?;
    let later = verify(&published(suite).await?, &renewed[1])?;
    ensure!(
        later.jti != claims.jti && later.iat > claims.iat,
        "{later:?}"
    );
    let allocations = suite.api()?.allocations("web").await?;
    ensure!(allocations.len() == 1, "{allocations:?}");
    let state = &allocations[0].task_states["server"];
    ensure!(state.restarts == 0 && state.state == "running", "{state:?}");

    // After a rotation the next token is of the new key, and both verify.
    suite
        .kafila(&["operator", "root", "keyring", "rotate"])
        .await?
        .ok()?;
    let listed = suite
        .kafila(&["operator", "root", "keyring", "list"])
        .await?
        .ok()?
        .stdout;
    ensure!(
        listed.contains("retired") && listed.contains("active"),
        "{listed}"
    );
    let kid = |token: &str| token.split('.').next().map(str::to_owned);
    let of_new = eventually(TIMEOUT, || async {
        let tokens = printed(suite, 3).await?;
        let last = tokens.last().context("no token")?.clone();
        ensure!(kid(&last) != kid(&first[0]), "still of the old key");
        Ok(last)
    })
    .await?;
    verify(&published(suite).await?, &of_new)?;
    search(suite, &[KEYRING_KEY, &first[0], &of_new]).await
}

/// Returns the tokens that the task has printed, at least `count`.
async fn printed(suite: &Suite, count: usize) -> Result<Vec<String>> {
    let log = log(suite).await?;
    let tokens = log.lines().filter_map(|line| line.strip_prefix("file "));
    let tokens: Vec<String> = tokens
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect();
    ensure!(tokens.len() >= count, "{log}");
    Ok(tokens)
}

async fn log(suite: &Suite) -> Result<String> {
    let api = suite.api()?;
    let allocations = api.allocations("web").await?;
    let alloc = allocations.first().context("no allocation")?;
    api.logs(&alloc.id, "server").await
}

async fn published(suite: &Suite) -> Result<Jwks> {
    let address = suite.metrics_address("api-gateway");
    let mut stream = tokio::net::TcpStream::connect(&address).await?;
    let request = format!("GET {JWKS_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(Jwks::parse(body.as_bytes())?)
}

fn verify(keys: &Jwks, token: &str) -> Result<Claims> {
    Ok(keys.verify(token, Timestamp(Clock::real().now()))?)
}

/// Searches the store and the processes' logs for secrets.
async fn search(suite: &Suite, secrets: &[&str]) -> Result<()> {
    let endpoints = [suite.store()];
    let client = store::Client::connect(&endpoints, store::ClientOptions::default()).await?;
    let stored = client.get(&state::Key::Keyring).await?.context("no keys")?;
    let state::Entity::Keyring(keyring) = &stored.entity else {
        anyhow::bail!("another object under the key");
    };
    let text = serde_json::to_string(keyring)?;
    // PKCS #8 of a key of P-256 begins with these bytes.
    for clear in secrets.iter().copied().chain(["MIGHAgEA", "30818702"]) {
        ensure!(!text.contains(clear), "{clear} is in the store");
    }
    suite.search_secrets(secrets).await
}
