//! The status of etcd and its members: the input of a maintenance decision.

use model::Timestamp;
use model::etcd::EtcdMember;

/// The status of etcd at one moment.
#[derive(Clone, Copy, Debug)]
pub struct EtcdStatus<'a> {
    /// A clock without steps.
    pub now: Timestamp,
    /// The wall clock, for the quiet hours.
    pub wall: Timestamp,
    /// The members that answered.
    pub members: &'a [EtcdMember],
    /// The number of all members.
    pub expected: usize,
}

impl EtcdStatus<'_> {
    pub(super) fn is_out_of_space(&self) -> bool {
        self.members.iter().any(|member| member.is_out_of_space)
    }

    pub(super) fn all_answer(&self) -> bool {
        self.members.len() == self.expected
    }
}
