//! Histories of a register as tables, linearizable and not; and random linearizable histories, also
//! with a false answer.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::{Model, Operation, Verdict, check};

const PLENTY: usize = 1_000_000;

/// A register that holds a number, 0 at first.
struct Register;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Write(u32),
    Read,
}

impl Model for Register {
    type State = u32;
    type Input = Input;
    /// The value read or written.
    type Output = u32;

    fn initial(&self) -> u32 {
        0
    }

    fn step(&self, state: &u32, input: &Input, output: Option<&u32>) -> Option<u32> {
        match input {
            Input::Write(value) => Some(*value),
            Input::Read => output
                .is_none_or(|output| output == state)
                .then_some(*state),
        }
    }
}

type Seen = Operation<Input, u32>;

/// Reads a history: a line for each operation, as in `w3 |--|` or `r0  |-?`, whose columns are time;
/// `?` instead of the second bar: no answer came.
fn history(table: &str) -> Vec<Seen> {
    let rows = table
        .lines()
        .map(str::trim_end)
        .filter(|row| !row.trim().is_empty());
    let read = |row: &str| {
        let row = row.trim_start();
        let (name, columns) = row.split_at(3);
        let value: u32 = name[1..].trim().parse().unwrap();
        let input = if name.starts_with('w') {
            Input::Write(value)
        } else {
            Input::Read
        };
        let invoked = columns.find('|').unwrap() as u64;
        match columns.rfind('|').unwrap() as u64 {
            _ if columns.ends_with('?') => Operation::unknown(input, invoked),
            completed => Operation::known(input, invoked, completed, value),
        }
    };
    rows.map(read).collect()
}

fn verdict(table: &str) -> Verdict {
    check(&Register, &history(table), PLENTY)
}

#[test]
fn answers_possible_on_one_thread_are_linearizable() {
    for (what, table) in [
        ("nothing", ""),
        (
            "one after the other",
            "w1 |-|
             r1     |-|
             w2         |-|
             r2             |-|",
        ),
        (
            "a read beside a write may see either side of it",
            "w1 |-------|
             r0   |-|
             r1       |-|",
        ),
        (
            "two writes at once, in either order",
            "w1 |-----|
             w2 |-----|
             r1         |-|
             r1             |-|",
        ),
        (
            "what touches may overlap",
            "w1 |--|
             r0    |--|",
        ),
        (
            "a write of unknown outcome that was never carried out",
            "w1 |-?
             r0     |-|
             r0         |-|",
        ),
        (
            "a write of unknown outcome that was carried out late",
            "w1 |-?
             r0     |-|
             w2         |-|
             r2             |-|
             r1                 |-|",
        ),
        (
            "a read of unknown outcome says nothing",
            "w1 |-|
             r7     |-?
             r1         |-|",
        ),
        (
            "order by time, not by row",
            "r1      |-|
             w1 |-|",
        ),
    ] {
        assert!(
            verdict(table).is_linearizable(),
            "{what}: {:?}",
            verdict(table)
        );
    }
}

#[test]
fn answers_impossible_on_one_thread_are_not_linearizable() {
    for (what, table) in [
        (
            "a stale read",
            "w1 |-|
             w2     |-|
             r1         |-|",
        ),
        (
            "a lost write",
            "w1 |-|
             r0     |-|",
        ),
        (
            "a value that was never written",
            "w1 |-|
             r3     |-|",
        ),
        (
            "reads that go back in time while a write is under way",
            "w1 |-----------|
             r1   |-|
             r0       |-|",
        ),
        (
            "two writes at once, seen in both orders",
            "w1 |-----|
             w2 |-----|
             r1         |-|
             r2             |-|",
        ),
        (
            "a write of unknown outcome that comes and goes",
            "w1 |-?
             r1     |-|
             r0         |-|",
        ),
        (
            "a write of unknown outcome that is carried out twice",
            "w1 |-?
             r1     |-|
             w2         |-|
             r2             |-|
             r1                 |-|",
        ),
        (
            "a value from before the write of it was asked for",
            "r1 |-|
             w1     |-|",
        ),
    ] {
        assert!(
            matches!(verdict(table), Verdict::Impossible { .. }),
            "{what}: {:?}",
            verdict(table)
        );
    }
}

#[test]
fn the_answer_has_the_order_and_its_end() {
    let found = verdict(
        "r1     |-----|
         w1 |-----|
         w2             |-|
         r1                 |-|",
    );
    let Verdict::Impossible { longest, stuck } = found else {
        panic!("{found:?}")
    };
    assert_eq!(longest, [1, 0, 2]);
    assert_eq!(stuck, [3]);
    let found = verdict(
        "r1     |-----|
         w9 |-?
         w1 |-----|",
    );
    assert_eq!(found, Verdict::Linearizable(vec![1, 2, 0]));
}

#[test]
fn many_equal_operations_without_an_answer_are_as_one() {
    // Each of forty equal writes without an answer may have been executed; the reads in between
    // show another value.
    let mut seen: Vec<Seen> = (0..40)
        .map(|at| Operation::unknown(Input::Write(7), at))
        .collect();
    for at in 0..40 {
        let at = 100 + 10 * at;
        let value = u32::try_from(at).unwrap();
        seen.push(Operation::known(Input::Write(value), at, at + 1, value));
        seen.push(Operation::known(Input::Read, at + 2, at + 3, value));
    }
    assert!(check(&Register, &seen, 20_000).is_linearizable());
    seen.push(Operation::known(Input::Read, 1_000, 1_001, 8));
    let verdict = check(&Register, &seen, 20_000);
    assert!(matches!(verdict, Verdict::Impossible { .. }), "{verdict:?}");
}

#[test]
fn a_search_that_becomes_too_long_is_given_up() {
    let writes = (0..16).map(|value| Operation::known(Input::Write(value), 0, 10, value));
    let mut seen: Vec<Seen> = writes.collect();
    seen.push(Operation::known(Input::Read, 20, 21, 99));
    assert_eq!(check(&Register, &seen, 1_000), Verdict::Undecided);
}

/// Returns a linearizable history: each operation takes effect at an instant of its own, between its
/// call and its answer. Values are written once.
fn made_by_one_thread() -> impl Strategy<Value = Vec<Seen>> {
    let operation = (any::<bool>(), 0..40_u64, 0..40_u64, 0..8_u8);
    prop::collection::vec(operation, 1..40).prop_map(|operations| {
        let mut value = 0;
        let mut seen = Vec::new();
        for (number, (is_write, before, after, luck)) in (1_u32..).zip(operations) {
            let at = u64::from(number) * 10;
            let (invoked, completed) = (at.saturating_sub(before), at + after);
            let input = if is_write {
                Input::Write(number)
            } else {
                Input::Read
            };
            // One in eight has no answer; half of those are not executed.
            let is_known = luck != 0;
            if is_write && (is_known || number % 2 == 0) {
                value = number;
            }
            seen.push(if is_known {
                Operation::known(input, invoked, completed, value)
            } else {
                Operation::unknown(input, invoked)
            });
        }
        seen
    })
}

/// Tries every order of a short history: the definition itself.
fn by_trying_everything(seen: &[Seen]) -> bool {
    fn search(seen: &[Seen], left: &BTreeSet<usize>, state: u32) -> bool {
        if left.iter().all(|number| seen[*number].completed.is_none()) {
            return true;
        }
        let ends = |number: &usize| seen[*number].completed.as_ref().map(|(at, _)| *at);
        let first_end = left.iter().filter_map(ends).min().unwrap_or(u64::MAX);
        left.iter().any(|number| {
            let operation = &seen[*number];
            let output = operation.completed.as_ref().map(|(_, output)| output);
            let mut rest = left.clone();
            rest.remove(number);
            operation.invoked <= first_end
                && Register
                    .step(&state, &operation.input, output)
                    .is_some_and(|next| search(seen, &rest, next))
        })
    }
    search(seen, &(0..seen.len()).collect(), 0)
}

proptest! {
    #[test]
    fn histories_of_one_thread_are_found_linearizable(seen in made_by_one_thread()) {
        prop_assert!(check(&Register, &seen, PLENTY).is_linearizable());
    }

    #[test]
    fn a_stale_read_put_in_is_found(seen in made_by_one_thread(), which in any::<prop::sample::Index>()) {
        // After everything: the last value is known, and an older one is read.
        let mut seen = seen;
        let end = seen.iter().map(|op| op.completed.as_ref().map_or(op.invoked, |(at, _)| *at));
        let end = end.max().unwrap_or(0);
        let newest = u32::try_from(seen.len()).unwrap() + 1;
        seen.push(Operation::known(Input::Write(newest), end + 1, end + 2, newest));
        // A write without an answer may be executed as late as this.
        let known = |op: &Seen| op.completed.is_some();
        let old: Vec<u32> = seen[..seen.len() - 1].iter().filter(|op| known(op)).filter_map(|op| match op.input {
            Input::Write(value) => Some(value),
            Input::Read => None,
        }).chain([0]).collect();
        let stale = old[which.index(old.len())];
        seen.push(Operation::known(Input::Read, end + 3, end + 4, stale));
        let verdict = check(&Register, &seen, PLENTY);
        prop_assert!(matches!(verdict, Verdict::Impossible { .. }), "{verdict:?}");
    }

    #[test]
    fn every_verdict_is_the_definitions(
        seen in made_by_one_thread(),
        lies in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u32), 0..3),
    ) {
        let mut seen = seen;
        seen.truncate(6);
        // Few values, so that equal writes meet.
        for operation in &mut seen {
            if let Input::Write(value) = &mut operation.input {
                *value %= 3;
            }
            if let Some((_, output)) = &mut operation.completed {
                *output %= 3;
            }
        }
        for (which, lie) in lies {
            let which = which.index(seen.len());
            if seen[which].input == Input::Read && let Some((_, output)) = &mut seen[which].completed {
                *output = lie;
            }
        }
        let verdict = check(&Register, &seen, PLENTY);
        prop_assert_eq!(verdict.is_linearizable(), by_trying_everything(&seen), "{:?}", verdict);
    }
}
