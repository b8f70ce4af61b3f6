//! Cron expressions: the next due time in a time zone.
//!
//! Pure: an expression and a time go in, the next time comes out. In reading order: `fields` reads
//! an expression; `day` matches its days; `schedule` finds its next time, across daylight-saving
//! changes.
//!
//! The dialect: `minute hour day-of-month month day-of-week`, with a year after them if there are
//! six fields, and seconds before them as well if there are seven. `*`, `?`, lists, ranges, steps,
//! names of months and days, `L`, `LW`, `15W`, `5L` and `6#3` are known; so are `@yearly`,
//! `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly` and `@every 5m`.
//! A day has to match the day of the month or the day of the week if both are restricted.
//! Source: the dialect of <https://github.com/gorhill/cronexpr>, which job files are written in.
//!
//! Time zones are compiled in, so every replica knows the same ones.

mod day;
mod fields;
mod schedule;

pub use fields::InvalidCron;
pub use schedule::{InvalidZone, Schedule, Zone};
