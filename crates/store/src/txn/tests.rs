//! Operations that a transaction under construction accepts and refuses.

use model::{EvalId, Evaluation, NodeId};
use test_kit::builders::{evaluation, node, service};
use test_kit::writes;

use super::*;

fn txn(max_ops: usize, max_bytes: usize) -> Txn {
    Txn::new(Keyspace::default(), Limits { max_ops, max_bytes })
}

fn eval(number: u128) -> (Key, Evaluation) {
    let eval = evaluation(number, &service("web", 1));
    (Key::Eval(eval.id), eval)
}

#[test]
fn an_operation_too_many_is_refused_and_changes_nothing() {
    let mut txn = txn(2, 1 << 20);
    for number in 0..2 {
        let (key, eval) = eval(number);
        txn.add(&writes::create(&key, &eval)).unwrap();
    }
    let before = format!("{txn:?}");
    let (key, value) = eval(2);
    assert!(matches!(
        txn.add(&writes::create(&key, &value)),
        Err(TxnError::TooManyOps { max: 2 })
    ));
    assert!(matches!(
        txn.add(&writes::require_absent(&key)),
        Err(TxnError::TooManyOps { max: 2 })
    ));
    assert_eq!(format!("{txn:?}"), before);
    let (key, value) = eval(0);
    assert!(matches!(
        txn.add(&writes::create(&key, &value)),
        Err(TxnError::WrittenTwice { .. })
    ));
}

#[test]
fn a_byte_too_many_is_refused() {
    let (key, value) = eval(0);
    let mut roomy = txn(10, 1 << 20);
    roomy.add(&writes::create(&key, &value)).unwrap();
    let exact = roomy.byte_count();
    assert!(txn(10, exact).add(&writes::create(&key, &value)).is_ok());
    let refused = txn(10, exact - 1)
        .add(&writes::create(&key, &value))
        .map(drop);
    assert!(matches!(refused, Err(TxnError::TooManyBytes { .. })));
}

#[test]
fn a_compare_may_be_repeated_but_not_contradicted() {
    let (key, value) = eval(0);
    let mut txn = txn(10, 1 << 20);
    txn.add(&writes::require_unchanged(&key, 7))
        .unwrap()
        .add(&writes::require_unchanged(&key, 7))
        .unwrap();
    txn.add(&writes::update(&key, 7, &value)).unwrap();
    txn.add(&writes::require_unchanged(&key, 7)).unwrap();
    assert_eq!((txn.compares().len(), txn.write_count()), (1, 1));
    assert!(matches!(
        txn.add(&writes::require_absent(&key)),
        Err(TxnError::Contradiction { .. })
    ));
    assert!(matches!(
        txn.add(&writes::require_unchanged(&key, 8)),
        Err(TxnError::Contradiction { .. })
    ));
    assert!(matches!(
        txn.add(&writes::delete(&key, 7)),
        Err(TxnError::WrittenTwice { .. })
    ));
}

#[test]
fn a_key_at_revision_0_cannot_be_changed() {
    let (key, value) = eval(0);
    let mut txn = txn(10, 1 << 20);
    assert!(matches!(
        txn.add(&writes::update(&key, 0, &value)),
        Err(TxnError::NothingToChange { .. })
    ));
    assert!(matches!(
        txn.add(&writes::delete(&key, 0)),
        Err(TxnError::NothingToChange { .. })
    ));
    assert!(matches!(
        txn.add(&writes::require_unchanged(&key, 0)),
        Err(TxnError::NothingToChange { .. })
    ));
    assert!(txn.is_empty());
}

#[test]
fn a_value_under_another_name_or_of_another_kind_is_refused() {
    let (_, value) = eval(0);
    let (job, mut txn) = (service("web", 1), txn(10, 1 << 20));
    let others = [
        Key::Eval(EvalId::from_random(9)),
        Key::Node(NodeId::from_random(0)),
    ];
    for key in others {
        assert!(matches!(
            txn.add(&writes::create(&key, &value)),
            Err(TxnError::Mismatch { .. })
        ));
    }
    assert!(
        txn.add(&writes::create(&Key::Job(service("api", 1).key()), &job))
            .is_err()
    );
    assert!(
        txn.add(&writes::create(&Key::JobVersion(job.key(), 1), &job))
            .is_err(),
        "it is version 0"
    );
    assert!(
        txn.add(&writes::create(&Key::JobVersion(job.key(), 0), &job))
            .is_ok()
    );
    assert!(txn.add(&writes::create(&Key::Job(job.key()), &job)).is_ok());
    assert!(
        txn.add(&writes::create(&Key::Node(node(1).id), &node(1)))
            .is_ok()
    );
}

#[test]
fn merging_shares_compares_and_refuses_equal_keys() {
    let fence = Fence {
        service: "plan-applier".to_owned(),
        create_revision: 5,
    };
    let node_key = Key::Node(node(1).id);
    let with_eval = |number| {
        let (key, value) = eval(number);
        let mut txn = txn(3, 1 << 20);
        txn.fence(&fence)
            .unwrap()
            .add(&writes::require_unchanged(&node_key, 3))
            .unwrap();
        txn.add(&writes::create(&key, &value)).unwrap();
        txn
    };
    let mut first = txn(5, 1 << 20);
    first
        .merge(&with_eval(1))
        .unwrap()
        .merge(&with_eval(2))
        .unwrap();
    assert_eq!((first.compares().len(), first.write_count()), (4, 2));
    assert!(first.carries(&fence));

    let before = format!("{first:?}");
    assert!(matches!(
        first.merge(&with_eval(2)),
        Err(TxnError::WrittenTwice { .. })
    ));
    let mut other_node = with_eval(3);
    other_node
        .add(&writes::delete(&Key::Node(node(2).id), 9))
        .unwrap_err();
    let mut stale = txn(3, 1 << 20);
    let (key, value) = eval(4);
    stale
        .add(&writes::create(&key, &value))
        .unwrap()
        .add(&writes::require_unchanged(&node_key, 2))
        .unwrap();
    assert!(matches!(
        first.merge(&stale),
        Err(TxnError::Contradiction { .. })
    ));
    assert_eq!(
        format!("{first:?}"),
        before,
        "a failed merge changes nothing"
    );
    first.merge(&with_eval(3)).unwrap();
    assert!(matches!(
        first.merge(&with_eval(5)),
        Err(TxnError::TooManyOps { max: 5 })
    ));
    let (key, value) = eval(5);
    first.limits.max_ops = 6;
    first
        .add(&writes::create(&key, &value))
        .expect("additions of a failed merge are removed");
}

#[test]
fn two_terms_of_one_service_contradict_each_other() {
    let term = |create_revision| Fence {
        service: "eval-broker".to_owned(),
        create_revision,
    };
    let mut txn = txn(10, 1 << 20);
    txn.fence(&term(5)).unwrap().fence(&term(5)).unwrap();
    assert!(matches!(
        txn.fence(&term(9)),
        Err(TxnError::Contradiction { .. })
    ));
    assert!(txn.carries(&term(5)) && !txn.carries(&term(9)));
}
