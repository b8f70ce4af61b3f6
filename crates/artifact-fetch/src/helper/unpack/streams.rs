//! Decompression, with bounds on a decoder's memory.

use std::fs::File;
use std::io::{self, BufReader, Read};

use artifact::Compression;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::bzip2::Bzip2;

/// Memory of the decoder for xz, in KiB: the highest level of the command needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// Opens the content of a compressed file. Files of several streams in a row are one content.
pub(super) fn open(blob: File, compression: Compression) -> Result<Box<dyn Read>, String> {
    let blob = BufReader::with_capacity(1 << 16, blob);
    Ok(match compression {
        Compression::None => Box::new(blob),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(blob)),
        Compression::Bzip2 => Box::new(Bzip2::new(blob)),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(
            blob,
            true,
            XZ_MEMORY_KIB,
        )),
        Compression::Zstd => Box::new(Zstd::new(blob)),
    })
}

/// The frames of a file in the format of zstd.
struct Zstd<R> {
    source: Peekable<R>,
    /// `None`: between frames.
    frame: Option<Box<FrameDecoder>>,
}

impl<R: Read> Zstd<R> {
    fn new(source: R) -> Self {
        Self {
            source: Peekable {
                source,
                first: None,
            },
            frame: None,
        }
    }

    /// Reads the header of the next frame, and skips a frame without content.
    fn begin(&mut self) -> io::Result<()> {
        let mut frame = Box::new(FrameDecoder::new());
        match frame.init(&mut self.source) {
            Ok(()) => self.frame = Some(frame),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = (&mut self.source).take(u64::from(length));
                io::copy(&mut skipped, &mut io::sink())?;
            }
            Err(error) => return Err(invalid(error)),
        }
        Ok(())
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(frame) = &mut self.frame else {
                if self.source.is_at_end()? {
                    return Ok(0);
                }
                self.begin()?;
                continue;
            };
            while frame.can_collect() == 0 && !frame.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                frame.decode_blocks(&mut self.source, one).map_err(invalid)?;
            }
            let count = frame.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let stored = frame.get_checksum_from_data();
            if stored.is_some() && stored != frame.get_calculated_checksum() {
                return Err(invalid("the checksum of the content is wrong"));
            }
            self.frame = None;
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// A source whose end can be seen.
struct Peekable<R> {
    source: R,
    first: Option<u8>,
}

impl<R: Read> Peekable<R> {
    fn is_at_end(&mut self) -> io::Result<bool> {
        if self.first.is_some() {
            return Ok(false);
        }
        let mut byte = [0];
        if self.source.read(&mut byte)? == 0 {
            return Ok(true);
        }
        self.first = Some(byte[0]);
        Ok(false)
    }
}

impl<R: Read> Read for Peekable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.first, buffer.first_mut()) {
            (Some(byte), Some(place)) => {
                *place = byte;
                self.first = None;
                Ok(1)
            }
            _ => self.source.read(buffer),
        }
    }
}
