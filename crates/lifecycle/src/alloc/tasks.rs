//! Steps of the tasks of an allocation, one of them or each.

use super::{AllocRunner, Step};
use crate::task::{Context, TaskRunner};

impl AllocRunner {
    /// Passes an answer to its task, unless the attempt is over.
    pub(super) fn answer(
        &mut self,
        step: &mut Step<'_>,
        name: &str,
        attempt: u32,
        then: impl FnOnce(&mut TaskRunner, &mut Context<'_>),
    ) {
        if self
            .state
            .tasks
            .get(name)
            .is_some_and(|task| task.attempt() == attempt)
        {
            self.with_task(step, name, then);
        }
    }

    pub(super) fn with_task(
        &mut self,
        step: &mut Step<'_>,
        name: &str,
        then: impl FnOnce(&mut TaskRunner, &mut Context<'_>),
    ) {
        let (Some(task), Some(spec)) = (self.state.tasks.get_mut(name), self.spec.tasks.get(name))
        else {
            return;
        };
        let mut cx = Context {
            now: step.now,
            name,
            spec,
            effects: step.effects,
            rng: step.rng,
        };
        then(task, &mut cx);
    }

    pub(super) fn each_task(
        &mut self,
        step: &mut Step<'_>,
        mut then: impl FnMut(&mut TaskRunner, &mut Context<'_>),
    ) {
        for (name, task) in &mut self.state.tasks {
            let Some(spec) = self.spec.tasks.get(name) else {
                continue;
            };
            let mut cx = Context {
                now: step.now,
                name,
                spec,
                effects: step.effects,
                rng: step.rng,
            };
            then(task, &mut cx);
        }
    }
}
