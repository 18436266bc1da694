//! Media of a call whose keys come from handshakes: they may be there before the leg that needs them, or after it.

use super::Call;
use crate::leg::{Leg, LegParams, MediaParams};
use crate::rtp::srtp::SrtpParams;
use crate::time::Time;

impl Call {
    /// Takes the keys that handshakes have brought so far.
    pub(super) fn take_keys(&mut self, rtp: Option<SrtpParams>, reports: Option<SrtpParams>) {
        self.waits.keys = [rtp, reports];
        if let Some(leg) = &mut self.leg {
            leg.take_keys(rtp.as_ref(), reports.as_ref());
        }
    }

    /// Returns the parameters with the keys that a handshake has brought for them.
    pub(super) fn with_keys(&self, params: LegParams) -> LegParams {
        match params {
            LegParams::Rtp(media) if media.awaits_keys() => MediaParams { srtp: self.waits.keys[0], ..media }.into(),
            params => params,
        }
    }

    /// Begins to send and to hear by these parameters.
    pub(super) fn begin_leg(&mut self, params: LegParams, now: Time) {
        let mut leg = Leg::new(self.with_keys(params), &self.spec.opus, self.spec.seed, now);
        leg.take_keys(None, self.waits.keys[1].as_ref());
        if let Leg::Rtp(leg) = &leg {
            self.out.carry(leg.longest_packet());
        }
        self.leg = Some(leg);
    }
}
