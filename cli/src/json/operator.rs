//! What only Kafila has.

use proto::v1;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Leader<'a> {
    service: &'a str,
    address: &'a str,
    replica: &'a str,
    term: u64,
}

impl<'a> From<&'a v1::Leader> for Leader<'a> {
    fn from(leader: &'a v1::Leader) -> Self {
        Self {
            service: &leader.service,
            address: &leader.address,
            replica: &leader.replica,
            term: leader.term,
        }
    }
}
