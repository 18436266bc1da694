//! Which faults of this side a verdict may depend on.

use ringer_model::expectation::FaultCode;

/// Faults by which words of the agent were not heard.
pub(super) const HEARING: &[FaultCode] = &[
    FaultCode::RecognizerLate,
    FaultCode::RecognizerBusy,
    FaultCode::RecognizerFailed,
    FaultCode::SpeechUnclear,
    FaultCode::RateMismatch,
];

/// Faults by which the Digital Human may have said or done something else than it should.
pub(super) const LEADING: &[FaultCode] = &[
    FaultCode::RecognizerLate,
    FaultCode::RecognizerBusy,
    FaultCode::RecognizerFailed,
    FaultCode::SpeechUnclear,
    FaultCode::ModelFailed,
    FaultCode::SynthesizerFailed,
    FaultCode::RateMismatch,
];

/// Faults that stand against a call of a tool that did not come in time.
pub(super) const LEADING_IN_TIME: &[FaultCode] = &[
    FaultCode::RecognizerLate,
    FaultCode::RecognizerBusy,
    FaultCode::RecognizerFailed,
    FaultCode::SpeechUnclear,
    FaultCode::ModelFailed,
    FaultCode::SynthesizerFailed,
    FaultCode::Pacing,
    FaultCode::RateMismatch,
];
