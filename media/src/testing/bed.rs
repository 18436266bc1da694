//! Levels of noise for tests.

use crate::noise::gain_for;

/// Scales a loop of noise by [`gain_for`]; silence stays.
pub fn level_for(noise: &mut [i16], snr_db: f64, codec_rate_hz: u32) {
    let gain = gain_for(noise, snr_db, codec_rate_hz);
    for x in noise {
        *x = (f64::from(*x) * gain).round().clamp(-32_768.0, 32_767.0) as i16;
    }
}
