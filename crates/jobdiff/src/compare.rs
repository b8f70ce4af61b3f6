//! Comparison of two shapes.

use std::collections::BTreeMap;

use crate::shape::{Field, Shape};
use crate::tree::{DiffType, FieldDiff, ObjectDiff};

/// Differences in the fields of a shape and in its objects.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) fields: Vec<FieldDiff>,
    pub(crate) objects: Vec<ObjectDiff>,
    /// True if anything differs that is not listed.
    unshown: bool,
}

impl Differences {
    /// Compares two versions of a shape; `contextual`: objects with differences list their unchanged
    /// fields too.
    pub(crate) fn of(old: Option<&Shape>, new: Option<&Shape>, contextual: bool) -> Self {
        Self {
            fields: fields(old, new, false),
            objects: objects(old, new, contextual),
            unshown: old
                .zip(new)
                .is_some_and(|(old, new)| old.unshown != new.unshown),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.objects.is_empty() && !self.unshown
    }
}

/// Returns the kind of the change from `old` to `new`.
pub(crate) fn diff_type<T>(old: Option<&T>, new: Option<&T>, is_same: bool) -> DiffType {
    match (old, new) {
        (None, None) => DiffType::None,
        (None, Some(_)) => DiffType::Added,
        (Some(_), None) => DiffType::Deleted,
        (Some(_), Some(_)) if is_same => DiffType::None,
        (Some(_), Some(_)) => DiffType::Edited,
    }
}

/// Returns the two sides of every key that either side has, ordered by key.
pub(crate) fn paired<'a, T, K: Ord>(
    old: impl IntoIterator<Item = &'a T>,
    new: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&'a T) -> K,
) -> BTreeMap<K, (Option<&'a T>, Option<&'a T>)> {
    let mut pairs = BTreeMap::<K, (Option<&T>, Option<&T>)>::new();
    for item in old {
        pairs.entry(key(item)).or_default().0 = Some(item);
    }
    for item in new {
        pairs.entry(key(item)).or_default().1 = Some(item);
    }
    pairs
}

fn fields(old: Option<&Shape>, new: Option<&Shape>, with_same: bool) -> Vec<FieldDiff> {
    let own = Shape::fields_of;
    let pairs = paired(own(old), own(new), |field| (&field.name, &field.member));
    let mut found = Vec::new();
    for ((name, _), (old, new)) in pairs {
        let value = |side: Option<&Field>| side.map(|field| field.value.clone());
        let (old_value, new_value) = (value(old), value(new));
        let diff_type = diff_type(old, new, old_value == new_value);
        if diff_type == DiffType::None && !with_same {
            continue;
        }
        found.push(FieldDiff {
            name: name.clone(),
            diff_type,
            old: old_value.unwrap_or_default(),
            new: new_value.unwrap_or_default(),
            annotations: Vec::new(),
        });
    }
    found.sort();
    found
}

fn objects(old: Option<&Shape>, new: Option<&Shape>, contextual: bool) -> Vec<ObjectDiff> {
    let own = Shape::objects_of;
    let pairs = paired(own(old), own(new), |shape| (shape.name, &shape.member));
    let compared = pairs.into_values();
    let mut found: Vec<_> = compared
        .filter_map(|(old, new)| object(old, new, contextual))
        .collect();
    found.sort_by(|a, b| {
        let key =
            |diff: &ObjectDiff| (diff.name.clone(), diff.fields.clone(), diff.objects.clone());
        key(a).cmp(&key(b))
    });
    found
}

/// Returns how an object differs; `None` when it does not.
fn object(old: Option<&Shape>, new: Option<&Shape>, contextual: bool) -> Option<ObjectDiff> {
    let differences = Differences::of(old, new, contextual);
    let diff_type = diff_type(old, new, differences.is_empty());
    if diff_type == DiffType::None {
        return None;
    }
    let Differences {
        mut fields,
        objects,
        ..
    } = differences;
    if contextual {
        fields = self::fields(old, new, true);
    }
    Some(ObjectDiff {
        name: old.or(new)?.name.to_owned(),
        diff_type,
        fields,
        objects,
    })
}
