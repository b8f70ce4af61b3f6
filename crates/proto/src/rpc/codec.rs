//! A codec of messages that are encoded already.

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Writes and reads messages as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodedCodec;

impl Codec for EncodedCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

pub fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

/// # Errors
/// INTERNAL: the bytes are no such message.
pub fn decoded<A: Message + Default>(bytes: Bytes) -> Result<A, Status> {
    let decoded = A::decode(bytes);
    decoded.map_err(|error| Status::internal(format!("the message cannot be decoded: {error}")))
}
