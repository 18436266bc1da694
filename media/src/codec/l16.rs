//! L16: 16-bit samples, most significant byte first (RFC 3551 4.5.11).

/// Encodes two bytes for each sample, as far as `out` reaches; returns the bytes written.
pub(super) fn encode(pcm: &[i16], out: &mut [u8]) -> usize {
    for (bytes, sample) in out.chunks_exact_mut(2).zip(pcm) {
        bytes.copy_from_slice(&sample.to_be_bytes());
    }
    2 * pcm.len().min(out.len() / 2)
}

/// Decodes a sample for each two bytes, as far as `out` reaches; returns the samples written.
pub(super) fn decode(bytes: &[u8], out: &mut [i16]) -> usize {
    for (sample, bytes) in out.iter_mut().zip(bytes.chunks_exact(2)) {
        *sample = i16::from_be_bytes([bytes[0], bytes[1]]);
    }
    out.len().min(bytes.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sent_high_byte_first() {
        let (mut bytes, mut pcm) = ([0; 6], [0; 3]);
        assert_eq!(encode(&[0x0102, -2, i16::MIN], &mut bytes), 6);
        assert_eq!(bytes, [1, 2, 0xff, 0xfe, 0x80, 0]);
        assert_eq!(decode(&bytes, &mut pcm), 3);
        assert_eq!(pcm, [0x0102, -2, i16::MIN]);
    }
}
