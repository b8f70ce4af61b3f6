//! etcd's Cluster service: a cluster of one that never changes.

use etcd_client::proto::{
    PbClusterService, PbMember, PbMemberAddRequest, PbMemberAddResponse, PbMemberListRequest,
    PbMemberListResponse, PbMemberPromoteRequest, PbMemberPromoteResponse, PbMemberRemoveRequest,
    PbMemberRemoveResponse, PbMemberUpdateRequest, PbMemberUpdateResponse,
};
use tonic::{Request, Response, Status};

use super::addresses::Addresses;
use crate::run::Handle;

/// The name of the only member.
const MEMBER_NAME: &str = "embedded";

pub(super) struct ClusterService {
    pub(super) handle: Handle,
    pub(super) addresses: Addresses,
}

fn fixed<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented(
        "an embedded etcd is a cluster of one and stays it",
    ))
}

#[tonic::async_trait]
impl PbClusterService for ClusterService {
    async fn member_list(
        &self,
        _request: Request<PbMemberListRequest>,
    ) -> Result<Response<PbMemberListResponse>, Status> {
        let identity = self.handle.read(crate::machine::Machine::identity);
        Ok(Response::new(PbMemberListResponse {
            // etcd leaves the revision of this header out.
            header: Some(identity.header(0)),
            members: vec![PbMember {
                id: identity.member_id,
                name: MEMBER_NAME.to_owned(),
                peer_ur_ls: Vec::new(),
                client_ur_ls: self.addresses.list(),
                is_learner: false,
            }],
        }))
    }

    async fn member_add(
        &self,
        _request: Request<PbMemberAddRequest>,
    ) -> Result<Response<PbMemberAddResponse>, Status> {
        fixed()
    }

    async fn member_remove(
        &self,
        _request: Request<PbMemberRemoveRequest>,
    ) -> Result<Response<PbMemberRemoveResponse>, Status> {
        fixed()
    }

    async fn member_update(
        &self,
        _request: Request<PbMemberUpdateRequest>,
    ) -> Result<Response<PbMemberUpdateResponse>, Status> {
        fixed()
    }

    async fn member_promote(
        &self,
        _request: Request<PbMemberPromoteRequest>,
    ) -> Result<Response<PbMemberPromoteResponse>, Status> {
        fixed()
    }
}
