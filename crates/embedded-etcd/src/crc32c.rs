//! CRC-32C (Castagnoli): guards what is on disk, and is what etcd hashes its contents with.

/// CRC-32C (Castagnoli).
#[must_use]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// Continues `crc` over further bytes. Eight bytes a step ("slicing by eight").
#[must_use]
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut crc = !crc;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let low = crc.to_le_bytes();
        crc = (0..4).fold(0, |acc, position| {
            let folded = usize::from(word[position] ^ low[position]);
            let plain = usize::from(word[position + 4]);
            acc ^ TABLES[7 - position][folded] ^ TABLES[3 - position][plain]
        });
    }
    for byte in rest {
        let position = usize::from(byte ^ crc.to_le_bytes()[0]);
        crc = TABLES[0][position] ^ (crc >> 8);
    }
    !crc
}

/// `TABLES[n][b]` is the CRC of byte `b` followed by `n` zero bytes.
static TABLES: [[u32; 256]; 8] = make_tables();

const fn make_tables() -> [[u32; 256]; 8] {
    /// The polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    let mut tables = [[0; 256]; 8];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte as usize] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value_comes_out() {
        // From the catalogue of CRC algorithms, CRC-32/ISCSI.
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn pieces_of_any_length_add_up_to_the_whole() {
        let bytes: Vec<u8> = (0..100_u8).map(|byte| byte.wrapping_mul(37)).collect();
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(crc32c_append(crc32c(head), tail), crc32c(&bytes), "{cut}");
        }
    }
}
