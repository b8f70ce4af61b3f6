mod registering;
mod reporting;
mod sessions;
