//! Any text as a template: rendered, waiting or an error with a place, never a panic, never without end.
//!
//!   cargo +nightly fuzz run template_render -- -max_len=65536

#![no_main]

use std::collections::BTreeMap;

use template::{Limits, NoFiles, NoSource, RenderContext, Template};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let env = BTreeMap::from([("A".to_owned(), "a b".to_owned())]);
    let context = RenderContext {
        env: &env,
        files: &NoFiles,
        source: &NoSource,
        namespace: "default",
        region: "global",
        interfaces: &[],
        now: template::timestamp(0),
        missing_key_is_error: false,
        limits: Limits {
            steps_max: 10_000,
            bytes_max: 1 << 20,
            output_max: 1 << 16,
        },
    };
    let rendered =
        Template::parse(text, "", "").and_then(|template| template.render(&context));
    if let Err(error) = rendered {
        assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
    }
});
