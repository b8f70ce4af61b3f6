//! Files in the format of bzip2, with several streams in a row as parallel compressors write them.
//!
//! The library reads one stream. A stream begins with ten bytes that occur within another one with a
//! probability of 2⁻⁸⁰, so the file is split there.

use std::io::{self, Read};

use bzip2_rs::decoder::{Decoder, ReadState, WriteState};

/// After `BZh` and a digit: the start of a block, and the end of a stream without blocks.
const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
const HEADER: usize = 10;
const BUFFER: usize = 1 << 16;
/// Empty writes to the decoder in a row. After the last byte it needs two: one for its last block, one
/// for the end of the stream.
const EMPTY_WRITES_MAX: u32 = 3;

pub(super) struct Bzip2<R> {
    decoder: Decoder,
    source: Streams<R>,
    input: Vec<u8>,
    is_done: bool,
}

impl<R: Read> Bzip2<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            decoder: Decoder::new(),
            source: Streams {
                source,
                ahead: Vec::new(),
                has_ended: false,
                is_at_start: true,
            },
            input: vec![0; BUFFER],
            is_done: false,
        }
    }
}

impl<R: Read> Read for Bzip2<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.is_done {
            return Ok(0);
        }
        let mut empty_writes = 0;
        loop {
            match self.decoder.read(buffer)? {
                ReadState::Read(count) => return Ok(count),
                ReadState::Eof => {
                    // Bytes of the stream that the decoder did not need.
                    while self.source.read(&mut self.input)? > 0 {}
                    if !self.source.begin_next()? {
                        self.is_done = true;
                        return Ok(0);
                    }
                    self.decoder = Decoder::new();
                    empty_writes = 0;
                }
                ReadState::NeedsWrite(space) => {
                    let space = space.min(BUFFER);
                    let count = self.source.read(&mut self.input[..space])?;
                    empty_writes = if count == 0 { empty_writes + 1 } else { 0 };
                    if empty_writes > EMPTY_WRITES_MAX {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    match self.decoder.write(&self.input[..count])? {
                        WriteState::Written(written) if written == count => {}
                        _ => return Err(io::Error::other("the decoder took no input")),
                    }
                }
            }
        }
    }
}

/// A file, read stream by stream.
struct Streams<R> {
    source: R,
    ahead: Vec<u8>,
    has_ended: bool,
    is_at_start: bool,
}

impl<R: Read> Streams<R> {
    fn fill(&mut self) -> io::Result<()> {
        while !self.has_ended && self.ahead.len() < HEADER {
            let length = self.ahead.len();
            self.ahead.resize(length + BUFFER, 0);
            let count = self.source.read(&mut self.ahead[length..])?;
            self.ahead.truncate(length + count);
            self.has_ended = count == 0;
        }
        Ok(())
    }

    /// Returns whether another stream follows; the next read is of it.
    fn begin_next(&mut self) -> io::Result<bool> {
        self.fill()?;
        self.is_at_start = true;
        Ok(!self.ahead.is_empty())
    }

    /// Reads bytes of the current stream; 0 at its end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let from = usize::from(self.is_at_start);
        let next = self.ahead.get(from..).unwrap_or_default();
        let next = next.windows(HEADER).position(is_header);
        let length = match next {
            Some(position) => from + position,
            None if self.has_ended => self.ahead.len(),
            None => self.ahead.len().saturating_sub(HEADER - 1),
        };
        let count = length.min(buffer.len());
        buffer[..count].copy_from_slice(&self.ahead[..count]);
        self.ahead.drain(..count);
        self.is_at_start &= count == 0;
        Ok(count)
    }
}

fn is_header(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BZh")
        && (b'1'..=b'9').contains(&bytes[3])
        && (bytes[4..] == BLOCK || bytes[4..] == END)
}
