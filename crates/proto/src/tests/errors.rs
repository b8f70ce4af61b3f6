//! Errors name the field by its path, and the accepted values.

use model::{AllocClient, Allocation, FieldErrors, Plan};

use super::draw::Draw;
use super::nouns;
use crate::{internal, v1};

fn lines(errors: &FieldErrors) -> Vec<String> {
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    let wire = v1::AllocClient {
        status: "runing".to_owned(),
        ..v1::AllocClient::default()
    };
    let errors = AllocClient::try_from(wire).unwrap_err();
    assert_eq!(
        lines(&errors),
        [
            "client.status: \"runing\" is not known here: want one of pending, running, complete, \
          failed, lost, unknown"
        ]
    );
}

#[test]
fn an_error_deep_in_a_plan_has_its_whole_path() {
    let mut draw = Draw::new(7);
    let mut plan = internal::v1::Plan::from(&nouns::plan(&mut draw));
    let mut alloc = v1::Allocation::from(&nouns::allocation(&mut draw));
    alloc.resources.as_mut().unwrap().ports = vec![v1::AllocatedPort {
        value: 70_000,
        ..v1::AllocatedPort::default()
    }];
    plan.placements = vec![alloc];
    let errors = Plan::try_from(plan).unwrap_err();
    assert_eq!(
        lines(&errors),
        ["plan.placements[0].resources.ports[0].value: 70000 is too large: want at most 65535"]
    );
}

#[test]
fn a_missing_id_says_what_an_id_looks_like() {
    let errors = Allocation::try_from(v1::Allocation::default()).unwrap_err();
    assert!(lines(&errors)[0].starts_with("allocation.id: \"\" is not the id of an allocation"));
}
