//! Aggregates the answers of nodes by class and in total.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{NodeId, NodeScore};

use crate::explain::blocker::{PlacementBlocker, Verdict};
use crate::explain::explanation::{
    CLASSES_MAX, Chosen, ClassExplanation, Counts, GroupExplanation, Missing, NodeExplanation,
    Outscored, REASONS_MAX, Reason,
};
use crate::explain::node_checks::Answer;
use crate::explain::preemption::{PreemptionCounts, PreemptionOutcome};
use crate::explain::probe::{Probe, Question};
use crate::rank::score::{Parts, thousandths};

/// The answers of all nodes with their verdicts.
pub(super) struct Tally<'a> {
    answers: Vec<(Verdict, Answer<'a>)>,
    /// Position among the answers.
    chosen: Option<usize>,
    asked_for: Option<NodeId>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        probe: &Probe<'_>,
        answers: Vec<Answer<'a>>,
        asked_for: Option<NodeId>,
    ) -> Self {
        let is_system = probe.question == Question::Everywhere;
        let chosen = match probe.chosen_node {
            _ if is_system => None,
            Some(chosen_node) => answers
                .iter()
                .position(|answer| answer.node.id == chosen_node),
            None => best(&answers),
        };
        let verdict = |(position, answer): (usize, Answer<'a>)| {
            let is_full = probe.full.contains(&answer.node.id);
            let has_it = is_system && answer.holds > 0 && !is_full;
            let first = answer.blockers.iter().map(PlacementBlocker::verdict).min();
            let verdict = match first {
                _ if Some(position) == chosen || has_it => Verdict::Chosen,
                Some(verdict) => verdict,
                None if is_system => Verdict::Chosen,
                None => Verdict::Outscored,
            };
            (verdict, answer)
        };
        Self {
            answers: answers.into_iter().enumerate().map(verdict).collect(),
            chosen,
            asked_for,
        }
    }

    pub(super) fn explanation(&self, probe: &Probe<'_>) -> GroupExplanation {
        let mut counts = Counts::default();
        let mut preemption = PreemptionCounts::default();
        for (verdict, answer) in &self.answers {
            counts.add(*verdict);
            let outcome = answer.preemption.as_ref();
            if let Some(outcome) = outcome.filter(|_| *verdict == Verdict::Exhausted) {
                preemption.add(outcome);
            }
        }
        let mut classes = self.classes();
        let left_out = classes.split_off(classes.len().min(CLASSES_MAX));
        let mut answers = self.answers.iter();
        let asked_for = answers.find(|(_, answer)| Some(answer.node.id) == self.asked_for);
        GroupExplanation {
            name: probe.group.name.clone(),
            wanted: probe.group.count,
            placed: 0,
            live: 0,
            done: 0,
            waiting: 0,
            waits_until: None,
            hold: None,
            missing: probe.missing,
            would_place: probe.would_place,
            question: probe.question,
            job_version: probe.job.value.version,
            counts,
            preemption,
            chosen: self.chosen(probe),
            classes,
            classes_left_out: small(left_out.len()),
            nodes_left_out: left_out.iter().map(|class| class.counts.total()).sum(),
            nearest: self.nearest(),
            node: asked_for.map(|(verdict, answer)| node_explanation(*verdict, answer)),
        }
    }

    fn chosen(&self, probe: &Probe<'_>) -> Option<Chosen> {
        let (_, answer) = self.answers.get(self.chosen?)?;
        Some(Chosen {
            node_id: answer.node.id,
            node_name: answer.node.name.clone(),
            class: answer.node.node_class.clone(),
            score: score(answer),
            keeps_disk: probe.keeps_disk,
            victims: match &answer.preemption {
                Some(PreemptionOutcome::Possible { victims }) => victims.clone(),
                _ => Vec::new(),
            },
        })
    }

    /// Returns the node that has the lowest removal cost, of equals the first by name; `None` if all nodes in
    /// the job's scope are suitable.
    fn nearest(&self) -> Option<NodeExplanation> {
        let verdicts = || self.answers.iter().map(|(verdict, _)| *verdict);
        let misses_in_scope =
            verdicts().any(|verdict| Verdict::OutOfScope < verdict && verdict < Verdict::Outscored);
        if !misses_in_scope && verdicts().any(|verdict| verdict >= Verdict::Outscored) {
            return None;
        }
        let misses = self.answers.iter();
        let misses = misses.filter(|(verdict, _)| *verdict < Verdict::Outscored);
        let removal_cost = |answer: &Answer<'_>| -> f64 {
            answer
                .blockers
                .iter()
                .map(PlacementBlocker::removal_cost)
                .sum()
        };
        let nearest = misses.min_by(|(_, left), (_, right)| {
            let by_cost = removal_cost(left).total_cmp(&removal_cost(right));
            by_cost.then_with(|| left.node.name.cmp(&right.node.name))
        });
        nearest.map(|(verdict, answer)| node_explanation(*verdict, answer))
    }

    /// Returns all classes, those with the most nodes first.
    fn classes(&self) -> Vec<ClassExplanation> {
        let mut by_class = BTreeMap::<&str, Vec<&(Verdict, Answer<'a>)>>::new();
        for answer in &self.answers {
            let class = by_class.entry(&answer.1.node.node_class);
            class.or_default().push(answer);
        }
        let classes = by_class.into_iter();
        let mut classes: Vec<_> = classes
            .map(|(class, answers)| self.class(class, &answers))
            .collect();
        classes.sort_by_key(|class| Reverse(class.counts.total()));
        classes
    }

    fn class(&self, class: &str, answers: &[&(Verdict, Answer<'a>)]) -> ClassExplanation {
        let mut counts = Counts::default();
        let mut reasons = BTreeMap::<(Verdict, String), Reason>::new();
        let mut best: Option<(&Answer<'a>, &Parts)> = None;
        for (verdict, answer) in answers {
            counts.add(*verdict);
            let that_count = answer.blockers.iter();
            for blocker in that_count.filter(|blocker| blocker.verdict() == *verdict) {
                count(&mut reasons, *verdict, blocker);
            }
            if *verdict == Verdict::Outscored
                && let Some(parts) = &answer.parts
                && best.is_none_or(|best| is_better((answer, parts), best))
            {
                best = Some((answer, parts));
            }
        }
        let mut reasons: Vec<_> = reasons.into_values().collect();
        reasons.sort_by_key(|reason| (reason.verdict, Reverse(reason.nodes)));
        let left_out = reasons.split_off(reasons.len().min(REASONS_MAX));
        ClassExplanation {
            class: class.to_owned(),
            counts,
            holds: answers.iter().map(|(_, answer)| answer.holds).sum(),
            reasons,
            reasons_left_out: small(left_out.len()),
            best: best.map(|(answer, parts)| self.outscored(answer, parts)),
        }
    }

    fn outscored(&self, answer: &Answer<'a>, parts: &Parts) -> Outscored {
        let winner = self.chosen.and_then(|chosen| self.answers.get(chosen));
        let winner = winner.and_then(|(_, answer)| answer.parts.as_ref());
        let score = node_score(answer.node.id, parts);
        Outscored {
            node_name: answer.node.name.clone(),
            gap_per_mille: winner.map(|winner| thousandths(winner.score()) - score.per_mille),
            score,
        }
    }
}

/// Returns the position of the best suitable node.
fn best(answers: &[Answer<'_>]) -> Option<usize> {
    let mut best: Option<(usize, (&Answer<'_>, &Parts))> = None;
    for (position, answer) in answers.iter().enumerate() {
        let Some(parts) = &answer.parts else { continue };
        if best.is_none_or(|(_, best)| is_better((answer, parts), best)) {
            best = Some((position, (answer, parts)));
        }
    }
    best.map(|(position, _)| position)
}

/// Orders by room without preemption, then by score, then by name.
fn is_better(one: (&Answer<'_>, &Parts), other: (&Answer<'_>, &Parts)) -> bool {
    let has_room = |answer: &Answer<'_>| answer.blockers.is_empty();
    let by_room = has_room(one.0).cmp(&has_room(other.0));
    let by_score = one.1.score().total_cmp(&other.1.score());
    let by_name = || other.0.node.name.cmp(&one.0.node.name);
    by_room.then(by_score).then_with(by_name).is_gt()
}

fn count(
    reasons: &mut BTreeMap<(Verdict, String), Reason>,
    verdict: Verdict,
    blocker: &PlacementBlocker,
) {
    let text = blocker.reason();
    let missing = blocker.missing().map(|(amount, unit)| Missing {
        least: amount,
        most: amount,
        unit,
    });
    let reason = reasons.entry((verdict, text.clone()));
    let reason = reason.or_insert(Reason {
        verdict,
        reason: text,
        nodes: 0,
        missing,
    });
    reason.nodes += 1;
    if let (Some(known), Some(one)) = (&mut reason.missing, missing) {
        known.least = known.least.min(one.least);
        known.most = known.most.max(one.most);
    }
}

fn node_explanation(verdict: Verdict, answer: &Answer<'_>) -> NodeExplanation {
    NodeExplanation {
        node_id: answer.node.id,
        node_name: answer.node.name.clone(),
        class: answer.node.node_class.clone(),
        verdict,
        holds: answer.holds,
        blockers: answer.blockers.clone(),
        preemption: answer.preemption.clone(),
        score: score(answer),
    }
}

fn score(answer: &Answer<'_>) -> Option<NodeScore> {
    let parts = answer.parts.as_ref()?;
    Some(node_score(answer.node.id, parts))
}

fn node_score(node_id: NodeId, parts: &Parts) -> NodeScore {
    crate::rank::metrics::node_score(node_id, parts)
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
