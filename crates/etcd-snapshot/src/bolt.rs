//! Reader of bolt databases: the entries of one bucket, in the order of their keys.
//!
//! Pages are read on demand, so memory holds one path of the tree. Every number that comes from the
//! file is checked against the page or the file, so a damaged file is an error and never a panic.

use std::io::{Read, Seek, SeekFrom};

use fnv1a::Fnv64;

use crate::SnapshotError;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Size of a page's header; the first element follows it.
const HEADER: usize = 16;
/// Size of an element in a branch or leaf page.
const ELEMENT: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META: u16 = 0x04;
/// Flag of a leaf element whose value is a bucket.
const BUCKET: u32 = 0x01;
/// Deepest tree: with two elements a page it holds more entries than a file can have.
const MAX_DEPTH: usize = 64;
/// Sizes that bolt uses: those of the machines' memory pages.
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 512..=(1 << 16);
/// Most bytes of one page with its overflow: etcd's largest database.
const MAX_PAGE_BYTES: usize = 1 << 30;

/// A database.
#[derive(Debug)]
pub struct Database<F> {
    file: F,
    size: u64,
    page_bytes: u64,
    /// Page of the root bucket.
    root: u64,
}

impl<F: Read + Seek> Database<F> {
    /// Opens the database in the first `size` bytes of `file`.
    ///
    /// # Errors
    /// It has no valid meta page.
    pub fn open(mut file: F, size: u64) -> Result<Self, SnapshotError> {
        // The second meta page starts after the first page, whose size only a meta page tells.
        let first = read_meta(&mut file, 0);
        let sizes: Vec<u32> = match &first {
            Ok(meta) => vec![meta.page_bytes],
            Err(_) => (9..=16).map(|power| 1 << power).collect(),
        };
        let second = sizes.into_iter().find_map(|bytes| {
            let meta = read_meta(&mut file, u64::from(bytes)).ok()?;
            (meta.page_bytes == bytes).then_some(meta)
        });
        let newest = first
            .into_iter()
            .chain(second)
            .max_by_key(|meta| meta.transaction);
        let meta = newest.ok_or(SnapshotError::Invalid("it has no valid meta page"))?;
        Ok(Self {
            file,
            size,
            page_bytes: u64::from(meta.page_bytes),
            root: meta.root,
        })
    }

    /// Calls `each` with every key and value of a bucket at the root.
    ///
    /// # Errors
    /// There is no such bucket, a page is damaged, or the file cannot be read.
    pub fn for_each(
        &mut self,
        bucket: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let mut root = None;
        self.walk(self.root, 0, &mut |flags, key, value| {
            if flags & BUCKET != 0 && key == bucket {
                root = Some(value.to_vec());
            }
            Ok(())
        })?;
        let value = root.ok_or(SnapshotError::Invalid("a bucket is missing"))?;
        let page = number(&value, 0)?;
        let mut each = |_: u32, key: &[u8], value: &[u8]| each(key, value);
        if page == 0 {
            // A small bucket is stored in its own value, after the header of the bucket.
            let inline = value.get(HEADER..).ok_or(DAMAGED)?;
            return elements(inline, &mut each);
        }
        self.walk(page, 0, &mut each)
    }

    fn walk(&mut self, page: u64, depth: usize, each: &mut Each<'_>) -> Result<(), SnapshotError> {
        if depth > MAX_DEPTH {
            return Err(SnapshotError::Invalid("its pages form a circle"));
        }
        let data = self.page(page)?;
        let (flags, count) = header(&data)?;
        match flags {
            LEAF => elements(&data, each),
            BRANCH => {
                for position in 0..count {
                    let at = HEADER + usize::from(position) * ELEMENT;
                    self.walk(number(&data, at + 8)?, depth + 1, each)?;
                }
                Ok(())
            }
            _ => Err(SnapshotError::Invalid("a page is neither leaf nor branch")),
        }
    }

    /// Reads a page with its overflow.
    fn page(&mut self, page: u64) -> Result<Vec<u8>, SnapshotError> {
        let at = page.checked_mul(self.page_bytes).ok_or(DAMAGED)?;
        let mut head = [0; HEADER];
        self.read_at(at, &mut head)?;
        let overflow = u64::from(short_number(&head, 12)?);
        let bytes = (overflow + 1).checked_mul(self.page_bytes);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes
            .filter(|bytes| *bytes <= MAX_PAGE_BYTES)
            .ok_or(DAMAGED)?;
        let end = at.checked_add(bytes as u64).ok_or(DAMAGED)?;
        if number(&head, 0)? != page || end > self.size {
            return Err(DAMAGED);
        }
        let mut data = vec![0; bytes];
        self.read_at(at, &mut data)?;
        Ok(data)
    }

    fn read_at(&mut self, at: u64, data: &mut [u8]) -> Result<(), SnapshotError> {
        let end = at.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(DAMAGED);
        }
        self.file.seek(SeekFrom::Start(at))?;
        Ok(self.file.read_exact(data)?)
    }
}

type Each<'a> = dyn FnMut(u32, &[u8], &[u8]) -> Result<(), SnapshotError> + 'a;

const DAMAGED: SnapshotError = SnapshotError::Invalid("a page is damaged");

struct Meta {
    page_bytes: u32,
    root: u64,
    transaction: u64,
}

fn read_meta(file: &mut (impl Read + Seek), at: u64) -> Result<Meta, SnapshotError> {
    let mut data = [0; HEADER + 64];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut data)?;
    let (flags, _) = header(&data)?;
    let meta = &data[HEADER..];
    let page_bytes = short_number(meta, 8)?;
    let is_valid = flags == META
        && short_number(meta, 0)? == MAGIC
        && short_number(meta, 4)? == VERSION
        && PAGE_BYTES.contains(&page_bytes)
        && number(meta, 56)? == Fnv64::new().bytes(&meta[..56]).finish();
    if !is_valid {
        return Err(SnapshotError::Invalid("it has no valid meta page"));
    }
    Ok(Meta {
        page_bytes,
        root: number(meta, 16)?,
        transaction: number(meta, 48)?,
    })
}

/// Returns the flags and the count of elements of a page.
fn header(page: &[u8]) -> Result<(u16, u16), SnapshotError> {
    let half = |at: usize| -> Result<u16, SnapshotError> {
        let bytes = page.get(at..at + 2).ok_or(DAMAGED)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    Ok((half(8)?, half(10)?))
}

/// Calls `each` with the flags, key and value of each element of a leaf page.
fn elements(page: &[u8], each: &mut Each<'_>) -> Result<(), SnapshotError> {
    let (_, count) = header(page)?;
    for position in 0..count {
        let at = HEADER + usize::from(position) * ELEMENT;
        let field = |offset| short_number(page, at + offset);
        let size = |offset| field(offset).map(|size| size as usize);
        let key_at = at.checked_add(size(4)?).ok_or(DAMAGED)?;
        let value_at = key_at.checked_add(size(8)?).ok_or(DAMAGED)?;
        let end = value_at.checked_add(size(12)?).ok_or(DAMAGED)?;
        let key = page.get(key_at..value_at).ok_or(DAMAGED)?;
        let value = page.get(value_at..end).ok_or(DAMAGED)?;
        each(field(0)?, key, value)?;
    }
    Ok(())
}

fn number(data: &[u8], at: usize) -> Result<u64, SnapshotError> {
    let bytes = data.get(at..at.saturating_add(8)).ok_or(DAMAGED)?;
    bytes
        .try_into()
        .map(u64::from_le_bytes)
        .map_err(|_| DAMAGED)
}

fn short_number(data: &[u8], at: usize) -> Result<u32, SnapshotError> {
    let bytes = data.get(at..at.saturating_add(4)).ok_or(DAMAGED)?;
    bytes
        .try_into()
        .map(u32::from_le_bytes)
        .map_err(|_| DAMAGED)
}
