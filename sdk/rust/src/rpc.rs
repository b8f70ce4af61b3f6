//! The services of `kafila.v1` with a method for each RPC, generated from /proto by `build.rs`.

use futures::Stream;

use crate::call::{Call, DuplexCall, StreamCall};
use crate::method::{Method, Repeat, fill_in};
use crate::read::{Answer, List, Read};
use crate::v1;

include!(concat!(env!("OUT_DIR"), "/rpc.rs"));
