mod beating;
mod registering;
mod reporting;
mod sessions;
