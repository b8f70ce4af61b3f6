//! Calls through generated code, without a network: the generated service is the client's channel.

use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status};

use super::codec::{decoded, encoded};
use crate::internal::v1::node_introductions_client::NodeIntroductionsClient;
use crate::internal::v1::node_introductions_server::{NodeIntroductions, NodeIntroductionsServer};
use crate::internal::v1::{
    IntroduceNodeRequest, IntroduceNodeResponse, RenewCertificateRequest, RenewCertificateResponse,
};

const MARK: &str = "mark";

#[derive(Clone, Copy, Debug)]
struct Service;

#[tonic::async_trait]
impl NodeIntroductions for Service {
    /// Answers with the id of the request, and gives its metadata and an extension back.
    async fn introduce(
        &self,
        request: Request<IntroduceNodeRequest>,
    ) -> Result<Response<IntroduceNodeResponse>, Status> {
        let extension = request.extensions().get::<u16>().copied();
        let mark = request.metadata().get(MARK).cloned();
        let mut response = Response::new(IntroduceNodeResponse {
            node_id: request.into_inner().node_id,
            certificate: format!("{extension:?}"),
        });
        if let Some(mark) = mark {
            response.metadata_mut().insert(MARK, mark);
        }
        Ok(response)
    }

    async fn renew(
        &self,
        request: Request<RenewCertificateRequest>,
    ) -> Result<Response<RenewCertificateResponse>, Status> {
        let length = request.into_inner().signing_request.len();
        Err(Status::not_found(format!("{length} bytes")))
    }
}

fn client() -> NodeIntroductionsClient<NodeIntroductionsServer<Service>> {
    NodeIntroductionsClient::new(NodeIntroductionsServer::new(Service))
}

fn introduction(node_id: &str) -> IntroduceNodeRequest {
    IntroduceNodeRequest {
        node_id: node_id.to_owned(),
        ..Default::default()
    }
}

#[tokio::test]
async fn messages_metadata_and_extensions_pass_both_ways() {
    let mut request = Request::new(introduction("n1"));
    let mark = MetadataValue::from_static("m");
    request.metadata_mut().insert(MARK, mark.clone());
    request.extensions_mut().insert(7_u16);
    let response = client().introduce(request).await.unwrap();
    assert_eq!(response.metadata().get(MARK), Some(&mark));
    let answer = response.into_inner();
    assert_eq!(answer.node_id, "n1");
    assert_eq!(answer.certificate, "Some(7)");
}

#[tokio::test]
async fn a_status_passes() {
    let signing_request = vec![1, 2, 3];
    let request = RenewCertificateRequest { signing_request };
    let status = client().renew(request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "3 bytes");
}

#[tokio::test]
async fn both_sides_keep_the_limits_of_messages() {
    let long = introduction(&"n".repeat(100));
    let server = NodeIntroductionsServer::new(Service).max_decoding_message_size(99);
    let mut limited = NodeIntroductionsClient::new(server);
    let status = limited.introduce(long.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);

    let server = NodeIntroductionsServer::new(Service).max_encoding_message_size(99);
    let mut limited = NodeIntroductionsClient::new(server);
    let status = limited.introduce(long.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);

    let mut limited = client().max_decoding_message_size(99);
    let status = limited.introduce(long).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
}

#[test]
fn bytes_of_another_message_are_an_error() {
    let request = introduction("n1");
    let again: IntroduceNodeRequest = decoded(encoded(&request)).unwrap();
    assert_eq!(again, request);
    let cut = encoded(&request).slice(..3);
    let status = decoded::<IntroduceNodeRequest>(cut).unwrap_err();
    assert_eq!(status.code(), Code::Internal);
}
