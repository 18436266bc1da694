//! A doubt about the sampling rate of the other side's audio, as it is told.

use serde_json::{Value, json};

/// A reason to doubt the sampling rate of the other side's audio.
#[derive(Clone, Debug, PartialEq)]
pub struct RateDoubt {
    /// Duration of the audio by the protocol's rate, as a factor of the time in which it came; `None` where a header
    /// states the rate.
    pub factor: Option<f64>,
    /// Rate of the protocol, in Hz.
    pub expected_hz: u32,
    /// Rate that the audio seems to have, in Hz.
    pub rate_hz: u32,
    /// Bits of a sample that would explain the pace, too or alone.
    pub(super) bits: Option<Bits>,
}

/// Width of a sample that differs from the protocol's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// Number of bits of a sample.
    pub bits: u32,
    /// True if no other rate alone explains the pace.
    pub is_needed: bool,
}

impl RateDoubt {
    /// Returns the doubt as a question or a statement for a person.
    pub fn text(&self) -> String {
        let RateDoubt { factor, expected_hz, rate_hz, bits } = self;
        let Some(factor) = factor else {
            return format!("the agent's audio has a WAV header of {rate_hz} Hz, and is played at {expected_hz} Hz");
        };
        let exact = match bits {
            Some(Bits { is_needed: true, .. }) => *factor,
            _ => f64::from(*rate_hz) / f64::from(*expected_hz),
        };
        let factor = (exact * 100.0).round() / 100.0;
        let question = match bits {
            None => format!("is its rate {rate_hz}?"),
            Some(Bits { bits, is_needed: false }) => {
                format!("is its rate {rate_hz}, or are its samples of {bits} bits?")
            }
            Some(Bits { bits, is_needed: true }) => format!("are its samples of {bits} bits, at a rate of {rate_hz}?"),
        };
        format!("the agent sends {factor} times real time: {question}")
    }

    /// Returns the members of the event.
    pub fn data(&self) -> Value {
        let factor = self.factor.map(|factor| (factor * 1000.0).round() / 1000.0);
        json!({ "factor": factor, "expected_rate": self.expected_hz, "rate": self.rate_hz, "message": self.text() })
    }
}
