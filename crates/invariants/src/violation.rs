//! Violations: facts that do not hold.

use std::fmt;

/// One violation and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The first revision with the violation.
    pub revision: u64,
    pub fact: Fact,
    /// Details, with the ids concerned.
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

/// A fact that must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// A node's live allocations fit into its resources, in every dimension, and into their maximum
    /// number.
    NodeNotOvercommitted,
    /// No two live allocations of a node hold one port.
    PortHeldOnce,
    /// No two live allocations of a node hold one core.
    CoreHeldOnce,
    /// No two live allocations of a node hold one device instance.
    DeviceHeldOnce,
    /// A volume with a single writer has at most one live writer.
    VolumeHasOneWriter,
    /// One live allocation for each name of a job, canaries and unknown ones aside.
    NameUsedOnce,
    /// The replica's running totals equal the sums over the allocations.
    UsageIsTheSum,
    /// The indexes return exactly the matching objects.
    IndexesAreRight,
    /// No live allocation holds a port that its node keeps for itself.
    ReservedPortsAreFree,
    /// The job version that a live allocation runs is kept for as long as its job is.
    VersionIsKept,
    /// An object that has reached an end stays there.
    EndIsFinal,
    /// A node's report on an allocation is replaced only by a later report.
    ReportsInOrder,
    /// A promoted task group stays promoted within its deployment.
    PromotionIsKept,
    /// An allocation's identity (its node, job, group and number) never changes.
    AllocationKeepsItsPlace,
    /// Allocations are preempted only by another job whose priority is at least ten higher.
    VictimsHaveLowerPriority,
    /// Every eviction comes with an evaluation of the victim's job.
    EvictionHasEvaluation,
    /// A job's version goes up by one with each change.
    VersionsCountUp,
    /// A periodic job is launched for later and later times.
    LaunchesGoForward,
    /// Within one leader's term no other process holds its election key.
    OneLeaderATerm,
    /// Of a service with a leader, only the leader writes.
    OneWriterATerm,
    /// Revisions count up, and committed changes stay committed.
    HistoryIsOne,
    /// Every key and every value can be read.
    KeysAreKnown,
    /// An acknowledged request is executed, and undone by users only.
    AcknowledgedIsKept,
    /// A refused request is not executed.
    RefusedIsNotDone,
    /// A request is executed once, however often it is sent.
    DoneOnce,
    /// A new allocation is of a job that is not stopped, on a node that is ready and eligible, and its
    /// ports are free on addresses that the node has.
    PlacedWhereAllowed,
    /// A new allocation names the create index of its job, also when it runs an older version.
    PlacedForItsJob,
    /// A drain ends as complete or canceled, with a record of it.
    DrainsEnd,
    /// A node never acts on a revision lower than one that it has acted on.
    NodesGoForward,
    /// A node that has long been able to reach the cluster-controller through a gateway is not marked
    /// down or disconnected.
    LiveNodesStayUp,
    /// An update replaces no more than `max_parallel` that are not yet healthy.
    UpdatesKeepTheirPace,
    /// No service ends by itself.
    ServicesKeepRunning,
    /// At rest: no deployment is under way.
    DeploymentsEnd,
    /// At rest: every node is ready.
    NodesComeBack,
    /// At rest: every evaluation has ended.
    EvaluationsEnd,
    /// At rest: a job runs exactly the allocations of its counts.
    CountIsMet,
    /// At rest: the ports of services and system jobs are on addresses that their nodes have.
    PortsAreOnTheirNodes,
    /// At rest: every allocation is in its desired state.
    DesiredStateIsReached,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodeNotOvercommitted => "no node is overcommitted",
            Self::PortHeldOnce => "a port is held once",
            Self::CoreHeldOnce => "a core is held once",
            Self::DeviceHeldOnce => "a device is held once",
            Self::VolumeHasOneWriter => "a single-writer volume has one writer",
            Self::NameUsedOnce => "a name is used by one live allocation",
            Self::UsageIsTheSum => "a node's usage is the sum over its allocations",
            Self::IndexesAreRight => "indexes are right",
            Self::ReservedPortsAreFree => "no allocation holds a reserved port",
            Self::VersionIsKept => "the version that an allocation runs is kept",
            Self::EndIsFinal => "an end is final",
            Self::ReportsInOrder => "reports are kept in the order in which they were made",
            Self::PromotionIsKept => "a promotion is kept",
            Self::AllocationKeepsItsPlace => "an allocation keeps its place",
            Self::VictimsHaveLowerPriority => "only lower priorities are preempted",
            Self::EvictionHasEvaluation => "an eviction comes with an evaluation",
            Self::VersionsCountUp => "job versions count up by one",
            Self::LaunchesGoForward => "launches go forward",
            Self::OneLeaderATerm => "one leader a term",
            Self::OneWriterATerm => "one writer a term",
            Self::HistoryIsOne => "there is one history",
            Self::KeysAreKnown => "every key can be read",
            Self::AcknowledgedIsKept => "acknowledged requests are kept",
            Self::RefusedIsNotDone => "refused requests are not carried out",
            Self::DoneOnce => "requests are carried out once",
            Self::PlacedWhereAllowed => "allocations are placed where allowed",
            Self::PlacedForItsJob => "an allocation is placed for its job",
            Self::DrainsEnd => "a drain ends with a record",
            Self::NodesGoForward => "nodes go forward",
            Self::LiveNodesStayUp => "a live node stays up",
            Self::UpdatesKeepTheirPace => "updates keep their pace",
            Self::ServicesKeepRunning => "services keep running",
            Self::DeploymentsEnd => "every deployment ends",
            Self::NodesComeBack => "every node comes back",
            Self::EvaluationsEnd => "every evaluation ends",
            Self::CountIsMet => "a job runs what it asks for",
            Self::PortsAreOnTheirNodes => "ports are on addresses of their nodes",
            Self::DesiredStateIsReached => "allocations reach their desired state",
        })
    }
}
