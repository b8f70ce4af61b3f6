//! Hashes of introductions: of tokens' secrets and public keys, and the id of a node, which follows from its
//! key.

use data_encoding::HEXLOWER;
use model::NodeId;
use ring::digest;

/// Returns the SHA-256 of the parts together, hexadecimal.
pub fn sha256(parts: &[&[u8]]) -> String {
    HEXLOWER.encode(&hash(parts))
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// Returns the id of a node with this public key, which no caller can choose.
pub fn node_id_of(public_key: &[u8]) -> NodeId {
    let hash = hash(&[b"kafila node id", public_key]);
    let mut bits = [0; 16];
    bits.copy_from_slice(&hash[..16]);
    NodeId::from_random(u128::from_be_bytes(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_node_follows_from_its_key() {
        assert_eq!(node_id_of(b"one"), node_id_of(b"one"));
        assert_ne!(node_id_of(b"one"), node_id_of(b"two"));
    }

    #[test]
    fn a_hash_is_that_of_the_parts_together() {
        // Source: FIPS 180-4, the example "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&[b"a", b"bc"]), abc);
    }
}
