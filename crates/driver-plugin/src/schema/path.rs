//! Places in a body, and how deep they may lie.

/// Deepest nesting of a schema; a plugin may send any.
pub(super) const DEPTH_MAX: usize = 32;

/// Returns the place of a field, as in `volumes[0].target`.
pub(super) fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}
