//! Power supply of a machine during a crash.

/// The power supply during a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The process is killed; its system goes on.
    On,
    /// The machine is off.
    Off,
}
