//! Least, median and greatest of a few figures.

/// Returns the least, the median and the greatest.
pub(crate) fn range(values: impl Iterator<Item = usize>) -> [usize; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}
