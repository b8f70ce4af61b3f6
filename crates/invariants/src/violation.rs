//! A fact that does not hold.

use std::fmt;

/// One thing found wrong, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The revision at which it first did not hold.
    pub revision: u64,
    pub fact: Fact,
    /// What was found instead, with the ids to look for.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "revision {}: {}: {}",
            self.revision, self.fact, self.found
        )
    }
}

/// What must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// A node's live allocations fit into what it offers, in every dimension, and are not too many.
    NodeNotOvercommitted,
    /// No two live allocations of a node hold one port.
    PortHeldOnce,
    /// No two live allocations of a node hold one core.
    CoreHeldOnce,
    /// No two live allocations of a node hold one device instance.
    DeviceHeldOnce,
    /// Who wants to write to a volume alone does, as far as live allocations go.
    VolumeWrittenAlone,
    /// One live allocation for each name of a job, canaries and unknown ones aside.
    NameUsedOnce,
    /// The replica's running totals are what a sum over the allocations gives.
    UsageIsTheSum,
    /// Everything that can be looked up is found, and nothing else.
    IndexesAreRight,
    /// No live allocation holds a port that its node keeps for itself.
    ReservedPortsAreFree,
    /// The job version that a live allocation runs is kept for as long as its job is.
    VersionIsKept,
    /// An object that has reached an end stays there.
    EndIsFinal,
    /// What a node tells of an allocation is replaced only by what it told later.
    ReportsInOrder,
    /// A task group that was promoted stays so as long as it is in its deployment.
    PromotionIsKept,
    /// What an allocation is (its node, job, group and number) never changes.
    AllocationKeepsItsPlace,
    /// Allocations make way only for another job whose priority is at least ten higher.
    OnlyTheLessImportantMakeWay,
    /// Whoever is evicted has its job looked at: the evaluation comes with the eviction.
    EvictionIsFollowedUp,
    /// A job's version goes up by one with each change.
    VersionsCountUp,
    /// A periodic job is launched for later and later times.
    LaunchesGoForward,
    /// Within one leader's term nobody else holds its election key.
    OneLeaderATerm,
    /// Of a service that has a leader, nobody else writes.
    OneWriterATerm,
    /// Revisions count up, and what was written stays written.
    HistoryIsOne,
    /// Every key and every value can be read.
    KeysAreKnown,
    /// What a user was told is done is done, and is not undone but by a user.
    AcknowledgedIsKept,
    /// What a user was told is refused is not done.
    RefusedIsNotDone,
    /// What is asked for once is done once, however often it is sent.
    DoneOnce,
    /// A new allocation is of a job that is not stopped, on a node that is ready and eligible.
    PlacedWhereAllowed,
    /// A drain ends as complete or canceled, and says so.
    DrainsEnd,
    /// A node never acts on a revision lower than one that it has acted on.
    NodesGoForward,
    /// An update replaces no more than `max_parallel` that are not yet healthy.
    UpdatesKeepTheirPace,
    /// No service ends by itself.
    ServicesGoOn,
    /// At rest: no deployment is under way.
    DeploymentsEnd,
    /// At rest: every node is ready.
    NodesComeBack,
    /// At rest: every evaluation has ended.
    EvaluationsEnd,
    /// At rest: a job runs exactly what it asks for.
    CountIsMet,
    /// At rest: what is to run runs, and what is to end has ended.
    NodesDoAsTold,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodeNotOvercommitted => "no node is overcommitted",
            Self::PortHeldOnce => "a port is held once",
            Self::CoreHeldOnce => "a core is held once",
            Self::DeviceHeldOnce => "a device is held once",
            Self::VolumeWrittenAlone => "who wants to write to a volume alone does",
            Self::NameUsedOnce => "a name is used by one live allocation",
            Self::UsageIsTheSum => "a node's usage is the sum over its allocations",
            Self::IndexesAreRight => "indexes are right",
            Self::ReservedPortsAreFree => "no allocation holds a reserved port",
            Self::VersionIsKept => "the version that an allocation runs is kept",
            Self::EndIsFinal => "an end is final",
            Self::ReportsInOrder => "reports are kept in the order in which they were made",
            Self::PromotionIsKept => "a promotion is kept",
            Self::AllocationKeepsItsPlace => "an allocation keeps its place",
            Self::OnlyTheLessImportantMakeWay => "only the less important make way",
            Self::EvictionIsFollowedUp => "an eviction is followed up",
            Self::VersionsCountUp => "job versions count up by one",
            Self::LaunchesGoForward => "launches go forward",
            Self::OneLeaderATerm => "one leader a term",
            Self::OneWriterATerm => "one writer a term",
            Self::HistoryIsOne => "there is one history",
            Self::KeysAreKnown => "every key can be read",
            Self::AcknowledgedIsKept => "what is acknowledged is kept",
            Self::RefusedIsNotDone => "what is refused is not done",
            Self::DoneOnce => "what is asked for once is done once",
            Self::PlacedWhereAllowed => "nothing is placed that may not be there",
            Self::DrainsEnd => "a drain ends and says how",
            Self::NodesGoForward => "nodes go forward",
            Self::UpdatesKeepTheirPace => "updates keep their pace",
            Self::ServicesGoOn => "services go on",
            Self::DeploymentsEnd => "every deployment ends",
            Self::NodesComeBack => "every node comes back",
            Self::EvaluationsEnd => "every evaluation ends",
            Self::CountIsMet => "a job runs what it asks for",
            Self::NodesDoAsTold => "nodes do as they are told",
        })
    }
}
