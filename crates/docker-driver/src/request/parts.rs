//! Members of a request; empty ones are left out.

use std::collections::{BTreeMap, HashMap};

pub(super) fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

pub(super) fn map(texts: &BTreeMap<String, String>) -> Option<HashMap<String, String>> {
    let texts: HashMap<_, _> = texts.clone().into_iter().collect();
    (!texts.is_empty()).then_some(texts)
}
