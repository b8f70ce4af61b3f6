//! Leases for callers that bind keys to them ([`crate::Txn::put_leased`]).

use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::election::lease::Lease;
use crate::error::Error;

impl Client {
    /// Grants a lease of at least `ttl`, in whole seconds; returns its id. etcd counts from here.
    ///
    /// # Errors
    /// etcd has no leader, cannot be reached, or does not answer in time.
    pub async fn grant_lease(&self, ttl: Duration) -> Result<i64, Error> {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let lease = Lease::grant(self, Duration::from_secs(seconds)).await?;
        Ok(lease.id)
    }

    /// Renews a lease once; returns whether there is one.
    ///
    /// # Errors
    /// etcd cannot be reached, or does not answer before `give_up`.
    pub async fn renew_lease(&self, id: i64, give_up: Instant) -> Result<bool, Error> {
        // The time is needed for a series of renewals alone.
        let ttl = Duration::ZERO;
        let renewals = Lease { id, ttl }.open(self, give_up).await?;
        Ok(renewals.is_some())
    }

    /// Revokes a lease, which deletes its keys. A missing lease is an error as well.
    ///
    /// # Errors
    /// There is no such lease, or etcd does not answer.
    pub async fn revoke_lease(&self, id: i64) -> Result<(), Error> {
        let ttl = Duration::ZERO;
        Lease { id, ttl }.revoke(self).await
    }
}
