//! A gateway called by clients of a later version: unknown fields are ignored; an unknown value of an enum
//! and an unknown RPC are errors that say so.

use http::uri::PathAndQuery;
use proto::v1;
use tonic::client::Grpc;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::support::{Suite, ask, job};

/// `ListJobsRequest` with a field that this version does not know.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterListJobsRequest {
    #[prost(message, optional, tag = "1")]
    options: Option<LaterQueryOptions>,
    #[prost(bytes = "vec", tag = "901")]
    later: Vec<u8>,
}

/// `QueryOptions` with a field that this version does not know.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterQueryOptions {
    #[prost(int32, tag = "2")]
    consistency: i32,
    #[prost(string, tag = "5")]
    prefix: String,
    #[prost(map = "string, string", tag = "902")]
    later: std::collections::HashMap<String, String>,
}

async fn list(
    suite: &Suite,
    path: &'static str,
    consistency: i32,
) -> Result<v1::ListJobsResponse, Status> {
    let request = LaterListJobsRequest {
        options: Some(LaterQueryOptions {
            consistency,
            prefix: "web".to_owned(),
            later: [("a".to_owned(), "b".to_owned())].into(),
        }),
        later: vec![7; 300],
    };
    let mut grpc = Grpc::new(suite.channel(0));
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<LaterListJobsRequest, v1::ListJobsResponse>::default();
    let path = PathAndQuery::from_static(path);
    Ok(grpc.unary(ask(request), path, codec).await?.into_inner())
}

#[tokio::test]
async fn requests_of_a_later_client_are_read_as_far_as_they_are_known() {
    let suite = Suite::start(1).await;
    for name in ["web", "other"] {
        let request = v1::RegisterJobRequest {
            job: Some(v1::Job::from(&job(name))),
            ..Default::default()
        };
        suite.jobs(0).register(ask(request)).await.unwrap();
    }
    let found = list(&suite, "/kafila.v1.Jobs/List", 0).await.unwrap();
    let ids: Vec<_> = found.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["web"]);

    // To guess a consistency could return old data.
    let unknown = list(&suite, "/kafila.v1.Jobs/List", 99).await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    assert!(
        unknown.message().contains("options.consistency"),
        "{unknown:?}"
    );
    let missing = list(&suite, "/kafila.v1.Jobs/ListLater", 0)
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::Unimplemented);
}
