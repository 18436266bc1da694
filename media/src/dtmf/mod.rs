//! In-band DTMF (ITU-T Q.23, Q.24): [`Tones`] makes it at 16 kHz, [`Detector`] finds it at 8 kHz. Telephone events of
//! RFC 4733 are packets, not audio: they live in `rtp`.

mod detect;
mod tones;

pub use detect::{Detected, Detector};
pub use tones::{Pace, Tones};

/// The digits by row (low frequency) and column (high frequency).
const DIGITS: [[char; 4]; 4] = [['1', '2', '3', 'A'], ['4', '5', '6', 'B'], ['7', '8', '9', 'C'], ['*', '0', '#', 'D']];

/// The low group, by row, then the high group, by column, in Hz.
const FREQUENCIES_HZ: [f64; 8] = [697.0, 770.0, 852.0, 941.0, 1209.0, 1336.0, 1477.0, 1633.0];

/// Returns the low and the high frequency of a digit (0-9 * # A-D, in either case) in Hz; `None` for any other
/// character.
fn frequencies_hz(digit: char) -> Option<(f64, f64)> {
    let digit = digit.to_ascii_uppercase();
    let place =
        DIGITS.iter().enumerate().find_map(|(row, digits)| Some((row, digits.iter().position(|d| *d == digit)?)));
    place.map(|(row, column)| (FREQUENCIES_HZ[row], FREQUENCIES_HZ[4 + column]))
}
