//! One request of a history, and its answer.

use etcd_client::proto::{
    PbCompactionRequest, PbCompactionResponse, PbDeleteRequest, PbDeleteResponse, PbHashKvResponse,
    PbLeaseGrantResponse, PbLeaseKeepAliveResponse, PbLeaseLeasesResponse, PbLeaseRevokeResponse,
    PbLeaseTimeToLiveResponse, PbPutRequest, PbPutResponse, PbRangeRequest, PbRangeResponse,
    PbResponseHeader, PbTxnRequest, PbTxnResponse,
};
use tonic::Code;

use crate::support::raw::Create;

/// One request. Leases are named by ids of the test's own; see [`super::side::Side`].
#[derive(Clone, Debug)]
pub(super) enum Step {
    Range(PbRangeRequest),
    Put(PbPutRequest),
    Delete(PbDeleteRequest),
    Txn(PbTxnRequest),
    Compact(PbCompactionRequest),
    /// `id` is sent if it was `chosen`, otherwise the server chooses.
    Grant {
        id: i64,
        chosen: bool,
        ttl: i64,
    },
    Revoke {
        id: i64,
    },
    KeepAlive {
        id: i64,
    },
    TimeToLive {
        id: i64,
        keys: bool,
    },
    Leases,
    HashKv {
        revision: i64,
    },
    Watch {
        stream: usize,
        create: Create,
    },
    CancelWatch {
        stream: usize,
        watch_id: i64,
    },
    Progress {
        stream: usize,
    },
    /// Watch everything there is to hear, so that both sides can be compared.
    Settle,
}

/// The answer to a step, in comparable form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Range(PbRangeResponse),
    Put(PbPutResponse),
    Delete(PbDeleteResponse),
    Txn(PbTxnResponse),
    Compact(PbCompactionResponse),
    Grant(PbLeaseGrantResponse),
    Revoke(PbLeaseRevokeResponse),
    KeepAlive(PbLeaseKeepAliveResponse),
    TimeToLive(PbLeaseTimeToLiveResponse),
    Leases(PbLeaseLeasesResponse),
    HashKv(PbHashKvResponse),
    Error(Code, String),
    /// Answered on a stream, and compared there.
    Streamed,
}

impl Answer {
    /// The revision of its header.
    pub(super) fn revision(&self) -> Option<i64> {
        self.header().map(|header| header.revision)
    }

    fn header(&self) -> Option<&PbResponseHeader> {
        match self {
            Self::Range(response) => response.header.as_ref(),
            Self::Put(response) => response.header.as_ref(),
            Self::Delete(response) => response.header.as_ref(),
            Self::Txn(response) => response.header.as_ref(),
            Self::Compact(response) => response.header.as_ref(),
            Self::Grant(response) => response.header.as_ref(),
            Self::Revoke(response) => response.header.as_ref(),
            Self::KeepAlive(response) => response.header.as_ref(),
            Self::TimeToLive(response) => response.header.as_ref(),
            Self::Leases(response) => response.header.as_ref(),
            Self::HashKv(response) => response.header.as_ref(),
            Self::Error(..) | Self::Streamed => None,
        }
    }
}
