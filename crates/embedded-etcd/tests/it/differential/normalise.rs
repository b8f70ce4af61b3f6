//! Makes messages of watch streams, and ties in sorted answers, comparable.

use std::collections::BTreeMap;

use etcd_client::proto::{PbEvent, PbKeyValue, PbRangeRequest, PbWatchResponse};

/// The content of one watch, without message boundaries.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    Created {
        revision: i64,
    },
    Refused {
        revision: i64,
        reason: String,
    },
    Canceled {
        revision: i64,
    },
    Compacted {
        revision: i64,
        compact_revision: i64,
    },
    Events {
        revision: i64,
        events: Vec<PbEvent>,
    },
}

/// The content of one stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stream {
    /// By watch id; -1 for messages of no watch.
    pub(super) watches: BTreeMap<i64, Vec<Heard>>,
    /// The revisions reported for the whole stream, repetitions left out.
    pub(super) progress: Vec<i64>,
    /// The number of times the last of them was reported.
    repetitions: Ignored<usize>,
}

/// Not compared.
#[derive(Clone, Debug, Default)]
struct Ignored<T>(T);

impl<T> PartialEq for Ignored<T> {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Stream {
    pub(super) fn of(responses: Vec<PbWatchResponse>) -> Self {
        let mut stream = Self::default();
        for response in responses {
            stream.add(response);
        }
        stream
    }

    /// Watches that were created and not ended by the client.
    pub(super) fn active(&self) -> Vec<i64> {
        let is_active = |heard: &[Heard]| {
            let ended = heard.iter().rev().find_map(|heard| match heard {
                Heard::Created { .. } => Some(false),
                Heard::Canceled { .. } => Some(true),
                _ => None,
            });
            ended == Some(false)
        };
        self.watches
            .iter()
            .filter(|(_, heard)| is_active(heard))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Returns the number of times `revision` was reported last, with no other report between.
    pub(super) fn reports_of(&self, revision: i64) -> usize {
        if self.progress.last() == Some(&revision) {
            self.repetitions.0
        } else {
            0
        }
    }

    /// All but events, by watch, for messages about the stream.
    pub(super) fn controls(&self) -> Vec<(i64, Vec<&Heard>)> {
        let is_control =
            |heard: &&Heard| !matches!(heard, Heard::Events { .. } | Heard::Refused { .. });
        self.watches
            .iter()
            .map(|(id, heard)| (*id, heard.iter().filter(is_control).collect()))
            .collect()
    }

    fn add(&mut self, response: PbWatchResponse) {
        let revision = response.header.as_ref().unwrap().revision;
        assert!(!response.fragment, "nothing here is large");
        let heard = self.watches.entry(response.watch_id).or_default();
        match (response.created, response.canceled) {
            (true, true) => {
                let refused = Heard::Refused {
                    revision,
                    reason: response.cancel_reason,
                };
                // How often the markers of `Side::control` are needed is a matter of timing.
                if heard.last() != Some(&refused) {
                    heard.push(refused);
                }
            }
            (true, false) => heard.push(Heard::Created { revision }),
            (false, true) if response.compact_revision != 0 => heard.push(Heard::Compacted {
                revision,
                compact_revision: response.compact_revision,
            }),
            (false, true) => {
                assert_eq!(response.cancel_reason, "");
                heard.push(Heard::Canceled { revision });
            }
            (false, false) if response.events.is_empty() => {
                assert_eq!(response.watch_id, -1, "only asked-for progress is compared");
                self.watches.retain(|_, heard| !heard.is_empty());
                if self.progress.last() != Some(&revision) {
                    self.progress.push(revision);
                    self.repetitions.0 = 0;
                }
                self.repetitions.0 += 1;
            }
            (false, false) => add_events(heard, revision, response.events),
        }
    }
}

/// Adds events, a whole revision to each item.
fn add_events(heard: &mut Vec<Heard>, header_revision: i64, events: Vec<PbEvent>) {
    let mut of_this_message: Vec<Heard> = Vec::new();
    for event in events {
        let event_revision = event.kv.as_ref().unwrap().mod_revision;
        assert!(
            event_revision <= header_revision,
            "an event of {event_revision} came under {header_revision}"
        );
        if let Some(Heard::Events { revision, events }) = of_this_message.last_mut()
            && *revision == event_revision
        {
            events.push(event);
            continue;
        }
        of_this_message.push(Heard::Events {
            revision: event_revision,
            events: vec![event],
        });
    }
    // A revision cut over two messages stays cut, and so differs from one that is not.
    heard.append(&mut of_this_message);
}

/// etcd's numbers for the sort targets of a range.
const BY_VERSION: i32 = 1;
const BY_CREATE: i32 = 2;
const BY_MOD: i32 = 3;
const BY_VALUE: i32 = 4;

/// Up to here Go's sort is stable, and so etcd's order of equal keys is known.
const STABLY_SORTED: usize = 12;

/// Returns true if two sorted answers are the same but for the order of equal keys, which etcd
/// leaves open in large answers.
pub(super) fn same_but_for_ties(
    request: &PbRangeRequest,
    ours: &[PbKeyValue],
    theirs: &[PbKeyValue],
    count: i64,
) -> bool {
    if usize::try_from(count).unwrap() <= STABLY_SORTED || ours.len() != theirs.len() {
        return ours == theirs;
    }
    let sorted_by = |kv: &PbKeyValue| match request.sort_target {
        BY_VERSION => (kv.version, Vec::new()),
        BY_CREATE => (kv.create_revision, Vec::new()),
        BY_MOD => (kv.mod_revision, Vec::new()),
        // Left out of the answer, so nothing is known of the order but by whole answers.
        BY_VALUE if request.keys_only => (0, Vec::new()),
        BY_VALUE => (0, kv.value.clone()),
        _ => (0, kv.key.clone()),
    };
    let same_order = ours.iter().map(sorted_by).eq(theirs.iter().map(sorted_by));
    // A limit may cut between equal ones.
    let by_key = |kvs: &[PbKeyValue]| {
        let mut kvs = kvs.to_vec();
        kvs.sort_by(|a, b| a.key.cmp(&b.key));
        kvs
    };
    same_order && (request.limit > 0 || by_key(ours) == by_key(theirs))
}
