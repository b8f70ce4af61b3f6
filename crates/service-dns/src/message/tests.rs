//! Requests and responses as messages.

use hickory_proto::op::Query;

use super::*;

fn instance(number: u8, node: &str) -> Instance {
    Instance {
        id: format!("i{number}"),
        address: format!("10.0.0.{number}"),
        port: 8_000 + u16::from(number),
        node_id: node.to_owned(),
        node_name: format!("Node_{node}.example"),
        datacenter: "dc1".to_owned(),
        ..Instance::default()
    }
}

fn web() -> ServiceName {
    ServiceName {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
    }
}

/// A zone in which `web` has this answer.
async fn zone(answer: Answer) -> Zone {
    let services = Arc::new(Services::default());
    let _ = services.look_up(&web(), Duration::ZERO).await;
    services.apply([(web(), answer)]);
    let node = LocalNode {
        node_id: "n1".to_owned(),
        datacenter: "dc1".to_owned(),
    };
    let (ids, metrics) = (IdSource::seeded(1), DnsMetrics::default());
    Zone::new(&DnsConfig::default(), services, node, ids, metrics)
}

async fn with(instances: Vec<Instance>) -> Zone {
    zone(Answer::Instances(instances.into())).await
}

fn query(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

async fn send(zone: &Zone, request: &Message) -> Message {
    let bytes = request.to_vec().unwrap();
    let response = zone.respond(&bytes, Transport::Udp).await.unwrap();
    Message::from_vec(&response).unwrap()
}

async fn ask(zone: &Zone, name: &str, kind: RecordType) -> Message {
    send(zone, &query(name, kind)).await
}

#[tokio::test]
async fn a_service_has_addresses_with_the_ttl_and_the_name_as_asked() {
    let zone = with(vec![instance(2, "n2"), instance(1, "n1")]).await;
    let response = ask(&zone, "Web.Service.KAFILA.", RecordType::A).await;
    let metadata = response.metadata;
    assert_eq!(
        (metadata.id, metadata.response_code),
        (7, ResponseCode::NoError)
    );
    assert!(metadata.authoritative && metadata.recursion_desired && !metadata.recursion_available);
    let answers: Vec<String> = response.answers.iter().map(ToString::to_string).collect();
    assert_eq!(
        answers,
        [
            "Web.Service.KAFILA. 2 IN A 10.0.0.1",
            "Web.Service.KAFILA. 2 IN A 10.0.0.2"
        ],
        "the node's own first"
    );
}

#[tokio::test]
async fn srv_records_have_ports_and_targets_whose_addresses_are_with_them() {
    let zone = with(vec![instance(1, "n1")]).await;
    for name in ["_web._tcp.service.kafila.", "web.service.kafila."] {
        let response = ask(&zone, name, RecordType::SRV).await;
        let target = "node-n1-example.0a000001.addr.kafila.";
        assert_eq!(
            response.answers[0].to_string(),
            format!("{name} 2 IN SRV 1 1 8001 {target}")
        );
        assert_eq!(
            response.additionals[0].to_string(),
            format!("{target} 2 IN A 10.0.0.1")
        );
        let address = ask(&zone, target, RecordType::A).await;
        assert_eq!(
            address.answers[0].to_string(),
            format!("{target} 2 IN A 10.0.0.1")
        );
        let address = ask(&zone, target, RecordType::AAAA).await;
        assert_eq!(address.metadata.response_code, ResponseCode::NoError);
        assert!(address.answers.is_empty());
    }
}

#[tokio::test]
async fn a_host_name_is_an_alias_and_a_target() {
    let mut external = instance(1, "n1");
    external.address = "db.example.com".to_owned();
    let zone = with(vec![external.clone()]).await;
    let response = ask(&zone, "web.service.kafila.", RecordType::A).await;
    assert_eq!(
        response.answers[0].to_string(),
        "web.service.kafila. 2 IN CNAME db.example.com."
    );
    let response = ask(&zone, "web.service.kafila.", RecordType::SRV).await;
    assert_eq!(
        response.answers[0].to_string(),
        "web.service.kafila. 2 IN SRV 1 1 8001 db.example.com."
    );
    // An address excludes an alias.
    let zone = with(vec![external, instance(2, "n2")]).await;
    let response = ask(&zone, "web.service.kafila.", RecordType::A).await;
    assert_eq!(response.answers.len(), 1);
    assert_eq!(response.answers[0].record_type(), RecordType::A);
}

#[tokio::test]
async fn an_answer_without_data_says_whether_the_name_exists_and_for_how_long() {
    let zone = with(vec![instance(1, "n1")]).await;
    for (name, kind, code) in [
        (
            "web.service.kafila.",
            RecordType::AAAA,
            ResponseCode::NoError,
        ),
        (
            "web.service.kafila.",
            RecordType::TXT,
            ResponseCode::NoError,
        ),
        (
            "v1.web.service.kafila.",
            RecordType::A,
            ResponseCode::NoError,
        ),
        ("service.kafila.", RecordType::A, ResponseCode::NoError),
        ("kafila.", RecordType::A, ResponseCode::NoError),
        ("web.kafila.", RecordType::A, ResponseCode::NXDomain),
    ] {
        let response = ask(&zone, name, kind).await;
        assert_eq!(response.metadata.response_code, code, "{name} {kind}");
        assert!(response.answers.is_empty());
        assert_eq!(
            response.authorities[0].to_string(),
            "kafila. 2 IN SOA ns.kafila. hostmaster.kafila. 1 3600 600 86400 2"
        );
    }
    let none = with(Vec::new()).await;
    let response = ask(&none, "web.service.kafila.", RecordType::A).await;
    assert_eq!(response.metadata.response_code, ResponseCode::NXDomain);
    let apex = ask(&zone, "kafila.", RecordType::SOA).await;
    assert_eq!(apex.answers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_names_are_refused_and_a_silent_gateway_is_a_failure() {
    let zone = with(vec![instance(1, "n1")]).await;
    for name in ["example.com.", "kafila.example.", "service.", "xkafila."] {
        let response = ask(&zone, name, RecordType::A).await;
        assert_eq!(
            response.metadata.response_code,
            ResponseCode::Refused,
            "{name}"
        );
        assert!(!response.metadata.authoritative && response.authorities.is_empty());
    }
    let response = ask(&zone, "db.service.kafila.", RecordType::A).await;
    assert_eq!(response.metadata.response_code, ResponseCode::ServFail);
    let refused = self::zone(Answer::Refused("no allocation".to_owned())).await;
    let response = ask(&refused, "web.service.kafila.", RecordType::A).await;
    assert_eq!(response.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(refused.metrics.refusals.get(), 1);
    assert_eq!(zone.metrics.refusals.get(), 4);
    assert_eq!(zone.metrics.failures.get(), 1);
}

#[tokio::test]
async fn a_response_that_is_too_long_for_udp_is_cut_and_whole_over_tcp() {
    let instances: Vec<Instance> = (0..100).map(|number| instance(number, "n1")).collect();
    let zone = with(instances).await;
    let mut request = query("web.service.kafila.", RecordType::A);
    let response = send(&zone, &request).await;
    assert!(response.metadata.truncation && response.answers.is_empty());
    let bytes = request.to_vec().unwrap();
    let whole = zone.respond(&bytes, Transport::Tcp).await.unwrap();
    let whole = Message::from_vec(&whole).unwrap();
    assert_eq!(
        (whole.metadata.truncation, whole.answers.len()),
        (false, 100)
    );
    // A larger limit than the server's is not used.
    let mut edns = Edns::new();
    edns.set_max_payload(4_096);
    request.set_edns(edns);
    let response = send(&zone, &request).await;
    assert!(response.metadata.truncation);
    assert_eq!(response.edns.unwrap().max_payload(), UDP_MAX);
}

#[tokio::test]
async fn malformed_requests_get_an_error_or_nothing() {
    let zone = with(Vec::new()).await;
    for short in [&b""[..], &[0; 11]] {
        assert_eq!(zone.respond(short, Transport::Udp).await, None);
    }
    let mut broken = query("web.service.kafila.", RecordType::A)
        .to_vec()
        .unwrap();
    broken.truncate(20);
    let response = zone.respond(&broken, Transport::Udp).await.unwrap();
    let response = Message::from_vec(&response).unwrap();
    assert_eq!(
        (response.metadata.id, response.metadata.response_code),
        (7, ResponseCode::FormErr)
    );
    // Responses would be answered without end.
    let mut answer = query("web.service.kafila.", RecordType::A);
    answer.metadata.message_type = MessageType::Response;
    let bytes = answer.to_vec().unwrap();
    assert_eq!(zone.respond(&bytes, Transport::Udp).await, None);
    broken[2] |= 0x80;
    assert_eq!(zone.respond(&broken, Transport::Udp).await, None);
    let mut update = query("web.service.kafila.", RecordType::A);
    update.metadata.op_code = OpCode::Status;
    let response = send(&zone, &update).await;
    assert_eq!(response.metadata.response_code, ResponseCode::NotImp);
    let mut newer = query("web.service.kafila.", RecordType::A);
    let mut edns = Edns::new();
    edns.set_version(1);
    newer.set_edns(edns);
    let response = send(&zone, &newer).await;
    // BADVERS, which has the number of BADSIG.
    assert_eq!(u16::from(response.metadata.response_code), 16);
}
