//! Messages of a watch stream, as values and in etcd's encoding.

use std::sync::Arc;

use etcd_client::proto::{PbEvent, PbResponseHeader, PbWatchResponse};
use prost::Message as _;

use crate::record::Record;

/// The watch id of answers that concern no watch, or all of the stream.
pub(super) const NO_WATCH: i64 = -1;

/// etcd's `Event.EventType`.
const EVENT_PUT: i32 = 0;
const EVENT_DELETE: i32 = 1;

/// One message to the client of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The watch was created.
    Created { watch_id: i64, revision: i64 },
    /// The watch was not created.
    Refused { revision: i64, reason: String },
    /// The client's cancellation was executed.
    Canceled { watch_id: i64, revision: i64 },
    /// The watch needs compacted revisions.
    Compacted {
        watch_id: i64,
        compact_revision: i64,
    },
    /// Everything up to `revision` has been sent.
    Progress { watch_id: i64, revision: i64 },
    /// Whole revisions of events.
    Events {
        watch_id: i64,
        /// The store's revision when the message was created.
        revision: i64,
        records: Arc<[Arc<Record>]>,
        /// Previous versions of the keys, if requested; then as long as `records`.
        previous: Option<Vec<Option<Arc<Record>>>>,
        /// May be fragmented when it is large.
        fragment: bool,
    },
}

impl Message {
    /// Events in the message.
    #[must_use]
    pub fn events(&self) -> usize {
        match self {
            Self::Events { records, .. } => records.len(),
            _ => 0,
        }
    }

    /// The message as etcd's, under `header` but for its revision. Only a large one of a watch that
    /// allowed it comes in pieces, each under `max_bytes` unless a single event is not.
    #[must_use]
    pub fn into_responses(
        self,
        header: PbResponseHeader,
        max_bytes: usize,
    ) -> Vec<PbWatchResponse> {
        let response = |watch_id, revision| PbWatchResponse {
            header: Some(PbResponseHeader { revision, ..header }),
            watch_id,
            ..PbWatchResponse::default()
        };
        match self {
            Self::Created { watch_id, revision } => vec![PbWatchResponse {
                created: true,
                ..response(watch_id, revision)
            }],
            Self::Refused { revision, reason } => vec![PbWatchResponse {
                created: true,
                canceled: true,
                cancel_reason: reason,
                ..response(NO_WATCH, revision)
            }],
            Self::Canceled { watch_id, revision } => vec![PbWatchResponse {
                canceled: true,
                ..response(watch_id, revision)
            }],
            Self::Compacted {
                watch_id,
                compact_revision,
            } => vec![PbWatchResponse {
                canceled: true,
                compact_revision,
                // etcd leaves the revision of this header out.
                ..response(watch_id, 0)
            }],
            Self::Progress { watch_id, revision } => vec![response(watch_id, revision)],
            Self::Events {
                watch_id,
                revision,
                records,
                previous,
                fragment,
            } => {
                let whole = PbWatchResponse {
                    events: to_events(&records, previous.as_deref()),
                    ..response(watch_id, revision)
                };
                if fragment {
                    cut(whole, max_bytes)
                } else {
                    vec![whole]
                }
            }
        }
    }
}

fn to_events(records: &[Arc<Record>], previous: Option<&[Option<Arc<Record>>]>) -> Vec<PbEvent> {
    records
        .iter()
        .enumerate()
        .map(|(position, record)| {
            let previous = previous.and_then(|previous| previous[position].as_ref());
            PbEvent {
                r#type: if record.is_tombstone() {
                    EVENT_DELETE
                } else {
                    EVENT_PUT
                },
                kv: Some(record.to_key_value(false)),
                prev_kv: previous.map(|previous| previous.to_key_value(false)),
            }
        })
        .collect()
}

/// Splits a response between events; all fragments but the last are marked.
///
/// Source: etcd's `sendFragments`, sizes included, so that the pieces are the same.
fn cut(whole: PbWatchResponse, max_bytes: usize) -> Vec<PbWatchResponse> {
    if whole.encoded_len() < max_bytes || whole.events.len() < 2 {
        return vec![whole];
    }
    // A response with events has neither of the control fields.
    let empty = PbWatchResponse {
        header: whole.header,
        watch_id: whole.watch_id,
        fragment: true,
        ..PbWatchResponse::default()
    };
    let size_of_empty = empty.encoded_len();
    let mut pieces = Vec::new();
    let (mut piece, mut size) = (empty.clone(), size_of_empty);
    for event in whole.events {
        let size_of_event = size_of_field(&event);
        if !piece.events.is_empty() && size + size_of_event >= max_bytes {
            pieces.push(std::mem::replace(&mut piece, empty.clone()));
            size = size_of_empty;
        }
        size += size_of_event;
        piece.events.push(event);
    }
    piece.fragment = false;
    pieces.push(piece);
    pieces
}

/// Bytes of an event inside a response: its tag, its length, and itself.
fn size_of_field(event: &PbEvent) -> usize {
    const TAG: usize = 1;
    let size = event.encoded_len();
    TAG + prost::length_delimiter_len(size) + size
}
