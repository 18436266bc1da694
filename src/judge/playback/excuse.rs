//! Steps that failed by something that a fault of this side may have brought about: they are none of the agent's.

use ringer_media::frame::PER_MS;
use ringer_model::expectation::{FaultCode, OwnFault};

use super::Played;
use crate::faults::LEADING;

/// Turns failed steps that lean on a part of this side that failed into steps that cannot be told. A fault that came
/// after a step has not changed it. `untrusted`: why timing is not to be relied on; `None`: it is.
pub fn excuse(played: &mut [Played], own_faults: &[OwnFault], untrusted: Option<&str>) {
    for step in played.iter_mut().filter(|step| step.passed == Some(false) && !step.unreached) {
        let end_ms = (step.sample + PER_MS - 1) / PER_MS;
        let is_earlier = |fault: &&OwnFault| fault.at_ms.is_none_or(|at_ms| at_ms <= end_ms);
        let leans = |code: &FaultCode| LEADING.contains(code) || (step.is_timed && *code == FaultCode::Pacing);
        let fault = own_faults.iter().filter(is_earlier).find(|fault| leans(&fault.code));
        let why = match (fault, untrusted.filter(|_| step.is_timed)) {
            (Some(fault), _) => fault.code.reason(),
            (None, Some(why)) => format!("the measurement is not trusted: {why}"),
            (None, None) => continue,
        };
        step.passed = None;
        step.reason = Some(format!("{}; {why}", step.reason.take().unwrap_or_default()));
    }
}
