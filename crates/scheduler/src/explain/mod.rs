//! Why each node has an allocation of an evaluation's job, or has not, and what would change that.
//!
//! For people, on demand: [`explain`] asks every node of a snapshot, one task group at a time, and
//! keeps every reason instead of the first. It looks at the cluster as it is now and as the
//! scheduler would leave it, so it may say something else than the evaluation did in its time.
//!
//! In reading order: [`obstacle`] is one thing that keeps a group off a node; `inquiry` says which
//! allocation nodes are asked about; `survey` asks them; [`way`] is whether others would make way on
//! a full node; `tally` adds up what they say; [`standing`] is what is there, and what waits.

mod inquiry;
pub mod obstacle;
mod standing;
mod survey;
mod tally;
pub mod way;

use model::{Evaluation, Indexed, Job, NodeId, NodeScore, Timestamp};
use placement::Requirements;
use state::Snapshot;

use inquiry::Inquiry;
pub use inquiry::Question;
use model::SchedulerConfiguration;
pub use obstacle::{DriverFault, Holder, Obstacle, Verdict};
use standing::Standing;
pub use standing::{Held, HeldBy};
use survey::{Answer, Asked, KeepsApart, Survey};
use tally::Tally;
use way::Asker;
pub use way::{Victim, Way, Ways};

/// What nodes say of an evaluation's job.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The revision it speaks of.
    pub index: u64,
    /// The job's version that is looked at; `None`: the job is gone.
    pub job_version: Option<u64>,
    /// Why there are no groups; `None`: there are.
    pub nothing_wanted: Option<&'static str>,
    /// In the order of the job.
    pub groups: Vec<GroupExplanation>,
}

/// What nodes say of one task group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupExplanation {
    pub name: String,
    /// How many the job wants; of a job that is to be everywhere, on each node.
    pub wanted: u32,
    /// How many the evaluation placed, or updated last, living or not.
    pub placed: u32,
    /// How many live now, whoever placed them.
    pub live: u32,
    /// How many have done their work; only of batch and sysbatch jobs.
    pub done: u32,
    /// How many have failed and are placed again when their time has come.
    pub waiting: u32,
    /// When the first of those is placed again.
    pub waits_until: Option<Timestamp>,
    /// The deployment that keeps more from being placed.
    pub held: Option<Held>,
    /// How many would find no place now.
    pub missing: u32,
    /// How many would get one now.
    pub would_place: u32,
    pub question: Question,
    /// The version of the job whose group it is: an older one may still be placed.
    pub job_version: u64,
    /// All nodes, each counted once.
    pub counts: Counts,
    /// Whether others would make way on those that are exhausted and lack nothing else, but for the
    /// chosen one.
    pub ways: Ways,
    /// Where the allocation is or would go; `None`: nowhere, or everywhere.
    pub chosen: Option<Chosen>,
    /// Those with the most nodes first; at most [`CLASSES_MAX`].
    pub classes: Vec<ClassExplanation>,
    pub classes_left_out: u32,
    /// How many nodes those have.
    pub nodes_left_out: u32,
    /// The node that would need the smallest change; `None`: all could take it.
    pub nearest: Option<NodeExplanation>,
    /// The node that was asked for.
    pub node: Option<NodeExplanation>,
}

/// How many classes of nodes are told apart in one group's explanation.
pub const CLASSES_MAX: usize = 32;

/// How many reasons are told apart in one class: values of a property may be as many as nodes.
pub const REASONS_MAX: usize = 16;

/// How many nodes came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub out_of_scope: u32,
    pub unavailable: u32,
    pub filtered: u32,
    pub exhausted: u32,
    pub outscored: u32,
    pub chosen: u32,
}

impl Counts {
    pub fn of(&self, verdict: Verdict) -> u32 {
        match verdict {
            Verdict::OutOfScope => self.out_of_scope,
            Verdict::Unavailable => self.unavailable,
            Verdict::Filtered => self.filtered,
            Verdict::Exhausted => self.exhausted,
            Verdict::Outscored => self.outscored,
            Verdict::Chosen => self.chosen,
        }
    }

    fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::OutOfScope => &mut self.out_of_scope,
            Verdict::Unavailable => &mut self.unavailable,
            Verdict::Filtered => &mut self.filtered,
            Verdict::Exhausted => &mut self.exhausted,
            Verdict::Outscored => &mut self.outscored,
            Verdict::Chosen => &mut self.chosen,
        };
        *count += 1;
    }

    pub fn total(&self) -> u32 {
        Verdict::ALL.iter().map(|verdict| self.of(*verdict)).sum()
    }
}

/// The nodes of one class, as operators name classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExplanation {
    /// Empty: they have none.
    pub class: String,
    pub counts: Counts,
    /// How many of the group are on them when all is done.
    pub holds: u32,
    /// What keeps the group off, by verdict, the most frequent first; at most [`REASONS_MAX`].
    pub reasons: Vec<Reason>,
    pub reasons_left_out: u32,
    /// The best of those that are not good enough.
    pub best: Option<Outscored>,
}

/// One reason, and how many nodes have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub verdict: Verdict,
    pub reason: String,
    pub nodes: u32,
    /// How much is missing where the least is, and where the most; `None`: it cannot be counted.
    pub missing: Option<Missing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub least: u64,
    pub most: u64,
    /// As in `MHz`.
    pub unit: &'static str,
}

/// A node that could take one, with how good it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Outscored {
    pub node_name: String,
    pub score: NodeScore,
    /// How far it is below the chosen one, in thousandths; below 0: it is better by now. `None`: the
    /// chosen one could not take it any more.
    pub gap_per_mille: Option<i32>,
}

/// Where an allocation is or would go.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    pub node_id: NodeId,
    pub node_name: String,
    pub class: String,
    /// `None`: it could not take it any more.
    pub score: Option<NodeScore>,
    /// Taken whatever its score: the predecessor's data is there.
    pub keeps_disk: bool,
    /// They would have to make way first.
    pub victims: Vec<Victim>,
}

/// What one node says.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeExplanation {
    pub node_id: NodeId,
    pub node_name: String,
    pub class: String,
    pub verdict: Verdict,
    /// How many of the group are on it when all is done.
    pub holds: u32,
    /// All of them have to go before it takes one.
    pub obstacles: Vec<Obstacle>,
    /// Whether others would make way instead; `None`: there is room, it is not about room alone, or
    /// nobody of another job is there.
    pub way: Option<Way>,
    /// How good it would be, once others have made way if they have to; `None`: it cannot take one.
    pub score: Option<NodeScore>,
}

/// What is asked for an evaluation's sake.
#[derive(Clone, Copy, Debug)]
pub struct Inquest<'a> {
    pub eval: &'a Indexed<Evaluation>,
    /// A node that is told of in any case.
    pub node: Option<NodeId>,
    pub now: Timestamp,
    /// Near-ties are chosen between by it, as when scheduling.
    pub seed: u64,
}

/// Asks every node of `snapshot` what it says of each group of an evaluation's job. An evaluation
/// that waits for its time is looked at as if that had come.
///
/// The same arguments give the same answer. Takes as long as scheduling the job and looking at
/// every node once a group; `examples/explanations.rs` measures it.
pub fn explain(snapshot: &Snapshot, inquest: &Inquest<'_>) -> Explanation {
    explain_with(snapshot.scheduler_config(), snapshot, inquest)
}

/// As [`explain`], the way the operator might choose.
pub fn explain_with(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    inquest: &Inquest<'_>,
) -> Explanation {
    let eval = inquest.eval;
    let inquest = &Inquest {
        now: inquest.now.max(eval.value.wait_until),
        ..*inquest
    };
    let job = snapshot.job(&eval.value.job).map(AsRef::as_ref);
    let mut explanation = Explanation {
        index: snapshot.index(),
        job_version: job.map(|job| job.value.version),
        nothing_wanted: nothing_wanted(job),
        groups: Vec::new(),
    };
    let Some(job) = job.filter(|_| explanation.nothing_wanted.is_none()) else {
        return explanation;
    };
    // What the evaluation was made for does not matter: the job is looked at as it is.
    let mut asked = eval.clone();
    asked.value.triggered_by = model::TriggeredBy::JobRegister;
    let plan = crate::schedule_with(config, snapshot, &asked, inquest.now, inquest.seed).plan;
    let requirements = crate::requirements(snapshot, Some(job));
    let wanted = inquiry::wanted(
        snapshot,
        &asked.value,
        job,
        &requirements,
        inquest.now,
        inquest.seed,
    );
    for group in &job.value.task_groups {
        let inquiry = Inquiry::new(snapshot, &eval.value, job, group, &wanted, &plan);
        let found = group_explanation(config, snapshot, inquest, &plan, &inquiry);
        explanation.groups.push(found);
    }
    explanation
}

fn nothing_wanted(job: Option<&Indexed<Job>>) -> Option<&'static str> {
    match job {
        None => Some("the job is gone"),
        Some(job) if job.value.stop => Some("the job is stopped"),
        Some(_) => None,
    }
}

fn group_explanation(
    config: &SchedulerConfiguration,
    snapshot: &Snapshot,
    inquest: &Inquest<'_>,
    plan: &model::Plan,
    inquiry: &Inquiry<'_>,
) -> GroupExplanation {
    let requirements = Requirements::new(&inquiry.job.value, inquiry.group).looking_in(snapshot);
    let algorithm = config.algorithm(&inquiry.job.value.node_pool);
    let asker = Asker::new(config, snapshot, &inquest.eval.value, plan, inquiry);
    let mut cluster = survey::cluster(snapshot, plan, inquiry, inquest.seed);
    let mut ask = |keeps_apart| -> Vec<_> {
        let survey = Survey::new(
            snapshot,
            plan,
            inquiry,
            &requirements,
            Asked {
                algorithm,
                asker: &asker,
                keeps_apart,
                now: inquest.now,
            },
            &mut cluster,
        );
        survey.answers().collect()
    };
    let mut answers = ask(KeepsApart::Everybody);
    let may_share = inquiry.generation.may_share(&requirements);
    if may_share && !has_place(inquiry, &answers) {
        answers = ask(KeepsApart::WhoMayStay);
    }
    let tally = Tally::new(inquiry, answers, inquest.node);
    let (eval, name) = (&inquest.eval.value, &inquiry.group.name);
    let standing = Standing::new(snapshot, eval, &inquiry.job.value, name, inquest.now);
    let job = snapshot.job(&eval.job);
    GroupExplanation {
        placed: standing.placed,
        live: standing.live,
        done: standing.done,
        waiting: standing.waiting,
        waits_until: standing.waits_until,
        held: job.and_then(|job| standing::held(snapshot, job, name)),
        ..tally.explanation(inquiry)
    }
}

/// Tells whether the answers leave a place for the allocation, and where it is if it has one.
fn has_place(inquiry: &Inquiry<'_>, answers: &[Answer<'_>]) -> bool {
    let mut free = answers.iter().filter(|answer| answer.obstacles.is_empty());
    match inquiry.home {
        Some(home) => free.any(|answer| answer.node.id == home),
        None => free.next().is_some(),
    }
}
