//! Attempts of a call: repetition, delays, deadlines, gateways left out.

use tonic::{ConnectError, Status};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn config(gateways: usize) -> Config {
    Config {
        gateways: vec!["http://g:1".to_owned(); gateways],
        ..Config::default()
    }
}

fn error(status: Status) -> Error {
    Error::new("/kafila.v1.Jobs/Get", "http://g:1", status, SECOND)
}

fn refused() -> Error {
    error(Status::from_error(Box::new(ConnectError("refused".into()))))
}

fn unavailable() -> Error {
    error(Status::unavailable("etcd has no leader"))
}

fn attempts(config: &Config, repeat: Repeat, now: Instant) -> Attempts {
    Attempts::new(config, repeat, 30 * SECOND, Duration::ZERO, now)
}

#[test]
fn repetition_depends_on_the_request_and_the_error() {
    let now = Instant::now();
    let busy = || error(proto::status::exhausted("busy", 2 * SECOND));
    let limit = || error(Status::resource_exhausted("too large"));
    let missing = || error(Status::not_found(""));
    // (error, a safe request is repeated, another one is)
    let table: [(Error, bool, bool); 5] = [
        (refused(), true, true),
        (unavailable(), true, false),
        (busy(), true, true),
        (limit(), false, false),
        (missing(), false, false),
    ];
    for (error, safe, once) in table {
        for (repeat, expected) in [(Repeat::Safe, safe), (Repeat::Once, once)] {
            let next = attempts(&config(1), repeat, now).after(&error, now, 0.5);
            assert_eq!(next != Next::GiveUp, expected, "{error} {repeat:?}");
        }
    }
}

#[test]
fn delays_double_and_the_advice_of_the_gateway_is_kept() {
    let now = Instant::now();
    let config = config(2);
    let mut safe = attempts(&config, Repeat::Safe, now);
    let delays: Vec<_> = (0..7)
        .map(|_| safe.after(&unavailable(), now, 1.0))
        .collect();
    let millis = [100, 200, 400, 800, 1600, 3200, 5000];
    assert_eq!(
        delays,
        millis.map(|ms| Next::Again(Duration::from_millis(ms)))
    );
    assert_eq!(
        safe.after(&unavailable(), now, 1.0),
        Next::GiveUp,
        "the eighth"
    );

    let mut safe = attempts(&config, Repeat::Safe, now);
    let busy = error(proto::status::exhausted("busy", 2 * SECOND));
    let Next::Again(delay) = safe.after(&busy, now, 0.0) else {
        panic!("a refusal for overload is repeated");
    };
    assert!(delay > 2 * SECOND && delay < 3 * SECOND, "{delay:?}");
    let long = error(proto::status::exhausted("busy", 600 * SECOND));
    let Next::Again(delay) = safe.after(&long, now, 0.0) else {
        panic!("the advice is bounded");
    };
    assert!(delay < 6 * SECOND, "{delay:?}");
}

#[test]
fn attempts_end_at_the_deadline() {
    let now = Instant::now();
    let config = config(1);
    let safe = attempts(&config, Repeat::Safe, now);
    assert_eq!(safe.timeout(now), 10 * SECOND);
    assert_eq!(safe.timeout(now + 25 * SECOND), 5 * SECOND);
    let once = attempts(&config, Repeat::Once, now);
    assert_eq!(once.timeout(now), 30 * SECOND);
    let mut late = attempts(&config, Repeat::Safe, now);
    let end = now + 30 * SECOND;
    assert_eq!(late.after(&unavailable(), end, 1.0), Next::GiveUp);
    let blocking = Attempts::new(&config, Repeat::Safe, SECOND, 60 * SECOND, now);
    assert_eq!(blocking.timeout(now), 61 * SECOND);
}

#[test]
fn a_command_fails_once_every_gateway_was_tried() {
    let now = Instant::now();
    let mut config = config(2);
    config.retry.wait_for_gateway = false;
    let mut first = attempts(&config, Repeat::Safe, now);
    assert!(matches!(first.after(&refused(), now, 0.0), Next::Again(_)));
    assert_eq!(first.after(&refused(), now, 0.0), Next::GiveUp);
    // A write that may have happened is worth waiting for a restart.
    let mut doubtful = attempts(&config, Repeat::Safe, now);
    assert!(matches!(
        doubtful.after(&unavailable(), now, 0.0),
        Next::Again(_)
    ));
    for _ in 0..3 {
        assert!(matches!(
            doubtful.after(&refused(), now, 0.0),
            Next::Again(_)
        ));
    }
}

#[test]
fn a_gateway_with_a_bad_certificate_is_left_and_not_waited_for() {
    let now = Instant::now();
    let expired = || Error::of(Kind::Tls(tls::Problem::Expired));
    for (gateways, tried) in [(1, 1), (2, 2), (3, 3)] {
        let mut once = attempts(&config(gateways), Repeat::Once, now);
        let made = 1
            + (0..9)
                .take_while(|_| once.after(&expired(), now, 0.5) != Next::GiveUp)
                .count();
        assert_eq!(made, tried, "{gateways} gateways");
    }
    assert!(!expired().is_transient() && !expired().may_have_happened());
}
