//! Messages to the controller, and the time for which the relay is unconfirmed.

use super::*;

const TTL: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn node(number: u128) -> NodeId {
    NodeId::from_random(number)
}

#[expect(
    clippy::disallowed_methods,
    reason = "any time does, and all others follow from it"
)]
fn buffer() -> (HeartbeatBuffer, Instant) {
    let now = Instant::now();
    (HeartbeatBuffer::new(TTL, now), now)
}

#[test]
fn two_heartbeats_of_a_node_are_passed_on_once() {
    let (mut heard, now) = buffer();
    heard.record(node(1), now);
    heard.record(node(1), now);
    assert_eq!(heard.next_message(now), Some((1, vec![node(1)])));
    assert_eq!(heard.next_message(now), None);
}

#[test]
fn unacknowledged_heartbeats_are_sent_to_the_next_leader() {
    let (mut heard, now) = buffer();
    for number in 1..=3 {
        heard.record(node(number), now);
        heard.next_message(now);
    }
    heard.acked(1);
    heard.disconnected();
    let mut again = vec![node(2), node(3)];
    again.sort_unstable();
    assert_eq!(heard.next_message(now), Some((4, again)));
}

#[test]
fn a_repeated_heartbeat_is_as_old_as_the_newest() {
    let (mut heard, now) = buffer();
    let later = now + TTL / 2;
    heard.record(node(1), now);
    heard.next_message(now);
    heard.record(node(1), later);
    heard.disconnected();
    assert_eq!(heard.next_message(later + TTL), Some((2, vec![node(1)])));

    heard.disconnected();
    assert_eq!(heard.next_message(later + TTL * 2), Some((3, vec![])));
}

#[test]
fn an_old_heartbeat_is_not_passed_on() {
    let (mut heard, now) = buffer();
    heard.record(node(1), now);
    heard.record(node(2), now + TTL);
    let late = now + TTL + MS;
    assert_eq!(heard.next_message(late), Some((1, vec![node(2)])));
    assert_eq!(heard.pending_count(), 0);
}

#[test]
fn messages_to_a_leader_that_never_answers_are_limited() {
    let (mut heard, now) = buffer();
    let mut sent = 0;
    for number in 0..1_000 {
        heard.record(node(number), now);
        sent += usize::from(heard.next_message(now).is_some());
    }
    assert_eq!(sent, MAX_UNACKED);
    assert_eq!(heard.pending_count(), 1_000 - MAX_UNACKED);
    heard.acked(1);
    let (_, all) = heard.next_message(now).unwrap();
    assert_eq!(
        all.len(),
        1_000 - MAX_UNACKED,
        "what waited goes in one message"
    );
}

#[test]
fn a_gateway_without_nodes_sends_an_empty_message_ten_times_per_ttl() {
    let (mut heard, began) = buffer();
    let mut sent = 0;
    for step in 0..100_u32 {
        if let Some((sequence, nodes)) = heard.next_message(began + step * TTL / 100) {
            assert_eq!(nodes, []);
            heard.acked(sequence);
            sent += 1;
        }
    }
    assert_eq!(sent, KEEPALIVES_PER_TTL);
    // The first on another stream is due at once.
    let end = began + 99 * TTL / 100;
    assert_eq!(heard.next_message(end), None);
    heard.disconnected();
    assert!(heard.next_message(end).is_some());
}

#[test]
fn a_relay_is_confirmed_as_of_the_sending_of_the_acknowledged_message() {
    let (mut heard, began) = buffer();
    let at = |seconds: u32| began + seconds * SECOND;
    assert_eq!(heard.unconfirmed_for(at(4)), 4 * SECOND, "since the start");
    let (first, _) = heard.next_message(at(4)).unwrap();
    heard.record(node(1), at(5));
    let (second, _) = heard.next_message(at(5)).unwrap();
    assert_eq!(
        heard.unconfirmed_for(at(6)),
        6 * SECOND,
        "sent is not acknowledged"
    );
    heard.acked(first);
    assert_eq!(heard.unconfirmed_for(at(6)), 2 * SECOND);
    heard.acked(second);
    assert_eq!(heard.unconfirmed_for(at(6)), SECOND);
    heard.acked(first);
    assert_eq!(
        heard.unconfirmed_for(at(6)),
        SECOND,
        "a late answer takes nothing back"
    );
    heard.next_message(at(7)).unwrap();
    heard.disconnected();
    assert_eq!(
        heard.unconfirmed_for(at(9)),
        4 * SECOND,
        "neither does the end of a stream"
    );
}
