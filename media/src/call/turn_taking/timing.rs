//! Times that the parts of turn-taking share.

use crate::frame::Sample;

/// Other sound not longer than this is no speech: on the 10 ms grid of its edges a sound seems up to 20 ms longer than
/// it is.
pub(super) const SHORT_MS: u32 = 200;
/// Speech that goes on after less than this never stopped: measures join it, too.
pub(super) const JOINED_MS: u32 = 300;
/// Milliseconds from the end of a hang-up phrase of the other side to the hang-up.
pub(super) const PHRASE_HANGUP_MS: u32 = 300;
/// Milliseconds from the last own words to the hang-up.
pub(super) const OWN_HANGUP_MS: u32 = 500;
/// Time after which speech that began before the turn was due is surely confirmed, in milliseconds.
pub(super) const CONFIRM_MS: u32 = 100;
/// Due time of an opening before the start of the conversation is known.
pub(super) const NOT_YET: Sample = Sample::MAX / 2;
