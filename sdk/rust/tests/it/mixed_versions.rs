//! The client against a gateway of a later version: unknown fields and values of enums are no errors.

use kafila_client::v1;

use crate::gateway::{Gateway, answer, client};

/// `PlanJobResponse` with a field that this version does not know.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterPlanJobResponse {
    #[prost(uint64, tag = "3")]
    job_modify_index: u64,
    #[prost(message, optional, tag = "5")]
    diff: Option<LaterJobDiff>,
    #[prost(map = "string, uint64", tag = "901")]
    later: std::collections::HashMap<String, u64>,
}

/// `JobDiff` with a value of `DiffType` that this version does not know, and a field.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterJobDiff {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    id: String,
    #[prost(double, tag = "902")]
    later: f64,
}

#[tokio::test]
async fn answers_of_a_later_gateway_are_read_as_far_as_they_are_known() {
    let later = LaterPlanJobResponse {
        job_modify_index: 7,
        diff: Some(LaterJobDiff {
            kind: 99,
            id: "web".to_owned(),
            later: 0.5,
        }),
        later: [("a".to_owned(), 1)].into(),
    };
    let gateway = Gateway::start(vec![answer(&later)]).await;
    let client = client(&[&gateway]);
    let plan = client
        .jobs()
        .plan(v1::PlanJobRequest::default())
        .await
        .unwrap();
    assert_eq!(plan.job_modify_index, 7);
    let diff = plan.diff.unwrap();
    assert_eq!(diff.id, "web");
    // The number is kept, and as an enum it is the unknown one.
    assert_eq!(diff.r#type, 99);
    assert_eq!(diff.r#type(), v1::DiffType::Unspecified);
}
