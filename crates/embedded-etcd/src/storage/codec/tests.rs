//! Written entries are read back; any other input is refused without a panic.

use proptest::prelude::*;

use super::*;

fn put() -> Record {
    Record {
        key: Bytes::from_static(b"k"),
        value: Bytes::from_static(b"v"),
        create_revision: 3,
        revision: Revision { main: 5, sub: 1 },
        version: 2,
        lease: 7,
    }
}

fn fault(revision: Revision, record: &Record) -> &'static str {
    match decode_record(revision, &encode_record(record)) {
        Err(Corruption::Record { main, sub, fault }) => {
            assert_eq!((main, sub), (revision.main, revision.sub));
            fault
        }
        other => panic!("{other:?} is not a damaged record"),
    }
}

#[test]
fn a_record_comes_back_as_it_was() {
    let tombstone = Record::tombstone(Bytes::from_static(b"k"), Revision { main: 9, sub: 0 });
    for record in [put(), tombstone] {
        let entry = encode_record(&record);
        assert_eq!(decode_record(record.revision, &entry), Ok(record));
    }
}

#[test]
fn a_record_that_no_write_makes_is_refused() {
    let other_key = Revision { main: 6, sub: 1 };
    assert_eq!(fault(other_key, &put()), "does not belong to its revision");
    let table = [
        (
            Record {
                key: Bytes::new(),
                ..put()
            },
            "has no key",
        ),
        (
            Record {
                version: 0,
                ..put()
            },
            "is a deletion with a value",
        ),
        (
            Record {
                version: -1,
                ..put()
            },
            "has an impossible version",
        ),
        (
            Record {
                version: 4,
                ..put()
            },
            "has an impossible version",
        ),
        (
            Record {
                create_revision: 6,
                ..put()
            },
            "has an impossible version",
        ),
        (
            Record {
                create_revision: 0,
                ..put()
            },
            "has an impossible version",
        ),
    ];
    for (record, expected) in table {
        assert_eq!(fault(record.revision, &record), expected, "{record:?}");
    }
}

#[test]
fn a_revision_beyond_counting_is_refused() {
    for (main, sub) in [(0, 0), (-1, 0), (1, -1), (i64::MAX, 0), (1, i64::MAX)] {
        let record = Record::tombstone(Bytes::from_static(b"k"), Revision { main, sub });
        let expected = "does not belong to its revision";
        assert_eq!(fault(record.revision, &record), expected, "{main}/{sub}");
    }
}

#[test]
fn every_flipped_bit_of_an_entry_is_noticed() {
    let entry = encode_record(&put());
    for position in 0..entry.len() * 8 {
        let mut flipped = entry.clone();
        flipped[position / 8] ^= 1 << (position % 8);
        let found = decode_record(put().revision, &flipped);
        assert!(found.is_err(), "bit {position}: {found:?}");
    }
    for length in 0..entry.len() {
        let found = decode_record(put().revision, &entry[..length]);
        assert!(found.is_err(), "cut to {length}: {found:?}");
    }
}

#[test]
fn a_lease_comes_back_if_it_can_have_been_granted() {
    for (id, ttl, comes_back) in [
        (1, 2, true),
        (-1, 9_000_000_000, true),
        (0, 2, false),
        (1, 1, false),
        (1, 9_000_000_001, false),
        (1, -5, false),
    ] {
        let found = decode_lease(id, &encode_lease(ttl));
        assert_eq!(found.ok(), comes_back.then_some(ttl), "{id} {ttl}");
    }
    let too_long = seal(9, |entry| entry.extend_from_slice(&[0; 9]));
    assert!(decode_lease(1, &too_long).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_opening_panic(data: Vec<u8>) {
        // Damage is an error, which is as good as none here.
        let _ = crate::fuzzing::open(&data);
    }

    /// Bytes that look like a file's: keys and lengths that fit, checksums that are right.
    #[test]
    fn no_likely_contents_make_opening_panic(
        pieces in prop::collection::vec(
            (0_u8..3, -1_i64..12, 0_i64..3, -1_i64..12, -1_i64..4, 0_i64..4, "[ab]{0,1}"),
            0..12,
        ),
    ) {
        let mut data = Vec::new();
        for (kind, main, sub, create_revision, version, lease, key) in pieces {
            let body = match kind {
                0 => PbKeyValue {
                    key: key.into_bytes(),
                    create_revision,
                    mod_revision: main,
                    version,
                    value: Vec::new(),
                    lease,
                }
                .encode_to_vec(),
                _ => create_revision.to_be_bytes().to_vec(),
            };
            data.push(kind | 0x80);
            data.extend_from_slice(&main.to_be_bytes());
            data.extend_from_slice(&sub.to_be_bytes());
            data.push(u8::try_from(body.len()).unwrap());
            data.extend_from_slice(&body);
        }
        let _ = crate::fuzzing::open(&data);
    }
}

#[test]
fn the_checksum_is_crc_32c() {
    // The check value from the catalogue of CRC algorithms, CRC-32/ISCSI.
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    assert_eq!(crc32c(b""), 0);
}

#[test]
fn checksums_of_parts_add_up_to_the_whole() {
    let bytes: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(37)).collect();
    for middle in 0..bytes.len() {
        let (head, tail) = bytes.split_at(middle);
        let sum = crc32c::crc32c_append(crc32c(head), tail);
        assert_eq!(sum, crc32c(&bytes), "{middle}");
    }
}
