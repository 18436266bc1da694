//! ITU-T G.711: mu-law and A-law. Encoding follows the Recommendation exactly, also at the decision values (14
//! significant bits for mu-law, 13 for A-law, truncated as in the reference software of ITU-T G.191), where common
//! tools differ.
//!
//! At the decision values sox and ffmpeg differ from the Recommendation on 510 to 1020 of 65536 inputs.

/// Returns the mu-law byte of a sample.
pub(crate) fn mu_law(sample: i16) -> u8 {
    let sign = (sample >> 15) as u16;
    let magnitude = (((sample as u16 ^ sign) >> 2) + 33).min(0x1fff);
    let segment = 10 - magnitude.leading_zeros() as u16;
    let code = (segment << 4) | ((magnitude >> (segment + 1)) & 15);
    !(code as u8 | (sign as u8 & 0x80))
}

/// Returns the A-law byte of a sample.
pub(crate) fn a_law(sample: i16) -> u8 {
    let sign = (sample >> 15) as u16;
    let magnitude = (sample as u16 ^ sign) >> 4;
    let segment = 12u16.saturating_sub(magnitude.leading_zeros() as u16);
    let code = (segment << 4) | ((magnitude >> segment.saturating_sub(1)) & 15);
    (code as u8 | (!sign as u8 & 0x80)) ^ 0x55
}

/// Samples of the 256 mu-law bytes, in units of 16-bit PCM.
pub(crate) static FROM_MU_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let code = !(byte as u8);
        let magnitude = ((((code & 15) as i16) << 3) + 132) << ((code >> 4) & 7);
        table[byte] = if code & 0x80 == 0 { magnitude - 132 } else { 132 - magnitude };
        byte += 1;
    }
    table
};

/// Samples of the 256 A-law bytes, in units of 16-bit PCM.
pub(crate) static FROM_A_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let code = byte as u8 ^ 0x55;
        let (segment, step) = ((code >> 4) & 7, ((code & 15) as i16) << 4);
        let magnitude = if segment == 0 { step + 8 } else { (step + 264) << (segment - 1) };
        table[byte] = if code & 0x80 == 0 { -magnitude } else { magnitude };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn hash(bytes: impl Iterator<Item = u8>) -> String {
        let bytes: Vec<u8> = bytes.collect();
        Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The tables equal those of ffmpeg and of sox: SHA-256 over their 256 decoded samples, little endian.
    #[test]
    fn decoding_equals_ffmpeg_and_sox() {
        let bytes = |table: &[i16; 256]| hash(table.iter().flat_map(|sample| sample.to_le_bytes()));
        assert_eq!(bytes(&FROM_MU_LAW), "3dab54339e520bb2");
        assert_eq!(bytes(&FROM_A_LAW), "e04788d110e58ff8");
    }

    /// SHA-256 over the bytes of -32768, -32767, ... 32767 as the algorithm of ITU-T G.191 gives them.
    #[test]
    fn encoding_equals_the_reference_algorithm() {
        assert_eq!(hash((i16::MIN..=i16::MAX).map(mu_law)), "90c29de505fb68e7");
        assert_eq!(hash((i16::MIN..=i16::MAX).map(a_law)), "38488f6fd710f468");
    }

    #[test]
    fn a_decoded_byte_encodes_to_itself_and_the_error_is_at_most_half_a_step() {
        for byte in 0..=255u8 {
            // Mu-law has two zeros; the negative one decodes to 0 and so comes back as the positive one.
            assert_eq!(mu_law(FROM_MU_LAW[byte as usize]), if byte == 0x7f { 0xff } else { byte });
            assert_eq!(a_law(FROM_A_LAW[byte as usize]), byte);
        }
        for sample in i16::MIN..=i16::MAX {
            let size = (sample as i32).abs();
            let mu = (FROM_MU_LAW[mu_law(sample) as usize] as i32 - sample as i32).abs();
            let a = (FROM_A_LAW[a_law(sample) as usize] as i32 - sample as i32).abs();
            assert!(mu <= 4 + (size + 132) / 32 || size > 32_124, "{sample}: {mu}");
            assert!(a <= 8 + size / 32, "{sample}: {a}");
        }
    }
}
