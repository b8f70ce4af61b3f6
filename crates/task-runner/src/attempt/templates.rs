//! A task's templates: rendered before its start, and again when their data changes.
//!
//! **Invariant**: after the start, a template that waits or fails changes nothing: the task keeps its file.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use lifecycle::{Event, StartFailure};
use model::RestartScope;
use model::template::{ChangeMode, Template};
use rand::RngExt as _;
use service_kit::clock::sleep_until_deadline;
use task_drivers::Driver;
use template_watch::{Debounce, Snapshot, Watch};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::warn;

use super::{Attempt, hook};
use crate::data_source::Requester;
use crate::script;
use crate::sources::Systems;
use crate::task_shared::LoginService;
use crate::templates::{self, Input, Outcome, Rerendering};

/// Messages about a template that waits come at most this often. Source: Nomad's public behaviour.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(3);
/// The wait of templates without one of their own. Source: Nomad's defaults.
const WAIT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(240));

impl Attempt {
    /// Renders the task's templates, if it has some. Returns the variables of those with `env`. Waits while
    /// data is missing. `variables` are those of the hooks before, which templates see.
    pub(super) async fn render_templates(
        &self,
        variables: &BTreeMap<String, String>,
        answers: &mpsc::Sender<Event>,
    ) -> Result<BTreeMap<String, String>, StartFailure> {
        let Some(input) = self.template_input(variables)? else {
            return Ok(BTreeMap::new());
        };
        self.shared.show(variables);
        let mut told: Option<(String, Instant)> = None;
        loop {
            let known = self.shared.watch().map(|watch| (watch.subscribe(), watch));
            let snapshot = known
                .as_ref()
                .map(|(_, watch)| watch.snapshot())
                .unwrap_or_default();
            let rendering = self.render(&input, snapshot).await?;
            let (mut seen, watch) = match known {
                Some(known) => known,
                None if rendering.asked.is_empty() => {
                    return Ok(rendering.outcome.into_variables());
                }
                None => {
                    let watch = self.watch_or_begin();
                    (watch.subscribe(), watch)
                }
            };
            // A new key is due at once, and its answer is a change of `seen`.
            watch.want(&rendering.asked).map_err(hook)?;
            let missing = match rendering.outcome {
                Outcome::Written(variables) => return Ok(variables),
                Outcome::Waiting(missing) => missing,
            };
            let systems = Systems {
                vault: self.shared.login(LoginService::Vault).keeper().is_some(),
                consul: self.context.consul.is_some(),
            };
            let message = templates::waiting(&missing, &watch.problems(), systems);
            let is_new = told.as_ref().is_none_or(|(last, _)| *last != message);
            let soonest = told.as_ref().map(|(_, at)| *at + MESSAGE_INTERVAL);
            // The first answers are a moment away.
            let due = soonest.unwrap_or_else(|| {
                Instant::now() + templates::first_message_delay(&missing, systems)
            });
            tokio::select! {
                _ = seen.changed() => continue,
                () = sleep_until(due), if is_new => {}
                () = self.cancel.cancelled() => return Err(stopped()),
            }
            self.tell(answers, message.clone()).await;
            told = Some((message, Instant::now()));
            // Said once; a change of the reason says it anew.
            tokio::select! {
                _ = seen.changed() => {}
                () = self.cancel.cancelled() => return Err(stopped()),
            }
        }
    }

    /// Renders the templates again while the task runs, when their data has changed.
    pub(super) async fn follow_templates(
        &self,
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) -> Infallible {
        let Some((input, watch)) = self.followed().await else {
            return std::future::pending().await;
        };
        let started = Instant::now();
        let mut seen = watch.subscribe();
        let mut data = seen.borrow_and_update().data;
        let mut debounces: Vec<Debounce> = input.templates.iter().map(debounce).collect();
        // Data may have changed between the rendering and now.
        debounces
            .iter_mut()
            .for_each(|debounce| debounce.changed(Duration::ZERO));
        loop {
            let once = |position: &usize| input.templates[*position].once;
            let followed = (0..debounces.len()).filter(|position| !once(position));
            let next = followed
                .filter_map(|position| debounces[position].ready_at())
                .min();
            tokio::select! {
                changed = seen.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                    let now = seen.borrow_and_update().data;
                    if now != data {
                        data = now;
                        let elapsed = started.elapsed();
                        debounces.iter_mut().for_each(|debounce| debounce.changed(elapsed));
                    }
                }
                () = sleep_until_deadline(next.map(|at| started + at)) => {
                    let now = started.elapsed();
                    let ready = debounces.iter_mut().map(|debounce| debounce.take(now));
                    let ready: Vec<bool> = ready.zip(&input.templates).map(|(it, of)| it && !of.once).collect();
                    let again = self.rerender(&input, watch.snapshot(), ready).await;
                    if let Err(problem) = watch.want(&again.asked) {
                        warn!(id = %self.id, problem, "look-ups of templates");
                    }
                    for problem in again.problems {
                        self.tell(answers, format!("{problem}. The task keeps its file")).await;
                    }
                    self.react_to_templates(&input, &again.written, driver, answers).await;
                }
            }
        }
    }

    /// Returns the templates of a running task, if they look data up.
    async fn followed(&self) -> Option<(Arc<Input>, Arc<Watch>)> {
        let input = self.template_input(&self.shared.shown()).ok()??;
        if let Some(watch) = self.shared.watch() {
            return Some((input, watch));
        }
        let none = vec![false; input.templates.len()];
        let first = self.rerender(&input, Snapshot::default(), none).await;
        if first.asked.is_empty() {
            return None;
        }
        let watch = self.watch_or_begin();
        watch.want(&first.asked).ok()?;
        Some((input, watch))
    }

    /// Returns the look-ups of the task's templates; the first call begins them.
    fn watch_or_begin(&self) -> Arc<Watch> {
        let task = self.task().ok().map(|(_, task)| task);
        let blocks = (
            task.and_then(|task| task.vault.as_ref()),
            task.and_then(|task| self.consul_block(task)),
        );
        self.shared
            .watch_or_begin(&self.context, self.requester(), blocks)
    }

    fn requester(&self) -> Requester {
        Requester {
            alloc_id: self.id.alloc_id,
            task: self.id.task.clone(),
            namespace: self.assignment.job.namespace.clone(),
        }
    }

    fn template_input(
        &self,
        variables: &BTreeMap<String, String>,
    ) -> Result<Option<Arc<Input>>, StartFailure> {
        let (_, task) = self.task()?;
        // A node without storage simulates its tasks.
        let Some(dirs) = self.dirs(task).filter(|_| !task.templates.is_empty()) else {
            return Ok(None);
        };
        let facts = self.facts();
        let env = self.env(&facts)?;
        let mut rendered = task.templates.clone();
        for template in &mut rendered {
            template.source = env.interpolate(&template.source);
            template.destination = env.interpolate(&template.destination);
            if let Some(script) = &mut template.change_script {
                script.command = env.interpolate(&script.command);
                for arg in &mut script.args {
                    *arg = env.interpolate(arg);
                }
            }
        }
        let mut seen = env.for_templates();
        seen.extend(variables.clone());
        Ok(Some(Arc::new(Input {
            templates: rendered,
            dirs,
            env: seen,
            namespace: self.assignment.job.namespace.clone(),
            region: self.assignment.job.region.clone(),
        })))
    }

    async fn render(
        &self,
        input: &Arc<Input>,
        snapshot: Snapshot,
    ) -> Result<templates::Rendering, StartFailure> {
        let (input, now) = (Arc::clone(input), self.context.clocks.wall());
        let rendering = blocking::spawn(move || templates::render(&input, now, snapshot));
        rendering
            .await
            .unwrap_or_else(|error| Err(hook(format!("the rendering of templates ended: {error}"))))
    }

    async fn rerender(
        &self,
        input: &Arc<Input>,
        snapshot: Snapshot,
        ready: Vec<bool>,
    ) -> Rerendering {
        let (input, now) = (Arc::clone(input), self.context.clocks.wall());
        let rendering = blocking::spawn(move || templates::rerender(&input, now, snapshot, &ready));
        rendering.await.unwrap_or_default()
    }

    /// Restarts the task once, or sends it each signal once and runs the scripts, after a random part of the
    /// longest splay.
    async fn react_to_templates(
        &self,
        input: &Input,
        written: &[usize],
        driver: &dyn Driver,
        answers: &mpsc::Sender<Event>,
    ) {
        let changed: Vec<&Template> = written
            .iter()
            .map(|position| &input.templates[*position])
            .collect();
        let acting = |template: &&&Template| template.change_mode != ChangeMode::Noop;
        let Some(splay) = changed
            .iter()
            .filter(acting)
            .map(|template| template.splay)
            .max()
        else {
            return;
        };
        let share: f64 = self.context.ids.rng().random();
        sleep(splay.mul_f64(share)).await;
        if let Some(template) = changed
            .iter()
            .find(|template| template.change_mode == ChangeMode::Restart)
        {
            let scope = RestartScope::Task(self.id.task.clone());
            let reason = format!(
                "The data of template {:?} has changed",
                template.destination
            );
            let _ = answers.send(Event::Restart { scope, reason }).await;
            return;
        }
        let mut sent = Vec::new();
        for template in changed {
            let destination = &template.destination;
            let reaction = match template.change_mode {
                ChangeMode::Signal if !sent.contains(&&template.change_signal) => {
                    sent.push(&template.change_signal);
                    self.send_signal(&template.change_signal, driver).await
                }
                ChangeMode::Script => self.run_script(template, driver).await,
                _ => continue,
            };
            let message = match &reaction {
                Ok(done) => format!("Template {destination:?} has changed: {done}"),
                Err(problem) => format!("Template {destination:?} has changed, but {problem}"),
            };
            self.tell(answers, message).await;
            let script = template.change_script.as_ref();
            if reaction.is_err()
                && template.change_mode == ChangeMode::Script
                && script.is_some_and(|script| script.fail_on_error)
            {
                self.fail(answers, destination).await;
                return;
            }
        }
    }

    async fn send_signal(&self, signal: &str, driver: &dyn Driver) -> Result<String, String> {
        match driver.signal(&self.id, signal).await {
            Ok(()) => Ok(format!("sent {signal}")),
            Err(error) => Err(format!(
                "{signal} could not be sent: {}",
                service_kit::run::chain(&error)
            )),
        }
    }

    /// Runs the script of a template inside the task. Its output is dropped, because it may quote a secret of
    /// the template.
    async fn run_script(&self, template: &Template, driver: &dyn Driver) -> Result<String, String> {
        let Some(script) = &template.change_script else {
            return Err("it has no change_script".to_owned());
        };
        let command = &script.command;
        let line: Vec<String> = std::iter::once(command)
            .chain(&script.args)
            .cloned()
            .collect();
        match script::run(driver, &self.id, &line, script.timeout).await {
            Ok(ran) if ran.code == 0 => Ok(format!("ran {command}")),
            Ok(ran) => Err(format!("{command} failed with exit code {}", ran.code)),
            Err(reason) => Err(format!("{command} could not be run: {reason}")),
        }
    }

    /// Ends the task as failed.
    async fn fail(&self, answers: &mpsc::Sender<Event>, destination: &str) {
        let failed = Event::Failed {
            task: self.id.task.clone(),
            attempt: self.id.attempt,
            reason: format!(
                "The script of template {destination:?} failed, and its fail_on_error is set"
            ),
        };
        let _ = answers.send(failed).await;
    }

    async fn tell(&self, answers: &mpsc::Sender<Event>, message: String) {
        let task = self.id.task.clone();
        let _ = answers.send(Event::TemplateMessage { task, message }).await;
    }
}

fn debounce(template: &Template) -> Debounce {
    let (min, max) = template.wait.map_or(WAIT, |wait| (wait.min, wait.max));
    Debounce::new(min, max)
}

fn stopped() -> StartFailure {
    StartFailure {
        recoverable: false,
        ..hook("stopped while a template waited for data".to_owned())
    }
}
