//! The connection to one member of etcd, for requests that are about this member.

use std::fmt;

use etcd_client::MaintenanceClient;

use crate::quota::QuotaReader;

/// One member. Cheap to clone; it connects on first use.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) endpoint: String,
    pub(crate) client: MaintenanceClient,
    pub(crate) quota: QuotaReader,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.endpoint)
    }
}
