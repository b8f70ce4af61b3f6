//! Scripts and a simulated etcd for the maintenance decisions.

use model::etcd::Quota;
use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const QUOTA: u64 = 100 * MIB;
const KEPT: Duration = Duration::from_secs(600);
const SCARCE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1_000_000_000 + seconds)
}

fn settings() -> Settings {
    Settings {
        history: History {
            kept: KEPT,
            kept_when_scarce: SCARCE,
        },
        quota_bytes: QUOTA,
        quiet_hours: None,
    }
}

fn member(number: u8, db: u64, in_use: u64) -> EtcdMember {
    EtcdMember {
        endpoint: format!("m{number}"),
        is_leader: number == 0,
        db_bytes: db * MIB,
        in_use_bytes: in_use * MIB,
        ..EtcdMember::default()
    }
}

fn alarmed(member: EtcdMember) -> EtcdMember {
    EtcdMember {
        is_out_of_space: true,
        ..member
    }
}

/// Asks at a moment whose wall clock is the same.
fn ask(
    planner: &mut MaintenancePlanner,
    seconds: u64,
    revisions: &Revisions,
    members: &[EtcdMember],
) -> Option<Action> {
    let (now, expected) = (at(seconds), 3);
    let seen = EtcdStatus {
        now,
        wall: now,
        members,
        expected,
    };
    planner.next(seen, revisions)
}

/// One revision a second from second 0 to `end`.
fn revisions(end: u64) -> Revisions {
    let mut revisions = Revisions::new(SCARCE / 10, KEPT);
    for second in 0..=end {
        revisions.record(at(second), second + 1);
    }
    revisions
}

const SMALL: [(u8, u64, u64); 3] = [(0, 10, 9), (1, 10, 9), (2, 10, 9)];

fn members(of: [(u8, u64, u64); 3]) -> Vec<EtcdMember> {
    of.map(|(number, db, in_use)| member(number, db, in_use))
        .to_vec()
}

#[test]
fn the_promised_history_is_kept() {
    let mut planner = MaintenancePlanner::new(settings());
    assert_eq!(
        ask(&mut planner, 599, &revisions(599), &members(SMALL)),
        None
    );
    let Some(Action::Compact(revision)) = ask(&mut planner, 700, &revisions(700), &members(SMALL))
    else {
        panic!("700 s of history are more than 600");
    };
    assert!(
        (95..=101).contains(&revision),
        "{revision} was current 600 to 603 s ago"
    );
}

#[test]
fn compactions_are_paced_and_not_repeated() {
    let mut planner = MaintenancePlanner::new(settings());
    let first = ask(&mut planner, 700, &revisions(700), &members(SMALL));
    assert!(matches!(first, Some(Action::Compact(_))));
    assert_eq!(
        ask(&mut planner, 759, &revisions(759), &members(SMALL)),
        None,
        "too soon"
    );
    // No answer came: the next one is sent after the pause, whatever became of the first.
    let again = ask(&mut planner, 760, &revisions(760), &members(SMALL));
    let Some(Action::Compact(revision)) = again else {
        panic!("{again:?}");
    };
    planner.compacted(revision);
    let idle = revisions(760);
    assert!(
        ask(&mut planner, 820, &idle, &members(SMALL)).is_some(),
        "newer history has aged"
    );
    planner.compacted(idle.newest().unwrap());
    assert_eq!(
        ask(&mut planner, 9_000, &idle, &members(SMALL)),
        None,
        "nothing was written since"
    );
}

#[test]
fn a_shortage_shortens_the_history_at_once() {
    let mut planner = MaintenancePlanner::new(settings());
    let log = revisions(700);
    let Some(Action::Compact(first)) = ask(&mut planner, 700, &log, &members(SMALL)) else {
        panic!("a compaction is due");
    };
    planner.compacted(first);
    let full = members([(0, 80, 76), (1, 80, 20), (2, 80, 20)]);
    let Some(Action::Compact(revision)) = ask(&mut planner, 701, &log, &full) else {
        panic!("a shortage does not wait for the pause");
    };
    assert!(
        (636..=642).contains(&revision),
        "{revision} was current 60 to 63 s ago"
    );
    planner.compacted(revision);
    // Gateways that have refused new work at 85 % still refuse it.
    let fuller = members([(0, 82, 81), (1, 80, 20), (2, 80, 20)]);
    let Some(Action::Compact(revision)) = ask(&mut planner, 702, &revisions(702), &fuller) else {
        panic!("nor does a full etcd");
    };
    assert!(
        (692..=697).contains(&revision),
        "{revision} was current 6 to 9 s ago"
    );
    // Without a quota there is no shortage.
    let mut other = MaintenancePlanner::new(settings());
    let unlimited: Vec<_> = full
        .into_iter()
        .map(|member| EtcdMember {
            quota: Quota::Unlimited,
            ..member
        })
        .collect();
    assert_eq!(ask(&mut other, 500, &revisions(500), &unlimited), None);
}

#[test]
fn a_history_of_zero_is_never_compacted() {
    let mut off = settings();
    off.history.kept = Duration::ZERO;
    let mut planner = MaintenancePlanner::new(off);
    let full = members([(0, 80, 80), (1, 80, 80), (2, 80, 80)]);
    assert_eq!(ask(&mut planner, 5_000, &revisions(5_000), &full), None);
}

#[test]
fn a_restored_etcd_starts_a_new_history() {
    let mut planner = MaintenancePlanner::new(settings());
    planner.compacted(5_000);
    let mut log = revisions(700);
    assert!(
        ask(&mut planner, 700, &log, &members(SMALL)).is_some(),
        "revision 5,000 is of another etcd"
    );
    log.record(at(701), 3);
    assert_eq!(log.at_age(at(701), Duration::ZERO), Some(3));
    assert_eq!(log.at_age(at(702), SCARCE), None);
}

#[test]
fn few_samples_are_kept_for_any_settings() {
    for (shortest, longest) in [(1, 3_600_000), (60_000, 600_000), (1, 1)] {
        let millis = Duration::from_millis;
        let mut log = Revisions::new(millis(shortest), millis(longest));
        for number in 0..20_000_u64 {
            log.record(at(0).plus(millis(number * longest / 5_000)), number + 1);
        }
        let kept = format!("{log:?}").matches("Timestamp").count();
        assert!(kept <= 513, "{kept} samples of {longest} ms");
    }
}

#[test]
fn followers_are_defragmented_before_the_leader_and_one_at_a_time() {
    let mut planner = MaintenancePlanner::new(settings());
    let log = Revisions::new(SCARCE / 10, KEPT);
    let mut all = members([(0, 92, 40), (1, 92, 40), (2, 92, 40)]);
    for (second, endpoint) in [(0, "m1"), (10, "m2"), (20, "m0")] {
        let action = ask(&mut planner, second, &log, &all);
        assert_eq!(action, Some(Action::Defragment(endpoint.to_owned())));
        // While it does not answer, no other member is rewritten.
        let others: Vec<_> = all
            .iter()
            .filter(|one| one.endpoint != endpoint)
            .cloned()
            .collect();
        assert_eq!(ask(&mut planner, second + 1, &log, &others), None);
        let done = all.iter_mut().find(|one| one.endpoint == endpoint).unwrap();
        done.db_bytes = done.in_use_bytes;
    }
    assert_eq!(ask(&mut planner, 30, &log, &all), None);
}

#[test]
fn a_defragmentation_that_frees_nothing_backs_off() {
    let mut planner = MaintenancePlanner::new(settings());
    let log = Revisions::new(SCARCE / 10, KEPT);
    let stuck = members([(0, 10, 10), (1, 95, 50), (2, 10, 10)]);
    let mut tries = 0;
    for second in 0..3_600 {
        tries += usize::from(ask(&mut planner, second, &log, &stuck).is_some());
    }
    assert_eq!(tries, 6, "after 1, 2, 4, 8, 16 min");
}

#[test]
fn quiet_hours_are_needed_below_the_limit() {
    let log = Revisions::new(SCARCE / 10, KEPT);
    let loose = members([(0, 60, 20), (1, 60, 20), (2, 60, 59)]);
    assert_eq!(
        ask(&mut MaintenancePlanner::new(settings()), 0, &log, &loose),
        None
    );
    let mut quiet = settings();
    quiet.quiet_hours = Some("01:00-03:00".parse().unwrap());
    let mut planner = MaintenancePlanner::new(quiet);
    // 2001-09-09 01:46:40 UTC.
    assert_eq!(
        ask(&mut planner, 0, &log, &loose),
        Some(Action::Defragment("m1".to_owned()))
    );
    assert_eq!(
        ask(&mut planner, 0, &log, &loose),
        Some(Action::Defragment("m0".to_owned()))
    );
    assert_eq!(
        ask(&mut planner, 0, &log, &loose),
        None,
        "the third has nothing to free"
    );
    assert_eq!(
        ask(&mut planner, 2 * 3_600, &log, &loose),
        None,
        "the hours are over"
    );
}

#[test]
fn quiet_hours_may_pass_midnight() {
    let hours: QuietHours = "22:30-04:00".parse().unwrap();
    let of_day =
        |hour: u64, minute: u64| Timestamp::from_secs(86_400 * 7 + hour * 3_600 + minute * 60);
    for (hour, minute, inside) in [
        (22, 29, false),
        (22, 30, true),
        (0, 0, true),
        (3, 59, true),
        (4, 0, false),
    ] {
        assert_eq!(
            hours.contains(of_day(hour, minute)),
            inside,
            "{hour}:{minute}"
        );
    }
    for text in [
        "",
        "02:00",
        "2-4",
        "02:00-02:00",
        "24:00-01:00",
        "02:60-03:00",
        "a:b-c:d",
    ] {
        let error = text.parse::<QuietHours>().unwrap_err();
        assert!(error.to_string().contains("02:00-04:30"), "{error}");
    }
}

#[test]
fn the_alarm_is_disarmed_once_there_is_room_on_every_member() {
    let mut planner = MaintenancePlanner::new(settings());
    let log = Revisions::new(SCARCE / 10, KEPT);
    let room = vec![
        alarmed(member(0, 50, 50)),
        member(1, 50, 50),
        member(2, 50, 50),
    ];
    let full = vec![
        alarmed(member(0, 50, 50)),
        member(1, 100, 100),
        member(2, 50, 50),
    ];
    assert_eq!(
        ask(&mut planner, 0, &log, &full),
        None,
        "the next write would raise it again"
    );
    assert_eq!(
        ask(&mut planner, 0, &log, &room[..2]),
        None,
        "a member is away"
    );
    let fragmented = vec![
        alarmed(member(0, 50, 20)),
        member(1, 50, 50),
        member(2, 50, 50),
    ];
    assert_eq!(
        ask(&mut planner, 0, &log, &fragmented),
        Some(Action::Defragment("m0".to_owned())),
        "etcd's own quota may be smaller than the configured one"
    );
    assert_eq!(ask(&mut planner, 1, &log, &room), Some(Action::Disarm));
    let mut disarmed = Vec::new();
    for second in 2..3_000 {
        if ask(&mut planner, second, &log, &room).is_some() {
            disarmed.push(second);
        }
    }
    assert_eq!(
        disarmed[..3],
        [31, 91, 211],
        "an alarm that comes back is disarmed less and less often"
    );
    assert_eq!(ask(&mut planner, 3_000, &log, &members(SMALL)), None);
    // Calm again: the next alarm is disarmed at once.
    assert_eq!(ask(&mut planner, 9_000, &log, &members(SMALL)), None);
    assert_eq!(ask(&mut planner, 9_001, &log, &room), Some(Action::Disarm));
}

#[test]
fn a_full_etcd_counts_the_pages_of_a_compaction_before_it_is_defragmented() {
    let mut planner = MaintenancePlanner::new(settings());
    let log = Revisions::new(SCARCE / 10, KEPT);
    let others = [member(1, 50, 50), member(2, 50, 50)];
    let mut stale = vec![alarmed(member(0, 100, 100))];
    stale.extend(others.clone());
    assert_eq!(ask(&mut planner, 0, &log, &stale), None);
    planner.compacted(7);
    assert_eq!(ask(&mut planner, 1, &log, &stale), Some(Action::Disarm));
    // etcd may free the pages after the count: they are counted again, less and less often.
    for (second, expected) in [
        (2, None),
        (3, Some(Action::Disarm)),
        (6, None),
        (7, Some(Action::Disarm)),
        (14, None),
    ] {
        let found = ask(&mut planner, second, &log, &stale);
        assert_eq!(found, expected, "second {second}");
    }
    let mut counted = vec![alarmed(member(0, 100, 20))];
    counted.extend(others);
    let defragment = Action::Defragment("m0".to_owned());
    assert_eq!(ask(&mut planner, 14, &log, &counted), Some(defragment));
    // Another member may be late still.
    let late = vec![
        member(0, 20, 20),
        member(1, 50, 50),
        alarmed(member(2, 100, 100)),
    ];
    assert_eq!(ask(&mut planner, 15, &log, &late), Some(Action::Disarm));
}

/// One member's database: live data, history by revision, and a size that only grows.
#[derive(Clone, Debug)]
struct FakeEtcd {
    live: u64,
    /// Revision → bytes of history.
    history: Vec<(u64, u64)>,
    db: u64,
    /// Data in use, as of the last change.
    counted: u64,
    alarm: bool,
    revision: u64,
}

impl FakeEtcd {
    fn in_use(&self) -> u64 {
        self.live + self.history.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Overwrites `bytes` of live data; refused at the quota.
    fn write(&mut self, bytes: u64) {
        if self.alarm {
            return;
        }
        if self.db + bytes >= QUOTA {
            self.alarm = true;
            return;
        }
        self.revision += 1;
        self.history.push((self.revision, bytes));
        self.db = self.db.max(self.in_use());
        self.counted = self.in_use();
    }

    fn perform(&mut self, action: &Action) {
        match action {
            // Without a change, the freed pages are not counted.
            Action::Compact(revision) => return self.history.retain(|(at, _)| at > revision),
            Action::Defragment(_) => self.db = self.in_use(),
            Action::Disarm => self.alarm = false,
        }
        self.counted = self.in_use();
    }

    fn seen(&self) -> EtcdMember {
        EtcdMember {
            endpoint: "m0".to_owned(),
            is_leader: true,
            db_bytes: self.db,
            in_use_bytes: self.counted,
            is_out_of_space: self.alarm,
            ..EtcdMember::default()
        }
    }
}

proptest! {
    /// A random load of overwrites, with random leader changes, never leaves etcd without space for
    /// good: five minutes after the last write it takes writes again, and its size is bounded.
    #[test]
    fn etcd_always_recovers(
        live in 1_u64..60,
        load in prop::collection::vec((0_u64..12, any::<bool>()), 1..200),
    ) {
        let mut etcd = FakeEtcd { live: live * MIB, history: Vec::new(), db: live * MIB, counted: live * MIB, alarm: false, revision: 1 };
        let mut log = Revisions::new(SCARCE / 10, KEPT);
        let mut planner = MaintenancePlanner::new(settings());
        let idle = std::iter::repeat_n((0, false), 60);
        let mut seconds = 0;
        for (mib, is_new_leader) in load.into_iter().chain(idle) {
            seconds += 10;
            if mib > 0 {
                etcd.write(mib * MIB);
            }
            if is_new_leader {
                planner = MaintenancePlanner::new(settings());
            }
            log.record(at(seconds), etcd.revision);
            let members = [etcd.seen()];
            let seen = EtcdStatus { now: at(seconds), wall: at(seconds), members: &members, expected: 1 };
            if let Some(action) = planner.next(seen, &log) {
                etcd.perform(&action);
                if let Action::Compact(revision) = action {
                    planner.compacted(revision);
                }
            }
            prop_assert!(etcd.db <= QUOTA);
        }
        prop_assert!(!etcd.alarm, "{etcd:?}");
        etcd.write(MIB);
        prop_assert!(!etcd.alarm, "the first write fails: {etcd:?}");
    }
}
