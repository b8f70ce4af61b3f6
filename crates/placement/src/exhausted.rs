//! Exhausted dimensions of a node, with their names in metrics.

use std::fmt;

use crate::reasons::{NETWORK, PORT_COLLISION};

/// A dimension that a node has too little of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// `cpu`, `memory` or `disk`, or one of the constants below.
    Amount(&'static str),
    /// A static port is held or reserved.
    PortCollision { label: String, port: u16 },
    /// No dynamic port is free.
    DynamicPorts,
    /// The host network has no address.
    NoAddresses { network: String },
}

impl Exhausted {
    /// The node's maximum number of allocations is reached.
    pub const MAX_ALLOCS: &'static str = "max allocation exceeded";
    /// Too few cores are free, or a core is held already.
    pub const CORES: &'static str = "cores";
    /// Too few suitable devices are free.
    pub const NO_DEVICES: &'static str = "devices: no devices match request";
    /// A device is held already.
    pub const DEVICE_OVERSUBSCRIBED: &'static str = "device oversubscribed";
}

/// The dimension's name in metrics.
impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(dimension) => f.write_str(dimension),
            Self::PortCollision { label, port } => {
                write!(f, "{NETWORK}{PORT_COLLISION} {label}={port}")
            }
            Self::DynamicPorts => write!(f, "{NETWORK}dynamic port selection failed"),
            Self::NoAddresses { network } => {
                write!(f, "{NETWORK}no addresses available for {network} network")
            }
        }
    }
}

impl std::error::Error for Exhausted {}
