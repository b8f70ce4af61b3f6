//! Expressions against calendars.

use proptest::prelude::*;

use super::*;

fn seconds(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_second()
}

/// The next `count` times, as text in UTC.
fn times(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(expression).unwrap();
    let zone = Zone::named(zone).unwrap();
    let mut time = seconds(after);
    let mut out = Vec::new();
    for _ in 0..count {
        match schedule.next(time, &zone) {
            Some(next) => time = next,
            None => break,
        }
        out.push(Timestamp::from_second(time).unwrap().to_string());
    }
    out
}

#[test]
#[rustfmt::skip]
fn expressions_mean_what_they_say() {
    let after = "2026-01-30T10:00:00Z";
    for (expression, expected) in [
        ("*/5 * * * *", &["2026-01-30T10:05:00Z", "2026-01-30T10:10:00Z"][..]),
        ("0 12 * * *", &["2026-01-30T12:00:00Z", "2026-01-31T12:00:00Z"]),
        ("5/20 10 * * *", &["2026-01-30T10:05:00Z", "2026-01-30T10:25:00Z", "2026-01-30T10:45:00Z"]),
        ("0 0 1-3/2 feb,mar ?", &["2026-02-01T00:00:00Z", "2026-02-03T00:00:00Z", "2026-03-01T00:00:00Z"]),
        // 2026-01-30 is a Friday.
        ("0 0 * * MON-Tue", &["2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z"]),
        ("0 0 * * 7", &["2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z"]),
        ("0 0 * * */3", &["2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z", "2026-02-04T00:00:00Z"]),
        ("0 0 13 * fri", &["2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"]),
        ("0 0 L * *", &["2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"]),
        ("0 0 LW * *", &["2026-02-27T00:00:00Z", "2026-03-31T00:00:00Z"]),
        ("0 0 1W * *", &["2026-02-02T00:00:00Z", "2026-03-02T00:00:00Z", "2026-04-01T00:00:00Z"]),
        ("0 0 31W * *", &["2026-03-31T00:00:00Z", "2026-05-29T00:00:00Z"]),
        ("0 0 * * 5L", &["2026-02-27T00:00:00Z", "2026-03-27T00:00:00Z"]),
        ("0 0 * * 6#5", &["2026-01-31T00:00:00Z", "2026-05-30T00:00:00Z"]),
        ("0 0 29 2 *", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("0 0 1 1 * 2031,2028", &["2028-01-01T00:00:00Z", "2031-01-01T00:00:00Z"]),
        ("*/20 59 23 31 12 * 2026", &["2026-12-31T23:59:00Z", "2026-12-31T23:59:20Z", "2026-12-31T23:59:40Z"]),
        ("* * * * * * *", &["2026-01-30T10:00:01Z", "2026-01-30T10:00:02Z"]),
        ("@hourly", &["2026-01-30T11:00:00Z"]),
        ("@daily", &["2026-01-31T00:00:00Z"]),
        ("@weekly", &["2026-02-01T00:00:00Z"]),
        ("@monthly", &["2026-02-01T00:00:00Z"]),
        ("@yearly", &["2027-01-01T00:00:00Z"]),
        ("@every 1h30m", &["2026-01-30T10:30:00Z", "2026-01-30T12:00:00Z"]),
    ] {
        let count = expected.len();
        assert_eq!(times(expression, "UTC", after, count), expected, "{expression}");
    }
}

#[test]
fn an_expression_without_a_further_time_has_none() {
    let after = "2026-01-30T10:00:00Z";
    for expression in ["0 0 30 2 *", "0 0 1 1 * 2025", "0 0 * * * 2000-2025"] {
        assert_eq!(times(expression, "UTC", after, 1), [""; 0], "{expression}");
    }
}

#[test]
fn scenario_025_a_local_time_that_does_not_exist_is_left_out_and_one_that_repeats_is_due_twice() {
    let every_night = "30 2 * * *";
    let spring = times(every_night, "Europe/Berlin", "2026-03-28T00:00:00Z", 2);
    // On the 29th, clocks go from 2:00 to 3:00.
    assert_eq!(spring, ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = times(every_night, "Europe/Berlin", "2026-10-24T12:00:00Z", 3);
    assert_eq!(
        autumn,
        [
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-26T01:30:00Z"
        ]
    );
}

#[test]
fn zones_count() {
    let noon = |zone| times("0 12 * * *", zone, "2026-07-01T00:00:00Z", 1);
    assert_eq!(noon(""), ["2026-07-01T12:00:00Z"]);
    assert_eq!(noon("Asia/Kolkata"), ["2026-07-01T06:30:00Z"]);
    assert_eq!(noon("America/New_York"), ["2026-07-01T16:00:00Z"]);
    for unknown in ["Mars/Base", "Local", "local", "../etc/passwd"] {
        assert!(Zone::named(unknown).is_err(), "{unknown}");
    }
}

#[test]
#[rustfmt::skip]
fn an_invalid_expression_is_refused_with_the_place_of_the_error() {
    for (expression, problem) in [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * * *", "has 8 fields"),
        ("60 * * * *", "minute \"60\" is not between 0 and 59"),
        ("-1 * * * *", "minute \"\" is not between"),
        ("* 24 * * *", "hour \"24\""),
        ("* * 0 * *", "day of month \"0\""),
        ("* * 32 * *", "day of month \"32\""),
        ("* * * 13 *", "month \"13\""),
        ("* * * foo *", "month \"foo\""),
        ("* * * * 8", "day of week \"8\""),
        ("* * * * 1#6", "week of the month \"6\""),
        ("* * * * * 1969", "year \"1969\""),
        ("5-1 * * * *", "goes backwards"),
        ("*/0 * * * *", "no valid step"),
        ("*/x * * * *", "no valid step"),
        (", * * * *", "minute \"\""),
        ("+5 * * * *", "minute \"+5\""),
        ("@fortnightly", "@fortnightly is not known"),
        ("@every", "@every is not known"),
        ("@every 0s", "want a duration"),
        ("@every 1.5s", "want a duration"),
        ("@every 99999999999999999999h", "want a duration"),
    ] {
        let error = Schedule::parse(expression).unwrap_err().to_string();
        assert!(error.contains(problem), "{expression}: {error}");
    }
    assert!(Schedule::parse(&"*".repeat(2_000)).is_err());
}

fn expressions() -> impl Strategy<Value = String> {
    let field = |largest: u32| {
        prop_oneof![
            2 => Just("*".to_owned()),
            1 => (0..largest).prop_map(|number| number.to_string()),
            1 => (1..largest).prop_map(|step| format!("*/{step}")),
        ]
    };
    let month =
        prop_oneof![3 => Just("*".to_owned()), 1 => (1..13u32).prop_map(|month| month.to_string())];
    let day =
        prop_oneof![2 => Just("*".to_owned()), 1 => (1..29u32).prop_map(|day| day.to_string())];
    (field(60), field(60), field(24), day, month, field(7)).prop_map(
        |(second, minute, hour, day, month, weekday)| {
            format!("{second} {minute} {hour} {day} {month} {weekday} *")
        },
    )
}

proptest! {
    /// The time that is found matches on the zone's clock, and no earlier time does.
    #[test]
    fn the_next_time_is_the_first_that_matches(
        expression in expressions(),
        // Around changes of the clock, and anywhere.
        after in prop_oneof![
            1_774_700_000i64..1_774_800_000,
            1_792_850_000i64..1_792_950_000,
            0i64..4_000_000_000,
        ],
        zone in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("America/Havana"), Just("Australia/Lord_Howe")],
    ) {
        let schedule = Schedule::parse(&expression).unwrap();
        let Expression::Fields(fields) = &schedule.0 else { unreachable!() };
        let zone = Zone::named(zone).unwrap();
        let shows = |time: i64| {
            let local = zone.0.to_datetime(Timestamp::from_second(time).unwrap());
            next_local(fields, local) == Some(local)
        };
        let found = schedule.next(after, &zone);
        if let Some(found) = found {
            prop_assert!(found > after);
            prop_assert!(shows(found));
        }
        let horizon = found.unwrap_or(i64::MAX).min(after + 20_000);
        for time in after + 1..horizon {
            prop_assert!(!shows(time), "{time} comes before {found:?}");
        }
    }

    #[test]
    fn the_last_time_is_the_one_that_no_other_follows(
        expression in expressions(),
        after in 1_700_000_000i64..1_900_000_000,
        interval in 0i64..400_000,
    ) {
        let schedule = Schedule::parse(&expression).unwrap();
        let zone = Zone::named("Europe/Berlin").unwrap();
        let until = after + interval;
        let next = |time| schedule.next(time, &zone).filter(|next| *next <= until);
        match schedule.last(after, until, &zone) {
            Some(last) => {
                prop_assert!(last > after && last <= until);
                prop_assert_eq!(next(last), None);
                prop_assert_eq!(next(last - 1), Some(last));
            }
            None => prop_assert_eq!(next(after), None),
        }
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "\\PC{0,30}", cronish in "[0-9*/,LW#@a-z -]{0,30}") {
        for text in [text, cronish] {
            if let Ok(schedule) = Schedule::parse(&text) {
                let _ = schedule.next(1_700_000_000, &Zone::named("Europe/Berlin").unwrap());
            }
        }
    }
}
