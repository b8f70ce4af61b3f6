//! Entry points for fuzzing the decoding of stored data. Not an API.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    config::Config,
    error::Corruption,
    machine::{Identity, Machine},
    record::Revision,
    storage::{
        Contents,
        codec::{decode_compact_revision, decode_lease, decode_record, seal},
    },
};

/// Opens a store with `data` as the entries of its file. Either that fails with a
/// [`Corruption`], or the store works: it compacts, hashes, lets leases end, and counts on.
///
/// Shape of `data`: pieces of a kind (one byte: 0 record, 1 lease, 2 compact revision; other values
/// are taken modulo 3), a key (16 bytes), a length (one byte) and that many bytes of entry. Bit 7 of
/// the kind requests a correct checksum; without it no input would pass the check.
///
/// # Errors
/// The reported corruption.
pub fn open(data: &[u8]) -> Result<(), Corruption> {
    let (mut records, mut leases) = (BTreeMap::new(), BTreeMap::new());
    let mut compact_revision = crate::mvcc::NEVER_COMPACTED;
    for piece in Pieces(data) {
        match piece.kind % 3 {
            0 => {
                let revision = Revision {
                    main: piece.first,
                    sub: piece.second,
                };
                records.insert(revision, decode_record(revision, &piece.entry)?);
            }
            1 => {
                leases.insert(piece.first, decode_lease(piece.first, &piece.entry)?);
            }
            _ => compact_revision = decode_compact_revision(piece.first)?,
        }
    }
    let contents = Contents {
        // As read from a file: ordered, each key once.
        records: records.into_values().collect(),
        leases: leases.into_iter().collect(),
        compact_revision,
        opened: 1,
    };
    let identity = Identity {
        cluster_id: 1,
        member_id: 1,
        raft_term: 1,
    };
    let mut machine = Machine::restore(identity, &Config::in_memory(), contents)?;
    let far_away = Duration::from_secs(1 << 40);
    while machine.next_tick().is_some() {
        machine.tick(far_away);
        machine.publish();
    }
    // Of a restored store, no revision but a compacted one is refused.
    let current = machine.mvcc().visible();
    assert!(machine.mvcc().hash(current).is_ok());
    Ok(())
}

/// One piece of the input.
struct Piece {
    kind: u8,
    first: i64,
    second: i64,
    entry: Vec<u8>,
}

/// Splits the input into pieces; an incomplete last one is left out.
struct Pieces<'a>(&'a [u8]);

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let (head, rest) = self.0.split_first_chunk::<18>()?;
        let (entry, rest) = rest.split_at_checked(usize::from(head[17]))?;
        self.0 = rest;
        let number = |bytes: &[u8]| i64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        let is_sealed = head[0] & 0x80 != 0;
        Some(Piece {
            kind: head[0] & 0x7f,
            first: number(&head[1..9]),
            second: number(&head[9..17]),
            entry: if is_sealed {
                seal(entry.len(), |sealed| sealed.extend_from_slice(entry))
            } else {
                entry.to_vec()
            },
        })
    }
}
