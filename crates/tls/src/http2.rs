//! The few frames of HTTP/2 that refuse a request in plaintext. Source: RFC 9113.

/// The start of every connection of a client. Source: section 3.4.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const FRAME_HEADER_BYTES: usize = 9;

/// Frame types. Source: section 6.
pub(crate) const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// Error code of section 7.
pub(crate) const INADEQUATE_SECURITY: u8 = 0xc;

/// gRPC status of a request that no retry makes succeed.
pub(crate) const FAILED_PRECONDITION: u8 = 9;

/// Empty settings, the first frame of a server.
pub(crate) const SETTINGS: [u8; FRAME_HEADER_BYTES] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
pub(crate) const SETTINGS_ACK: [u8; FRAME_HEADER_BYTES] = [0, 0, 0, 4, 1, 0, 0, 0, 0];

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes of the payload.
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) stream: u32,
}

impl Frame {
    pub(crate) fn read(header: [u8; FRAME_HEADER_BYTES]) -> Self {
        let [a, b, c, kind, _flags, stream @ ..] = header;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            // The first bit is reserved.
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }
}

/// Returns the answer of a gRPC server to the request on `stream`: a status and no message.
///
/// `message` is printable ASCII without `%`, at most 100 bytes.
pub(crate) fn status(stream: u32, code: u8, message: &str) -> Vec<u8> {
    // HPACK, RFC 7541: index 8 of the static table is `:status: 200`; the others are literals without
    // indexing and without Huffman coding.
    let mut block = vec![0x88];
    literal(&mut block, "content-type", "application/grpc");
    literal(&mut block, "grpc-status", &code.to_string());
    literal(&mut block, "grpc-message", message);
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block)
}

/// Returns the end of a connection on which requests up to `last_stream` were answered.
pub(crate) fn goaway(last_stream: u32, code: u8, message: &str) -> Vec<u8> {
    let mut payload = last_stream.to_be_bytes().to_vec();
    payload.extend([0, 0, 0, code]);
    payload.extend(message.as_bytes());
    frame(GOAWAY, 0, 0, &payload)
}

fn literal(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        let length = u8::try_from(text.len()).expect("texts of this crate are short");
        assert!(length < 0x7f, "longer lengths have another form");
        block.push(length);
        block.extend(text.as_bytes());
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("texts of this crate are short");
    let mut bytes = vec![0, 0, length, kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_stream_and_length() {
        let bytes = goaway(3, INADEQUATE_SECURITY, "why");
        let header = bytes[..FRAME_HEADER_BYTES].try_into().unwrap();
        let read = Frame::read(header);
        assert_eq!((read.length, read.kind, read.stream), (11, GOAWAY, 0));
        assert_eq!(bytes.len(), FRAME_HEADER_BYTES + 11);
        let reserved_bit = [0, 1, 0, HEADERS, 0, 0x80, 0, 0, 5];
        let read = Frame::read(reserved_bit);
        assert_eq!((read.length, read.stream), (256, 5));
    }
}
