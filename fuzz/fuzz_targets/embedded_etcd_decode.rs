//! Decoding of the embedded store's file: damage is an error, never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // An error is a fine answer to damage; only a panic is not.
    let _ = embedded_etcd::fuzzing::open(data);
});
