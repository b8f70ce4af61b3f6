//! Any text as a job file: a job or errors with places, never a panic, never without end.
//!
//! The examples and the malformed files of the crate's tests make a good first corpus:
//!   cargo +nightly fuzz run jobspec_parse corpus/jobspec_parse ../examples \
//!     ../crates/jobspec/tests/malformed -- -max_len=262144
//! Without -max_len inputs stay as short as the longest of the corpus, and inputs that nest deep
//! enough to overflow a stack are longer.

#![no_main]

use jobspec::{Colour, Inputs, canonicalise, parse, parse_api_json};
use model::Timestamp;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for result in [parse("job.hcl", text, &Inputs::default()), parse_api_json("job.json", text)] {
        match result {
            Ok(parsed) => {
                if let Err(errors) = canonicalise(&parsed.job, Timestamp(1)) {
                    parsed.places.locate(&errors).render(Colour::Always);
                }
            }
            Err(errors) => {
                assert!(!errors.0.is_empty());
                errors.render(Colour::Never);
            }
        }
    }
});
