//! Errors survive the metadata of a status, and stay within its limits.

use std::time::Duration;

use model::{FieldError, FieldErrors};
use tonic::Code;

use crate::status::{DETAIL_KEY, exhausted, invalid, invalid_field, not_leader};
use crate::v1::ErrorDetail;

#[test]
fn every_field_error_comes_back() {
    let errors = FieldErrors(vec![
        FieldError::new("job.id", "missing: every job needs one"),
        FieldError::new("job.priority", "is 101: want 1 to 100"),
    ]);
    let status = invalid(errors.clone());
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "2 errors occurred:\n\t* job.id: missing: every job needs one\n\t* job.priority: is 101: \
         want 1 to 100"
    );
    assert_eq!(
        ErrorDetail::from_status(&status).unwrap().field_errors(),
        errors
    );
}

#[test]
fn a_thousand_errors_are_truncated_to_the_limit_of_headers() {
    let error = |n: usize| FieldError::new(format!("job.task_groups[{n}].count"), "ü".repeat(40));
    let status = invalid(FieldErrors((0..1_000).map(error).collect()));
    assert!(status.message().contains("more"), "{}", status.message());
    let encoded: usize = 3 * status.message().len()
        + status
            .metadata()
            .get_bin(DETAIL_KEY)
            .unwrap()
            .as_encoded_bytes()
            .len();
    assert!(
        encoded < 15 * 1_024,
        "{encoded} bytes do not fit beside other headers"
    );
    let kept = ErrorDetail::from_status(&status).unwrap().violations.len();
    assert!((20..1_000).contains(&kept), "{kept} violations kept");
}

#[test]
fn one_endless_error_is_truncated_between_characters() {
    let status = invalid_field("job.id", "ü".repeat(10_000));
    assert!(status.message().ends_with("ü…"), "{}", status.message());
    assert!(status.message().len() < 2_200);
}

#[test]
fn a_follower_names_the_leader() {
    let status = not_leader(Some("http://127.0.0.1:7101"));
    assert_eq!(status.code(), Code::FailedPrecondition);
    let detail = ErrorDetail::from_status(&status).unwrap();
    assert_eq!(detail.leader_address, "http://127.0.0.1:7101");
    let detail = ErrorDetail::from_status(&not_leader(None)).unwrap();
    assert_eq!(detail.leader_address, "");
}

#[test]
fn overload_says_when_to_retry() {
    let status = exhausted("1000000 evaluations are waiting", Duration::from_secs(5));
    assert_eq!(status.code(), Code::ResourceExhausted);
    let detail = ErrorDetail::from_status(&status).unwrap();
    assert_eq!(detail.retry_after(), Some(Duration::from_secs(5)));
}

#[test]
fn a_status_without_detail_has_none() {
    assert_eq!(
        ErrorDetail::from_status(&tonic::Status::not_found("no such job")),
        None
    );
}
