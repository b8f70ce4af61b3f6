//! Failover between gateways, and waits between retries.

use proto::internal::v1::HeartbeatRequest;
use tonic::Code;

use super::*;

fn gateways(addresses: &[&str]) -> Gateways {
    let addresses = addresses
        .iter()
        .map(|address| (*address).to_owned())
        .collect();
    Gateways::new(
        addresses,
        IdSource::seeded(1),
        service_kit::Transport::PLAINTEXT,
    )
}

fn asked(gateways: &Gateways) -> String {
    gateways.current().unwrap().0
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn scenario_012_a_failed_gateway_is_tried_last() {
    let gateways = gateways(&["http://a:1", "http://b:1", "http://c:1"]);
    gateways.refused("http://a:1", &Status::unavailable("gone"));
    assert_eq!(asked(&gateways), "http://b:1");
    // Another loop had called the same gateway: the next one is not affected.
    gateways.refused("http://a:1", &Status::deadline_exceeded("slow"));
    assert_eq!(asked(&gateways), "http://b:1");
    gateways.refused("http://b:1", &Status::not_found("node"));
    assert_eq!(asked(&gateways), "http://b:1", "the gateway answered");
    gateways.refused("http://b:1", &Status::unavailable("gone"));
    gateways.refused("http://c:1", &Status::unavailable("gone"));
    assert_eq!(asked(&gateways), "http://a:1");
}

#[tokio::test]
async fn the_servers_list_is_used_and_configured_gateways_stay_as_fallback() {
    let gateways = gateways(&["http://a:1"]);
    gateways.replace(&strings(&["http://x:1", "http://y:1", "http://a:1"]));
    assert_eq!(asked(&gateways), "http://a:1", "the current gateway stays");
    gateways.replace(&strings(&["http://x:1", "http://y:1"]));
    assert_ne!(asked(&gateways), "http://a:1");
    gateways.replace(&[]);
    for _ in 0..2 {
        gateways.refused(&asked(&gateways), &Status::unavailable("gone"));
    }
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(asked(&gateways));
        gateways.refused(&asked(&gateways), &Status::unavailable("gone"));
    }
    assert!(all.contains(&"http://a:1".to_owned()), "{all:?}");
}

#[tokio::test]
async fn an_invalid_address_is_skipped() {
    let gateways = gateways(&["not an address", "http://b:1"]);
    assert!(gateways.current().is_err());
    assert_eq!(asked(&gateways), "http://b:1");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_retry_goes_on_when_another_call_succeeds() {
    let gateways = gateways(&["http://a:1"]);
    let ended = CancellationToken::new();
    let began = tokio::time::Instant::now();
    gateways.refused("http://a:1", &Status::unavailable("gone"));
    tokio::join!(gateways.pause(Duration::from_secs(60), &ended), async {
        sleep(Duration::from_secs(2)).await;
        gateways.answered();
    });
    assert_eq!(began.elapsed().as_secs(), 2);
    gateways.answered();
    gateways.pause(Duration::from_secs(3), &ended).await;
    assert_eq!(
        began.elapsed().as_secs(),
        5,
        "only a success after a failure"
    );
}

#[tokio::test]
async fn an_error_names_its_gateway() {
    let gateways = gateways(&["http://a:1", "http://b:1"]);
    let call = async |_client: Client| Err::<Response<()>, _>(Status::unavailable("gone"));
    for name in ["http://a:1", "http://b:1"] {
        let status = gateways.call(call).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), format!("gateway {name}: gone"));
    }
}

#[tokio::test]
async fn a_heartbeat_never_goes_to_the_same_gateway_twice_in_a_row_while_there_are_others() {
    let gateways = gateways(&["http://a:1", "http://b:1"]);
    let refused =
        async |_client: Client| Err::<Response<()>, _>(Status::unavailable("not confirmed"));
    let (first, _) = gateways.call_avoiding(None, refused).await;
    assert_eq!(first, "http://a:1");
    // Another loop fails at the next gateway in between, so that the first one is the current again.
    gateways.refused("http://b:1", &Status::unavailable("gone"));
    assert_eq!(asked(&gateways), "http://a:1");
    let (second, _) = gateways.call_avoiding(Some(&first), refused).await;
    assert_eq!(second, "http://b:1");

    let single = self::gateways(&["http://a:1"]);
    let (address, _) = single.call_avoiding(Some("http://a:1"), refused).await;
    assert_eq!(address, "http://a:1", "there is no other");
}

/// Returns a transport with TLS.
fn encrypted() -> service_kit::Transport {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    let request = pki::NodeAuthorityRequest {
        common_name: "a CA".to_owned(),
        days: 1,
        region: "global".to_owned(),
    };
    let moment = pki::Moment {
        now: 1_000_000,
        serial: pki::Serial(1),
    };
    let authority = pki::create_node_authority(&request, moment).unwrap();
    std::fs::write(&ca_file, authority.certificate_pem).unwrap();
    service_kit::Transport::without_certificate(&ca_file, "global").unwrap()
}

#[tokio::test]
async fn the_addresses_of_a_node_with_tls_begin_with_https() {
    let configured = strings(&["http://a:1", "https://b:1"]);
    let gateways = Gateways::new(configured, IdSource::seeded(1), encrypted());
    assert_eq!(asked(&gateways), "https://a:1");
    gateways.refused("https://a:1", &Status::unavailable("gone"));
    assert_eq!(asked(&gateways), "https://b:1");
    // As gateways announce themselves.
    gateways.replace(&strings(&["http://a:1", "http://b:1", "http://c:1"]));
    assert_eq!(asked(&gateways), "https://b:1", "the current gateway stays");
    for _ in 0..3 {
        let address = asked(&gateways);
        assert!(address.starts_with("https://"), "{address}");
        gateways.refused(&address, &Status::unavailable("gone"));
    }
}

#[tokio::test]
async fn a_plaintext_node_gets_the_names_of_the_settings_for_tls() {
    const REFUSAL: &str = "this port needs TLS: use https://";
    let cause = std::io::Error::other(format!("connection error received: {REFUSAL}"));
    let status = Status::from_error(Box::new(cause));
    for status in [status, Status::failed_precondition(REFUSAL)] {
        let named = naming("http://a:1", &status);
        for part in [
            "http://a:1",
            "needs TLS",
            "tls.ca_file",
            "tls.cert_file",
            "tls.key_file",
        ] {
            assert!(named.message().contains(part), "{part}: {named:?}");
        }
    }
    // A gateway that tells of its own connections is quoted.
    let own = format!("controller http://c:1: {REFUSAL}");
    let quoted = naming("http://a:1", &Status::unavailable(&own));
    assert_eq!(quoted.message(), format!("gateway http://a:1: {own}"));
}

#[tokio::test]
async fn an_error_without_a_connection_names_the_time_limit() {
    // The system accepts connections, and nothing answers the TLS handshake.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    let gateways = Gateways::new(vec![address.clone()], IdSource::seeded(1), encrypted());
    let called = gateways
        .call(async |mut client: Client| client.heartbeat(HeartbeatRequest::default()).await)
        .await;
    let status = called.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let expected = format!("gateway {address}: no connection within 2s");
    assert_eq!(status.message(), expected);
}

#[test]
fn a_broken_connection_has_its_cause() {
    let mut status = Status::unknown("transport error");
    status.set_source(std::sync::Arc::new(std::io::Error::other("reset by peer")));
    let named = naming("http://a:1", &status);
    let expected = "gateway http://a:1: the connection broke: reset by peer";
    assert_eq!(named.message(), expected);
}
