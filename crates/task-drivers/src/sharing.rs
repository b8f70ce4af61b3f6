//! Which cores tasks that share cpu may run on: those that no task has for itself.

use std::collections::BTreeMap;

use crate::driver::TaskId;

/// The cores that tasks have for themselves, as these come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// Only those that have some.
    taken: BTreeMap<TaskId, Vec<u16>>,
}

impl Sharing {
    /// Notes that a task is to have `cores` for itself; tells whether that changes anything.
    pub(crate) fn take(&mut self, id: &TaskId, cores: &[u16]) -> bool {
        if cores.is_empty() {
            return false;
        }
        let before = self.taken.insert(id.clone(), cores.to_vec());
        before.as_deref() != Some(cores)
    }

    /// Notes that a task is gone; tells whether that changes anything.
    pub(crate) fn give_back(&mut self, id: &TaskId) -> bool {
        self.taken.remove(id).is_some()
    }

    /// Returns which of `all` cores are left to those that share.
    ///
    /// Shape: in the order of `all`. Never empty unless `all` is: when every core is somebody's, tasks
    /// that share run anywhere, as there is nowhere else and a group without cores runs nothing.
    pub(crate) fn left(&self, all: &[u16]) -> Vec<u16> {
        let is_taken = |id: &u16| self.taken.values().flatten().any(|taken| taken == id);
        let left: Vec<_> = all.iter().copied().filter(|id| !is_taken(id)).collect();
        if left.is_empty() { all.to_vec() } else { left }
    }
}

#[cfg(test)]
mod tests {
    use model::AllocId;

    use super::*;

    fn id(number: u128) -> TaskId {
        TaskId {
            alloc_id: AllocId::from_random(number),
            task: "web".into(),
            attempt: 1,
        }
    }

    #[test]
    fn who_shares_gets_what_nobody_has_for_himself() {
        let all = [0, 1, 2, 3];
        let mut sharing = Sharing::default();
        assert_eq!(sharing.left(&all), all);
        assert!(!sharing.take(&id(1), &[]), "it shares itself");
        assert!(sharing.take(&id(1), &[0, 2]));
        assert!(!sharing.take(&id(1), &[0, 2]), "it is found again");
        assert_eq!(sharing.left(&all), [1, 3]);
        // A core that the agent may not use any more.
        assert!(sharing.take(&id(2), &[3, 9]));
        assert_eq!(sharing.left(&all), [1]);
        assert!(sharing.give_back(&id(1)));
        assert!(!sharing.give_back(&id(1)));
        assert_eq!(sharing.left(&all), [0, 1, 2]);
    }

    #[test]
    fn somewhere_has_to_be_left() {
        let mut sharing = Sharing::default();
        sharing.take(&id(1), &[0]);
        sharing.take(&id(2), &[1]);
        assert_eq!(sharing.left(&[0, 1]), [0, 1]);
        sharing.give_back(&id(2));
        assert_eq!(sharing.left(&[0, 1]), [1]);
    }

    /// Two attempts of one task may overlap for a moment: the later one keeps the cores.
    #[test]
    fn attempts_of_a_task_are_told_apart() {
        let (first, mut second) = (id(1), id(1));
        second.attempt = 2;
        let mut sharing = Sharing::default();
        sharing.take(&first, &[0]);
        sharing.take(&second, &[0]);
        sharing.give_back(&first);
        assert_eq!(sharing.left(&[0, 1]), [1]);
    }
}
