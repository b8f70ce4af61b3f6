//! Launches: the periodic and scaling blocks.

use model::scaling::Scaling;

use super::extra::{Extra, default};

pub(super) const PERIODIC: Extra = Extra {
    finish: Some(|periodic| {
        default(periodic, "SpecType", "cron");
        Ok(())
    }),
    ..Extra::of("Periodic")
};

pub(super) const SCALING: Extra = Extra {
    finish: Some(|scaling| {
        default(scaling, "Type", Scaling::HORIZONTAL);
        Ok(())
    }),
    ..Extra::of("Scaling")
};
