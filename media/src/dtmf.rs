//! In-band DTMF (ITU-T Q.23, Q.24): [`Tones`] makes it at 16 kHz, [`Detector`] finds it at 8 kHz. Telephone events of
//! RFC 4733 are packets, not audio: they live in `rtp`.
//!
//! Digits as tones, and found again:
//!
//! ```
//! use ringer_media::dtmf::{Detected, Detector, Pace, Tones};
//! use ringer_media::resample::Down2;
//!
//! let mut tones = Tones::new("4#", 1600, Pace::default());
//! let (mut down, mut detector, mut found) = (Down2::new(), Detector::new(), Vec::new());
//! for from in (0..9600).step_by(320) {
//!     let (mut sums, mut narrow) = ([0; 320], [0; 160]);
//!     tones.mix(from, &mut sums);
//!     down.process(&sums.map(|sum| sum.clamp(-32_768, 32_767) as i16), &mut narrow);
//!     if let Some(Detected::Digit { digit, duration_ms, .. }) = detector.push(&narrow, from) {
//!         assert!(duration_ms.abs_diff(100) <= 10);
//!         found.push(digit);
//!     }
//! }
//! assert_eq!(found, ['4', '#']);
//! ```

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
