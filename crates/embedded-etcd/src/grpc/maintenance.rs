//! etcd's Maintenance service: the part that clients and health checks use.

use etcd_client::proto::{
    PbAlarmRequest, PbAlarmResponse, PbDefragmentRequest, PbDefragmentResponse, PbDowngradeRequest,
    PbDowngradeResponse, PbHashKvRequest, PbHashKvResponse, PbHashRequest, PbHashResponse,
    PbMaintenanceService, PbMoveLeaderRequest, PbMoveLeaderResponse, PbSnapshotRequest,
    PbSnapshotResponse, PbStatusRequest, PbStatusResponse,
};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

use crate::run::Handle;

/// The etcd whose behaviour is served, marked as another build of it.
const VERSION: &str = concat!("3.5.30+embedded.", env!("CARGO_PKG_VERSION"));

/// etcd's `AlarmRequest.AlarmAction`: which alarms are there.
const ALARM_GET: i32 = 0;

pub(super) struct MaintenanceService {
    pub(super) handle: Handle,
}

fn not_served<T>(what: &str) -> Result<Response<T>, Status> {
    Err(Status::unimplemented(format!(
        "an embedded etcd does not serve {what}"
    )))
}

#[tonic::async_trait]
impl PbMaintenanceService for MaintenanceService {
    async fn status(
        &self,
        _request: Request<PbStatusRequest>,
    ) -> Result<Response<PbStatusResponse>, Status> {
        let (identity, revision) = self
            .handle
            .read(|machine| (machine.identity(), machine.mvcc().visible()));
        let size = i64::try_from(self.handle.size()).unwrap_or(i64::MAX);
        // There is no raft: each write is an entry, committed and applied in one.
        let index = u64::try_from(revision).unwrap_or(0);
        Ok(Response::new(PbStatusResponse {
            header: Some(identity.header(revision)),
            version: VERSION.to_owned(),
            db_size: size,
            db_size_in_use: size,
            leader: identity.member_id,
            raft_index: index,
            raft_applied_index: index,
            raft_term: identity.raft_term,
            ..PbStatusResponse::default()
        }))
    }

    async fn alarm(
        &self,
        request: Request<PbAlarmRequest>,
    ) -> Result<Response<PbAlarmResponse>, Status> {
        if request.into_inner().action != ALARM_GET {
            return not_served("alarms");
        }
        // Health checks ask whether there are any.
        let header = self
            .handle
            .read(|machine| machine.identity().header(machine.mvcc().visible()));
        Ok(Response::new(PbAlarmResponse {
            header: Some(header),
            alarms: Vec::new(),
        }))
    }

    async fn hash_kv(
        &self,
        request: Request<PbHashKvRequest>,
    ) -> Result<Response<PbHashKvResponse>, Status> {
        let revision = request.into_inner().revision;
        self.handle.read(|machine| {
            let mvcc = machine.mvcc();
            Ok(Response::new(PbHashKvResponse {
                header: Some(machine.identity().header(mvcc.visible())),
                hash: mvcc.hash(revision)?,
                compact_revision: mvcc.compact_revision(),
                // Came with etcd 3.6.
                hash_revision: 0,
            }))
        })
    }

    async fn hash(
        &self,
        _request: Request<PbHashRequest>,
    ) -> Result<Response<PbHashResponse>, Status> {
        not_served("hashes of its file")
    }

    async fn defragment(
        &self,
        _request: Request<PbDefragmentRequest>,
    ) -> Result<Response<PbDefragmentResponse>, Status> {
        Err(Status::unimplemented(
            "an embedded etcd, as in `kafila dev`, needs no defragmentation: it uses its free pages \
             again",
        ))
    }

    type SnapshotStream = Empty<Result<PbSnapshotResponse, Status>>;

    async fn snapshot(
        &self,
        _request: Request<PbSnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        not_served("snapshots")
    }

    async fn move_leader(
        &self,
        _request: Request<PbMoveLeaderRequest>,
    ) -> Result<Response<PbMoveLeaderResponse>, Status> {
        not_served("elections")
    }

    async fn downgrade(
        &self,
        _request: Request<PbDowngradeRequest>,
    ) -> Result<Response<PbDowngradeResponse>, Status> {
        not_served("downgrades")
    }
}
