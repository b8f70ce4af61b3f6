//! Any bytes as published keys and a token: refused or verified, never a panic. The input is a document of
//! keys, a zero byte, and a token.
//!
//!   cargo +nightly fuzz run jwt_verify -- -max_len=65536

#![no_main]

use model::Timestamp;
use workload_identity::Jwks;
use workload_identity::renewal::times_of;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let document = parts.next().unwrap_or_default();
    let token = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let _ = times_of(&token);
    if let Ok(keys) = Jwks::parse(document)
        && let Ok(claims) = keys.verify(&token, Timestamp::from_secs(1_700_000_000))
    {
        assert!(claims.exp > 1_700_000_000);
    }
});
