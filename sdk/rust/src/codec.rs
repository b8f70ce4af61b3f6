//! A codec of messages that are encoded already, so that all methods share one copy of tonic's machinery.

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EncodedCodec;

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

pub(crate) fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

/// # Errors
/// The bytes are no such message.
pub(crate) fn decoded<A: Message + Default>(bytes: Bytes) -> Result<A, Status> {
    let decoded = A::decode(bytes);
    decoded.map_err(|error| Status::internal(format!("the answer cannot be decoded: {error}")))
}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tonic_health::pb::HealthCheckRequest;

    use super::*;

    #[test]
    fn a_message_survives_and_other_bytes_are_an_error() {
        let service = "kafila.v1.Jobs".to_owned();
        let request = HealthCheckRequest { service };
        let again: HealthCheckRequest = decoded(encoded(&request)).unwrap();
        assert_eq!(again, request);
        let cut = encoded(&request).slice(..4);
        let status = decoded::<HealthCheckRequest>(cut).unwrap_err();
        assert_eq!(status.code(), Code::Internal);
    }
}
