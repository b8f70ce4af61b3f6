//! The set of ids under one key of an index. Most have one member (the evaluation of a job, its
//! allocation), which then needs no memory of its own.

use imbl::OrdSet;

use crate::map::Map;

/// Ids in order; never empty.
#[derive(Clone, Debug)]
pub(crate) enum IdSet<V: Ord> {
    One(V),
    Many(OrdSet<V>),
}

impl<V: Clone + Ord> IdSet<V> {
    fn contains(&self, id: &V) -> bool {
        match self {
            Self::One(one) => one == id,
            Self::Many(many) => many.contains(id),
        }
    }

    fn insert(&mut self, id: V) {
        match self {
            Self::One(one) if *one == id => {}
            Self::One(one) => *self = Self::Many([one.clone(), id].into_iter().collect()),
            Self::Many(many) => {
                many.insert(id);
            }
        }
    }
}

impl<'a, V: Clone + Ord> IntoIterator for &'a IdSet<V> {
    type Item = &'a V;
    type IntoIter = std::iter::Chain<
        std::option::IntoIter<&'a V>,
        std::iter::Flatten<std::option::IntoIter<&'a OrdSet<V>>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            IdSet::One(one) => (Some(one), None),
            IdSet::Many(many) => (None, Some(many)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

/// Adds `id` to the set under `key`.
pub(crate) fn link<K, V>(index: &mut Map<K, IdSet<V>>, key: K, id: V)
where
    K: Clone + Eq + std::hash::Hash,
    V: Clone + Ord,
{
    // A map that stays as it is keeps sharing its memory with snapshots.
    match index.get(&key) {
        Some(set) if set.contains(&id) => {}
        Some(_) => {
            if let Some(set) = index.get_mut(&key) {
                set.insert(id);
            }
        }
        None => drop(index.insert(key, IdSet::One(id))),
    }
}

/// Removes `id` from the set under `key`, and the set when it was the last.
pub(crate) fn unlink<K, V>(index: &mut Map<K, IdSet<V>>, key: &K, id: &V)
where
    K: Clone + Eq + std::hash::Hash,
    V: Clone + Ord,
{
    let is_empty = match index.get_mut(key) {
        Some(IdSet::One(one)) => one == id,
        Some(IdSet::Many(many)) => {
            many.remove(id);
            many.is_empty()
        }
        None => false,
    };
    if is_empty {
        index.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(index: &Map<u8, IdSet<u8>>, key: u8) -> Vec<u8> {
        index.get(&key).into_iter().flatten().copied().collect()
    }

    #[test]
    fn members_are_in_order_however_many_there_are() {
        let mut index = Map::default();
        link(&mut index, 1, 5);
        link(&mut index, 1, 5);
        assert_eq!(ids(&index, 1), [5]);
        for id in [9, 3, 3, 7] {
            link(&mut index, 1, id);
        }
        assert_eq!(ids(&index, 1), [3, 5, 7, 9]);
        assert_eq!(ids(&index, 2), [0; 0]);
    }

    #[test]
    fn a_set_ends_with_its_last_member() {
        let mut index = Map::default();
        link(&mut index, 1, 5);
        unlink(&mut index, &1, &6);
        unlink(&mut index, &2, &5);
        assert_eq!(ids(&index, 1), [5]);
        link(&mut index, 1, 6);
        unlink(&mut index, &1, &5);
        assert_eq!(ids(&index, 1), [6]);
        unlink(&mut index, &1, &6);
        assert!(index.is_empty());
    }
}
