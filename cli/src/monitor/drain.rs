//! Monitor of a drain, until all draining allocations have left the node.
//!
//! [`DrainWatch`] is the state machine, without I/O; [`DrainFollow`] calls the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::v1;
use service_kit::Clock;
use tokio::time::Instant;

use super::line::Output;
use super::reminder::Reminder;
use super::screen::Screen;
use crate::alloc_state::has_ended;
use crate::connection::{Blocking, Connection};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::printable;
use crate::render::Style;
use crate::retries::{self, MAX_RETRIES};

/// Longest wait before the node is read again if no allocation has changed.
const WAIT: Duration = Duration::from_secs(2);

/// Minimum time between two requests.
const PACE: Duration = Duration::from_millis(200);

/// The state of a drain as printed so far.
#[derive(Debug, Default)]
pub(crate) struct DrainWatch {
    has_begun: bool,
    /// Allocation ID → last seen state.
    allocs: BTreeMap<String, Seen>,
    reminder: Reminder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    status: String,
    is_marked: bool,
    is_stopping: bool,
}

impl From<&v1::Allocation> for Seen {
    fn from(alloc: &v1::Allocation) -> Self {
        let transition = alloc.desired_transition.unwrap_or_default();
        Self {
            status: alloc.client_status.clone(),
            is_marked: transition.migrate,
            is_stopping: alloc.desired_status != "run",
        }
    }
}

impl DrainWatch {
    /// Processes a node and its allocations; returns the output, and the exit at the end.
    pub(crate) fn step(
        &mut self,
        style: &Style,
        node: &v1::Node,
        mut allocs: Vec<v1::Allocation>,
    ) -> (Vec<Output>, Option<Exit>) {
        let mut outputs = Vec::new();
        allocs.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        if !self.has_begun {
            outputs.push(Output::Step(format!(
                "Monitoring node {:?}",
                style.id(&node.id)
            )));
        }
        for alloc in &allocs {
            self.look_at(style, alloc, node.drain.as_ref(), &mut outputs);
        }
        self.has_begun = true;
        let exit = ending(style, node, &allocs, &mut outputs);
        let has_news = !outputs.is_empty();
        let reason = exit.is_none().then(|| wait_reason(style, node, &allocs));
        outputs.extend(self.reminder.step(style.times.now_ns, has_news, reason));
        (outputs, exit)
    }

    fn look_at(
        &mut self,
        style: &Style,
        alloc: &v1::Allocation,
        drain: Option<&v1::DrainStrategy>,
        outputs: &mut Vec<Output>,
    ) {
        let now = Seen::from(alloc);
        let before = self.allocs.insert(alloc.id.clone(), now.clone());
        // Allocations that ended before the watch are not reported.
        if before.is_none() && has_ended(alloc) {
            return;
        }
        let mut say = |what: &str| {
            let text = format!("Alloc {:?} {what}", style.id(&alloc.id));
            outputs.push(Output::Detail(text));
        };
        let was = |is: fn(&Seen) -> bool| before.as_ref().is_some_and(is);
        let moves = now.is_marked || now.is_stopping;
        if before.is_none() && drain.is_some() && !moves {
            let what = if is_ignored(alloc, drain) {
                "stays: the drain ignores system jobs"
            } else {
                "waits for migration"
            };
            say(&format!("({}) {what}", printable(&alloc.name)));
        }
        if now.is_marked && !was(|seen| seen.is_marked) {
            say("marked for migration");
        }
        if now.is_stopping && !was(|seen| seen.is_stopping) && !has_ended(alloc) {
            say("draining");
        }
        if let Some(before) = before.as_ref().filter(|before| before.status != now.status) {
            say(&format!("status {} -> {}", before.status, now.status));
        }
    }
}

/// Returns the exit of an ended drain, and prints its result.
fn ending(
    style: &Style,
    node: &v1::Node,
    allocs: &[v1::Allocation],
    outputs: &mut Vec<Output>,
) -> Option<Exit> {
    if node.drain.is_some() {
        return None;
    }
    let id = style.id(&node.id);
    let status = node.last_drain.as_ref().map(|last| last.status.as_str());
    let exit = match status {
        Some("complete") => {
            outputs.push(Output::Step(format!("Drain complete for node {id}")));
            let left = allocs.iter().filter(|alloc| !has_ended(alloc)).count();
            outputs.push(Output::Step(match left {
                0 => format!("All allocations on node {id:?} have stopped"),
                1 => format!("1 allocation of a system job stays on node {id:?}"),
                _ => format!("{left} allocations of system jobs stay on node {id:?}"),
            }));
            Exit::Success
        }
        Some("canceled") => {
            outputs.push(Output::Step(format!("Drain of node {id:?} was canceled")));
            Exit::Failure
        }
        _ => {
            outputs.push(Output::Step(format!(
                "No drain strategy set for node {id:?}"
            )));
            Exit::Success
        }
    };
    Some(exit)
}

/// Returns the reason of a drain that has not ended.
fn wait_reason(style: &Style, node: &v1::Node, allocs: &[v1::Allocation]) -> String {
    let id = style.id(&node.id);
    let stays =
        |alloc: &&v1::Allocation| !has_ended(alloc) && !is_ignored(alloc, node.drain.as_ref());
    let left = allocs.iter().filter(stays).count();
    format!(
        "allocations still on the node: {left}. 'kafila node status {id}' shows them, 'kafila node drain \
         -enable -force {id}' stops them at once"
    )
}

/// Tells whether the drain leaves the allocation on the node.
fn is_ignored(alloc: &v1::Allocation, drain: Option<&v1::DrainStrategy>) -> bool {
    let ignores = drain
        .and_then(|drain| drain.spec)
        .is_some_and(|spec| spec.ignore_system_jobs);
    ignores && alloc.job_type == "system"
}

/// A monitor with its dependencies.
pub(crate) struct DrainFollow<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a Clock,
    /// Has the time of the last answer.
    pub(crate) style: Style,
    pub(crate) screen: Screen,
}

impl DrainFollow<'_> {
    /// Watches until the drain is over.
    ///
    /// Cancel-safe: it only reads.
    ///
    /// # Errors
    /// The gateway does not answer, the node is gone, or standard output is closed or full.
    pub(crate) async fn run(mut self, node_id: &str) -> Result<Exit, Error> {
        let mut watch = DrainWatch::default();
        let mut backoff = retries::backoff();
        let mut rng = self.connection.ids().rng();
        let (mut after, mut unanswered) = (0, 0);
        loop {
            let asked_at = Instant::now();
            let (allocs, node, index) = match self.look(node_id, after).await {
                Ok(answer) => answer,
                Err(error) if error.is_transient() && unanswered < MAX_RETRIES => {
                    unanswered += 1;
                    tokio::time::sleep(backoff.next(&mut rng)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            (after, unanswered) = (index, 0);
            backoff.reset();
            self.style.times.now_ns = self.clock.now();
            let (outputs, exit) = watch.step(&self.style, &node, allocs);
            for output in &outputs {
                self.screen.show(&self.style.times, output)?;
            }
            if let Some(exit) = exit {
                return Ok(exit);
            }
            tokio::time::sleep_until(asked_at + PACE).await;
        }
    }

    /// Reads the node after its allocations, so that a completed drain is shown with the final ones.
    async fn look(
        &self,
        node_id: &str,
        after: u64,
    ) -> Result<(Vec<v1::Allocation>, v1::Node, u64), Error> {
        let blocking = Blocking { after, wait: WAIT };
        let (_, index) = self
            .connection
            .node_allocations_after(node_id, blocking)
            .await?;
        let node = self.connection.node(node_id).await?;
        let allocs = self.connection.node_allocations(node_id).await?;
        Ok((allocs, node, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::output::colour::Colour;
    use crate::render::tests::style;

    fn draining() -> v1::Node {
        v1::Node {
            drain: Some(v1::DrainStrategy::default()),
            last_drain: Some(last("draining")),
            ..fixtures::node()
        }
    }

    fn last(status: &str) -> v1::LastDrain {
        v1::LastDrain {
            status: status.to_owned(),
            ..v1::LastDrain::default()
        }
    }

    fn alloc(desired: &str, client: &str, migrate: bool) -> v1::Allocation {
        v1::Allocation {
            desired_status: desired.to_owned(),
            client_status: client.to_owned(),
            desired_transition: Some(v1::DesiredTransition {
                migrate,
                ..v1::DesiredTransition::default()
            }),
            ..fixtures::alloc()
        }
    }

    /// Returns the printed lines for a node and one allocation.
    fn said(watch: &mut DrainWatch, node: &v1::Node, alloc: &v1::Allocation) -> Vec<String> {
        let (outputs, _) = watch.step(&style(false), node, vec![alloc.clone()]);
        let lines = outputs
            .iter()
            .filter_map(|output| output.line("T", Colour::Off));
        lines.map(|line| line.trim_start().to_owned()).collect()
    }

    #[test]
    fn each_step_of_an_allocation_is_said_once() {
        let mut watch = DrainWatch::default();
        let id = style(false).id(&fixtures::alloc().id);
        let node = draining();
        let first = said(&mut watch, &node, &alloc("run", "running", false));
        assert_eq!(
            first,
            [
                format!("==> T: Monitoring node {:?}", style(false).id(&node.id)),
                format!(
                    "T: Alloc {id:?} ({}) waits for migration",
                    fixtures::alloc().name
                ),
            ]
        );
        let marked = alloc("run", "running", true);
        let line = |what: &str| format!("T: Alloc {id:?} {what}");
        assert_eq!(
            said(&mut watch, &node, &marked),
            [line("marked for migration")]
        );
        assert!(said(&mut watch, &node, &marked).is_empty());
        let stopping = alloc("stop", "running", true);
        assert_eq!(said(&mut watch, &node, &stopping), [line("draining")]);
        let ended = alloc("stop", "complete", true);
        assert_eq!(
            said(&mut watch, &node, &ended),
            [line("status running -> complete")]
        );
        let done = v1::Node {
            drain: None,
            last_drain: Some(last("complete")),
            ..node
        };
        let node_id = style(false).id(&done.id);
        let expected = [
            format!("==> T: Drain complete for node {node_id}"),
            format!("==> T: All allocations on node {node_id:?} have stopped"),
        ];
        assert_eq!(said(&mut watch, &done, &ended), expected);
    }

    #[test]
    fn a_system_job_that_the_drain_ignores_does_not_wait() {
        let system = v1::Allocation {
            job_type: "system".to_owned(),
            ..alloc("run", "running", false)
        };
        for (ignore_system_jobs, expected) in [
            (true, "stays: the drain ignores system jobs"),
            (false, "waits for migration"),
        ] {
            let spec = v1::DrainSpec {
                ignore_system_jobs,
                ..v1::DrainSpec::default()
            };
            let drain = v1::DrainStrategy {
                spec: Some(spec),
                ..v1::DrainStrategy::default()
            };
            let node = v1::Node {
                drain: Some(drain),
                ..draining()
            };
            let lines = said(&mut DrainWatch::default(), &node, &system);
            assert!(lines[1].ends_with(expected), "{lines:?}");
            let service = alloc("run", "running", false);
            let lines = said(&mut DrainWatch::default(), &node, &service);
            assert!(lines[1].ends_with("waits for migration"), "{lines:?}");
        }
    }

    #[test]
    fn a_drain_without_news_says_how_many_allocations_are_left() {
        let mut watch = DrainWatch::default();
        let (node, waiting) = (draining(), vec![alloc("run", "running", false)]);
        let mut at = |seconds: u64| {
            let mut style = style(false);
            style.times.now_ns += seconds * 1_000_000_000;
            let (outputs, _) = watch.step(&style, &node, waiting.clone());
            let lines = outputs.iter().filter_map(|it| it.line("T", Colour::Off));
            lines.collect::<Vec<_>>().concat()
        };
        at(0);
        assert_eq!(at(9), "");
        let line = at(11);
        for part in ["for 11s", "still on the node: 1.", "-force"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn allocations_that_ended_before_the_drain_are_not_reported() {
        let mut watch = DrainWatch::default();
        let lines = said(&mut watch, &draining(), &alloc("stop", "complete", true));
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn the_exit_code_depends_on_the_end_of_the_drain() {
        for (status, expected) in [
            (Some("complete"), Exit::Success),
            (Some("canceled"), Exit::Failure),
            (None, Exit::Success),
        ] {
            let node = v1::Node {
                last_drain: status.map(last),
                ..fixtures::node()
            };
            let running = vec![alloc("run", "running", false)];
            let (outputs, exit) = DrainWatch::default().step(&style(false), &node, running);
            assert_eq!(exit, Some(expected), "{outputs:?}");
        }
        let (_, exit) = DrainWatch::default().step(&style(false), &draining(), Vec::new());
        assert_eq!(exit, None, "the controller has not looked yet");
    }
}
