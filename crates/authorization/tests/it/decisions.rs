//! Decisions about calls: the roles that may call a method, refusals, regions, callers without certificates.

use authorization::{AccessRefusal, METHODS, check};
use identity::{Caller, Identity, Peer, Role};
use rstest::rstest;

fn caller_of(role: Role, region: &str) -> Caller {
    Caller::new(Peer::Certified(
        Identity::new(role, region, "someone-1").unwrap(),
    ))
}

fn caller(role: Role) -> Caller {
    caller_of(role, "global")
}

/// The roles that may call a method.
fn allowed(name: &str) -> Vec<Role> {
    let path = format!("/{name}");
    let may = |role: &Role| check(&path, &caller(*role), Some("global")).is_ok();
    Role::ALL.into_iter().filter(may).collect()
}

#[rstest]
#[case::writes_of_users("kafila.v1.Jobs/Register", &[Role::Operator])]
#[case::reads_of_users("kafila.v1.Jobs/List", &[Role::Operator, Role::Monitor])]
#[case::output_of_tasks("kafila.v1.Allocations/Logs", &[Role::Operator])]
#[case::commands_in_tasks("kafila.v1.Allocations/Exec", &[Role::Operator])]
#[case::plans("kafila.internal.v1.PlanApplier/Submit", &[Role::Worker])]
#[case::deliveries("kafila.internal.v1.EvalBroker/Ack", &[Role::Worker])]
#[case::nodes("kafila.internal.v1.NodeSessions/ReportAllocations", &[Role::Node])]
#[case::services_of_nodes("kafila.internal.v1.NodeSessions/WatchServices", &[Role::Node])]
#[case::connections_of_nodes("kafila.internal.v1.NodeSessions/OpenConnection", &[Role::Node])]
#[case::connections_of_gateways("kafila.internal.v1.NodeConnections/Relay", &[Role::Gateway])]
#[case::tokens_of_tasks("kafila.internal.v1.NodeSessions/SignIdentities", &[Role::Node])]
#[case::rotation_of_keys("kafila.v1.Operator/RotateSigningKey", &[Role::Operator])]
#[case::volumes_of_nodes("kafila.internal.v1.NodeSessions/CsiMounts", &[Role::Node])]
#[case::plugins_of_nodes("kafila.internal.v1.NodeOperations/CsiControl", &[Role::Gateway])]
#[case::volumes_of_storage_systems("kafila.v1.CsiVolumes/Create", &[Role::Operator])]
#[case::files_of_nodes("kafila.internal.v1.NodeOperations/Logs", &[Role::Gateway])]
#[case::commands_on_nodes("kafila.internal.v1.NodeOperations/Exec", &[Role::Gateway])]
#[case::heartbeats("kafila.internal.v1.Liveness/Report", &[Role::Gateway])]
fn only_these_roles_may(#[case] method: &str, #[case] roles: &[Role]) {
    assert_eq!(allowed(method), roles);
}

#[test]
fn a_refusal_names_the_caller_the_method_and_the_role_that_is_needed() {
    let path = "/kafila.internal.v1.PlanApplier/Submit";
    let refusal = check(path, &caller(Role::Node), Some("global")).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "node someone-1 of region global may not call kafila.internal.v1.PlanApplier/Submit: it needs \
         role worker"
    );
    assert_eq!(
        (refusal.method(), refusal.role()),
        (Some(&path[1..]), "node")
    );
}

#[test]
fn what_every_role_may_call_is_refused_to_etcds_in_words() {
    let path = "/grpc.health.v1.Health/Check";
    let refusal = check(path, &caller(Role::Etcd), Some("global")).unwrap_err();
    let text = refusal.to_string();
    assert!(
        text.ends_with("it needs any role but etcd and etcd-client"),
        "{text}"
    );
    let refusal = check(path, &Caller::ANONYMOUS, None).unwrap_err();
    let text = refusal.to_string();
    assert!(
        text.contains("needs a client certificate of any role but etcd"),
        "{text}"
    );
}

#[test]
fn without_a_certificate_a_node_can_only_introduce_itself() {
    let mut open = Vec::new();
    for method in METHODS {
        match check(&format!("/{}", method.name), &Caller::ANONYMOUS, None) {
            Ok(_) => open.push(method.name),
            Err(AccessRefusal::Unauthenticated { method: named, .. }) => {
                assert_eq!(named, method.name);
            }
            Err(other) => panic!("{}: {other}", method.name),
        }
    }
    assert_eq!(open, ["kafila.internal.v1.NodeIntroductions/Introduce"]);
}

#[test]
fn development_has_all_rights_and_etcd_none() {
    for method in METHODS {
        let path = format!("/{}", method.name);
        assert!(check(&path, &Caller::DEVELOPMENT, None).is_ok(), "{path}");
        let is_open = check(&path, &Caller::ANONYMOUS, None).is_ok();
        for role in [Role::Etcd, Role::EtcdClient] {
            let may = check(&path, &caller(role), Some("global")).is_ok();
            assert_eq!(may, is_open, "{role}: {path}");
        }
    }
}

#[test]
fn a_certificate_counts_in_its_region() {
    let path = "/kafila.v1.Jobs/Register";
    let foreign = caller_of(Role::Operator, "eu");
    let refusal = check(path, &foreign, Some("global")).unwrap_err();
    assert!(matches!(refusal, AccessRefusal::Region { .. }), "{refusal}");
    assert!(refusal.to_string().contains("region global"), "{refusal}");
    assert!(check(path, &foreign, Some("eu")).is_ok());
}

#[rstest]
#[case("/kafila.v1.Jobs/Registe")]
#[case("/kafila.v1.Jobs/Register/")]
#[case("//kafila.v1.Jobs/Register")]
#[case("/kafila.v1.jobs/register")]
#[case("/")]
#[case("")]
fn a_path_outside_the_table_is_no_method(#[case] path: &str) {
    for caller in [Caller::DEVELOPMENT, caller(Role::Operator)] {
        let refusal = check(path, &caller, None).unwrap_err();
        assert_eq!(refusal, AccessRefusal::UnknownMethod);
        assert_eq!(refusal.method(), None);
    }
}
