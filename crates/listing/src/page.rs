//! Pages of ordered lists.
//!
//! A page ends with the key of the first item that is not on it; the next page begins at that key
//! or after it, so an item deleted in between breaks nothing.
//! Source: Nomad's public behaviour.

use std::collections::BinaryHeap;
use std::fmt::Display;
use std::str::FromStr;

use model::FieldErrors;

/// The sort key of a list's items.
pub trait PageKey: Ord + Clone {
    /// Returns the key as a token, which is opaque to callers.
    fn to_token(&self) -> String;
    /// Parses a token; `None`: it is not one of this kind.
    fn from_token(token: &str) -> Option<Self>;
}

/// Create index, then id: oldest first.
impl<I: Ord + Clone + Display + FromStr> PageKey for (u64, I) {
    fn to_token(&self) -> String {
        format!("{}.{}", self.0, self.1)
    }

    fn from_token(token: &str) -> Option<Self> {
        let (index, id) = token.split_once('.')?;
        Some((index.parse().ok()?, id.parse().ok()?))
    }
}

/// Namespace, then id.
impl PageKey for model::JobKey {
    fn to_token(&self) -> String {
        format!("{}.{}", self.namespace, self.job_id)
    }

    fn from_token(token: &str) -> Option<Self> {
        // A namespace has no full stop in it.
        let (namespace, job_id) = token.split_once('.')?;
        Some(Self::new(namespace, job_id))
    }
}

/// Namespace, then name, then node.
impl PageKey for model::VolumeKey {
    fn to_token(&self) -> String {
        format!("{}.{}.{}", self.namespace, self.node_id, self.name)
    }

    fn from_token(token: &str) -> Option<Self> {
        // Neither a namespace nor an id has a full stop in it; a name may.
        let (namespace, rest) = token.split_once('.')?;
        let (node_id, name) = rest.split_once('.')?;
        Some(Self {
            namespace: namespace.into(),
            name: name.into(),
            node_id: node_id.parse().ok()?,
        })
    }
}

/// Namespace, then id.
impl PageKey for model::CsiVolumeKey {
    fn to_token(&self) -> String {
        format!("{}.{}", self.namespace, self.id)
    }

    fn from_token(token: &str) -> Option<Self> {
        // A namespace has no full stop in it; an id may.
        let (namespace, id) = token.split_once('.')?;
        Some(Self::new(namespace, id))
    }
}

/// A name.
impl PageKey for String {
    fn to_token(&self) -> String {
        self.clone()
    }

    fn from_token(token: &str) -> Option<Self> {
        Some(token.to_owned())
    }
}

impl PageKey for model::NodeId {
    fn to_token(&self) -> String {
        self.to_string()
    }

    fn from_token(token: &str) -> Option<Self> {
        token.parse().ok()
    }
}

/// Variables are listed by the store, so a page ends with the key of its last variable, and the next page
/// begins after it.
impl PageKey for model::VariableKey {
    fn to_token(&self) -> String {
        format!("{}/{}", self.namespace, self.path)
    }

    fn from_token(token: &str) -> Option<Self> {
        // A namespace has no slash in it.
        let (namespace, path) = token.split_once('/')?;
        Some(Self::new(namespace, path))
    }
}

/// Parses the token in `field`; `None`: it is empty, and the list begins.
///
/// # Errors
/// The token does not come from a page of this list.
pub fn key_of<K: PageKey>(field: &str, token: &str) -> Result<Option<K>, FieldErrors> {
    if token.is_empty() {
        return Ok(None);
    }
    if let Some(key) = K::from_token(token) {
        return Ok(Some(key));
    }
    let mut errors = FieldErrors::default();
    errors.push(
        field,
        format!(
            "{token:?} is not a token of this list: pass meta.next_token of the last answer, or leave \
             it out to start over"
        ),
    );
    Err(errors)
}

/// Returns the number of items on a page of a list that is never returned as a whole: `max` for 0, and
/// for more than it.
pub fn limited(per_page: u32, max: usize) -> usize {
    match usize::try_from(per_page) {
        Ok(0) | Err(_) => max,
        Ok(per_page) => per_page.min(max),
    }
}

/// The page that a request asks for.
#[derive(Clone, Debug)]
pub struct Page<K> {
    /// 0: everything.
    per_page: usize,
    from: Option<K>,
    is_reversed: bool,
}

impl<K: PageKey> Page<K> {
    /// # Errors
    /// `next_token` does not come from a page of this list.
    pub fn new(per_page: u32, next_token: &str) -> Result<Self, FieldErrors> {
        Ok(Self {
            per_page: usize::try_from(per_page).unwrap_or(usize::MAX),
            from: key_of("options.next_token", next_token)?,
            is_reversed: false,
        })
    }

    /// Lists from the last item to the first if `is_reversed`.
    #[must_use]
    pub fn reversed(self, is_reversed: bool) -> Self {
        Self {
            is_reversed,
            ..self
        }
    }

    /// Tells whether an earlier page has the item.
    fn is_past(&self, key: &K) -> bool {
        match &self.from {
            None => false,
            Some(from) if self.is_reversed => key > from,
            Some(from) => key < from,
        }
    }

    /// Returns the page's items in order, and the token of the next page; empty: there is none.
    ///
    /// Takes time for all items, and memory for one page.
    pub fn of<T>(&self, items: impl Iterator<Item = (K, T)>) -> (Vec<T>, String) {
        let is_reversed = self.is_reversed;
        let items = items.filter(|(key, _)| !self.is_past(key));
        let entries = items.map(|(key, item)| Entry {
            key,
            item,
            is_reversed,
        });
        if self.per_page == 0 {
            let mut all: Vec<Entry<K, T>> = entries.collect();
            all.sort();
            return (
                all.into_iter().map(|entry| entry.item).collect(),
                String::new(),
            );
        }
        // The first items seen so far, the last of them on top: one more than the page has.
        let mut smallest = BinaryHeap::new();
        for entry in entries {
            if smallest.len() <= self.per_page {
                smallest.push(entry);
            } else if let Some(mut largest) = smallest.peek_mut()
                && entry < *largest
            {
                *largest = entry;
            }
        }
        let next = (smallest.len() > self.per_page)
            .then(|| smallest.pop())
            .flatten();
        let token = next.map_or_else(String::new, |entry| entry.key.to_token());
        (
            smallest
                .into_sorted_vec()
                .into_iter()
                .map(|entry| entry.item)
                .collect(),
            token,
        )
    }
}

struct Entry<K, T> {
    key: K,
    item: T,
    /// The same in all entries that are compared.
    is_reversed: bool,
}

impl<K: Ord, T> PartialEq for Entry<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Ord, T> Eq for Entry<K, T> {}

impl<K: Ord, T> PartialOrd for Entry<K, T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, T> Ord for Entry<K, T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let order = self.key.cmp(&other.key);
        if self.is_reversed {
            order.reverse()
        } else {
            order
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{EvalId, JobKey, NodeId, VariableKey};

    use super::*;

    fn items(count: u64) -> Vec<((u64, EvalId), u64)> {
        // Unordered, as in a hash map.
        let mut items: Vec<_> = (0..count)
            .map(|n| ((n / 3, EvalId::from_random(u128::from(n))), n))
            .collect();
        items.reverse();
        items
    }

    #[test]
    fn pages_put_together_are_the_whole_list_from_its_end_as_well() {
        let page = |per_page, token: &str| Page::new(per_page, token).unwrap().reversed(true);
        let (mut all, _) = Page::new(0, "").unwrap().of(items(50).into_iter());
        all.reverse();
        assert_eq!(page(0, "").of(items(50).into_iter()).0, all);
        for per_page in [1, 7, 49, 50, 51] {
            let mut put_together = Vec::new();
            let mut token = String::new();
            loop {
                let (items, next) = page(per_page, &token).of(items(50).into_iter());
                put_together.extend(items);
                if next.is_empty() {
                    break;
                }
                token = next;
            }
            assert_eq!(put_together, all, "{per_page} a page");
        }
    }

    #[test]
    fn pages_put_together_are_the_whole_list() {
        let (all, token) = Page::new(0, "").unwrap().of(items(100).into_iter());
        assert_eq!((all.len(), token.as_str()), (100, ""));
        for per_page in [1, 7, 99, 100, 101] {
            let (mut together, mut token) = (Vec::new(), String::new());
            loop {
                let page = Page::new(per_page, &token).unwrap();
                let (items, next) = page.of(items(100).into_iter());
                assert!(items.len() <= per_page as usize);
                together.extend(items);
                token = next;
                if token.is_empty() {
                    break;
                }
            }
            assert_eq!(together, all, "{per_page} a page");
        }
    }

    #[test]
    fn scenario_084_an_item_deleted_between_pages_breaks_nothing() {
        let page = |token: &str, of: Vec<u64>| {
            let page = Page::new(2, token).unwrap();
            page.of(of.into_iter().map(|n| ((n, EvalId::from_random(0)), n)))
        };
        let (first, token) = page("", vec![1, 2, 3, 4, 5]);
        assert_eq!(first.len(), 2);
        let (second, _) = page(&token, vec![1, 2, 4, 5]);
        assert_eq!(second, [4, 5]);

        let (first, token) = Page::new(10, "").unwrap().of(items(30).into_iter());
        let mut left = items(30);
        left.retain(|(key, _)| key.to_token() != token);
        let (second, _) = Page::new(10, &token).unwrap().of(left.into_iter());
        assert_eq!(second.len(), 10);
        assert!(!first.iter().any(|item| second.contains(item)));
    }

    #[test]
    fn a_limited_page_is_never_the_whole_list() {
        for (per_page, expected) in [(0, 100), (1, 1), (99, 99), (100, 100), (u32::MAX, 100)] {
            assert_eq!(limited(per_page, 100), expected, "{per_page}");
        }
    }

    #[test]
    fn a_token_of_another_list_is_refused() {
        let errors = Page::<(u64, EvalId)>::new(10, "default.web").unwrap_err();
        assert_eq!(errors.0[0].field, "options.next_token");
        assert!(Page::<NodeId>::new(10, "x").is_err());
    }

    #[test]
    fn keys_survive_their_tokens() {
        let job = JobKey::new("default", "team.web/1");
        assert_eq!(JobKey::from_token(&job.to_token()), Some(job));
        let variable = VariableKey::new("default", "app/web/key");
        assert_eq!(
            VariableKey::from_token(&variable.to_token()),
            Some(variable)
        );
        let eval = (7, EvalId::from_random(9));
        assert_eq!(<(u64, EvalId)>::from_token(&eval.to_token()), Some(eval));
    }
}
