//! Phases of a task: what they allow, and the last one.

use model::{TaskPhase, Timestamp};

use super::{Phase, TaskRunner};

impl TaskRunner {
    /// Returns whether a requested restart replaces its process.
    pub(crate) fn can_restart(&self) -> bool {
        self.phase == Phase::Running && self.kill.is_none()
    }

    /// Returns whether a process may exist.
    pub(crate) fn may_have_process(&self) -> bool {
        matches!(
            self.phase,
            Phase::Starting | Phase::Recovering { .. } | Phase::Running
        )
    }

    pub(super) fn set_visible_phase(&mut self, phase: TaskPhase) {
        self.visible.phase = phase;
        self.changed = true;
    }

    pub(super) fn die(&mut self, wall: Timestamp, failed: bool) {
        self.phase = Phase::Dead;
        self.kill = None;
        self.visible.failed |= failed;
        self.visible.finished_at = wall;
        self.set_visible_phase(TaskPhase::Dead);
    }
}
