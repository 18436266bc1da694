//! 16-bit samples as little-endian bytes, and back: the body of a WAV file and of linear frames.
//!
//! Loops over whole recordings stand here, and not beside their callers, because this package is optimised in every
//! profile.

/// Bytes of a sample.
const BYTES: usize = 2;

/// Least and greatest sample of the first channel, then of the second.
pub type Levels = [i16; 4];

/// Levels of no sample at all.
pub const NO_LEVELS: Levels = [i16::MAX, i16::MIN, i16::MAX, i16::MIN];

/// Returns samples as bytes.
pub fn to_bytes(pcm: &[i16]) -> Vec<u8> {
    let mut bytes = vec![0; BYTES * pcm.len()];
    write_bytes(&mut bytes, pcm);
    bytes
}

/// Writes samples as bytes, as many as both slices have space for.
pub fn write_bytes(to: &mut [u8], pcm: &[i16]) {
    to.as_chunks_mut().0.iter_mut().zip(pcm).for_each(|(bytes, sample)| *bytes = sample.to_le_bytes());
}

/// Writes the samples of two channels as interleaved bytes, as many as all three slices have space for.
pub fn write_interleaved(to: &mut [u8], first: &[i16], second: &[i16]) {
    for (bytes, (first, second)) in to.as_chunks_mut().0.iter_mut().zip(first.iter().zip(second)) {
        let ([a, b], [c, d]) = (first.to_le_bytes(), second.to_le_bytes());
        *bytes = [a, b, c, d];
    }
}

/// Returns the samples of two channels as interleaved bytes; the longer channel is cut.
pub fn interleave(first: &[i16], second: &[i16]) -> Vec<u8> {
    let mut bytes = vec![0; 2 * BYTES * first.len().min(second.len())];
    write_interleaved(&mut bytes, first, second);
    bytes
}

/// Returns the samples that bytes hold; an odd byte at the end is left out.
pub fn from_bytes(bytes: &[u8]) -> Vec<i16> {
    bytes.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect()
}

/// Returns one channel, counted from 0, of interleaved bytes with so many channels; a cut frame at the end is left out.
pub fn channel(bytes: &[u8], channel: usize, channels: usize) -> Vec<i16> {
    let at = BYTES * channel;
    bytes.chunks_exact(BYTES * channels).map(|frame| i16::from_le_bytes([frame[at], frame[at + 1]])).collect()
}

/// Returns the mean of both channels of interleaved bytes, rounded towards 0; a cut frame at the end is left out.
pub fn mean_of_channels(bytes: &[u8]) -> Vec<i16> {
    let sample = |low: u8, high: u8| i32::from(i16::from_le_bytes([low, high]));
    bytes.as_chunks().0.iter().map(|[a, b, c, d]| ((sample(*a, *b) + sample(*c, *d)) / 2) as i16).collect()
}

/// Returns the levels of interleaved bytes with two channels.
pub fn levels(bytes: &[u8]) -> Levels {
    let mut levels = NO_LEVELS;
    for [a, b, c, d] in bytes.as_chunks().0 {
        let (first, second) = (i16::from_le_bytes([*a, *b]), i16::from_le_bytes([*c, *d]));
        levels = widest(levels, [first, first, second, second]);
    }
    levels
}

/// Returns levels that span both.
pub fn widest(one: Levels, other: Levels) -> Levels {
    [one[0].min(other[0]), one[1].max(other[1]), one[2].min(other[2]), one[3].max(other[3])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_little_endian_and_channels_alternate() {
        let (first, second) = ([1, -2, 300], [-1, 2]);
        assert_eq!(to_bytes(&first), [1, 0, 254, 255, 44, 1]);
        assert_eq!(from_bytes(&[1, 0, 254, 255, 44, 1, 9]), first);
        let both = interleave(&first, &second);
        assert_eq!(both, [1, 0, 255, 255, 254, 255, 2, 0]);
        assert_eq!((channel(&both, 0, 2), channel(&both, 1, 2)), (vec![1, -2], vec![-1, 2]));
        assert_eq!(channel(&both[..7], 0, 1), [1, -1, -2]);
        let mut short = [9; 5];
        write_bytes(&mut short, &first);
        assert_eq!(short, [1, 0, 254, 255, 9]);
        write_interleaved(&mut short, &second, &first);
        assert_eq!(short, [255, 255, 1, 0, 9]);
    }

    #[test]
    fn means_are_rounded_towards_zero_and_do_not_wrap() {
        let both = interleave(&[1, -1, i16::MIN, i16::MAX], &[2, -2, i16::MIN, i16::MAX]);
        assert_eq!(mean_of_channels(&both), [1, -1, i16::MIN, i16::MAX]);
    }

    #[test]
    fn levels_are_the_extremes_of_each_channel() {
        assert_eq!(levels(&interleave(&[5, -7, 0], &[1, 2, 3])), [-7, 5, 1, 3]);
        assert_eq!(levels(&[]), NO_LEVELS);
        assert_eq!(widest([-7, 5, 1, 3], [-1, 9, 0, 2]), [-7, 9, 0, 3]);
    }
}
