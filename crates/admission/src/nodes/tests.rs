mod beating;
mod packing;
mod registering;
mod reporting;
mod sessions;
