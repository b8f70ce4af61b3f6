//! The states of an allocation's tasks.

use std::ops::{Deref, DerefMut, Index};

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::exact;
use crate::task_state::TaskState;

/// Task → state. A sorted list: the nodes of a tree have room for eleven tasks, and most groups have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskStates(#[serde(deserialize_with = "exact::map")] LiteMap<String, TaskState>);

impl TaskStates {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for TaskStates {
    type Target = LiteMap<String, TaskState>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for TaskStates {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Panics without the task, as maps do.
impl Index<&str> for TaskStates {
    type Output = TaskState;

    fn index(&self, task: &str) -> &TaskState {
        let state = self.0.get(task);
        state.unwrap_or_else(|| panic!("no state of the task {task:?}"))
    }
}

impl FromIterator<(String, TaskState)> for TaskStates {
    fn from_iter<I: IntoIterator<Item = (String, TaskState)>>(states: I) -> Self {
        Self(states.into_iter().collect())
    }
}

impl<const N: usize> From<[(String, TaskState); N]> for TaskStates {
    fn from(states: [(String, TaskState); N]) -> Self {
        states.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::TaskStates;
    use crate::task_state::TaskState;

    #[test]
    fn tasks_are_in_order_and_without_spare_capacity() {
        let text = r#"{"b":1,"a":1}"#.replace(
            '1',
            &serde_json::to_string(&TaskState::default()).unwrap_or_default(),
        );
        let states: TaskStates = serde_json::from_str(&text).expect("it is a map");
        assert_eq!(states.keys().collect::<Vec<_>>(), ["a", "b"]);
        let pairs = states.0.into_tuple_vec();
        assert_eq!(pairs.capacity(), pairs.len());
    }
}
