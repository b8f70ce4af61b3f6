//! Tables for what becomes of nodes' records and reports, and for what nodes are sent.

mod assigning;
mod registering;
mod reporting;
