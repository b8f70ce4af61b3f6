//! What goes over the wire comes back as it was, and what is wrong with it is named.

mod draw;
mod errors;
mod nouns;
mod round_trip;
mod status;
