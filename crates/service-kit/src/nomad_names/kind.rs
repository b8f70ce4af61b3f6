//! The conversion of a family, and the labels of its series.

/// The conversion of the values of a family to Nomad's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The same value.
    Gauge,
    /// The same value multiplied, such as bytes as MiB.
    Scaled(f64),
    /// A counter, whose name does not end with `_total` at Nomad. So it is of the type `unknown` here,
    /// because OpenMetrics demands the suffix; `rate` works all the same.
    Counter,
    /// A histogram of seconds; Nomad's is a summary of milliseconds. Its sum and count are served, its
    /// quantiles are not: they cannot be computed from buckets.
    Milliseconds,
}

/// Labels of every series under a name of Nomad's, in their order.
pub type Labels = Vec<(&'static str, String)>;
