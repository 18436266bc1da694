//! The next move of this side, from the moment the other side fell silent until it is taken or dropped.
//!
//! Notes of a mind are reported when the move is made. Each pause of the other side begins a move, and few are made.

use std::sync::Arc;

use crate::call::ending::EndReason;
use crate::call::event::Kind;
use crate::call::io::EffectId;
use crate::call::utterance::Utterance;
use crate::frame::Sample;

/// Step that follows the words and digits of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NextStep {
    /// Listen to the other side.
    Listen,
    /// Hang up this many milliseconds after the words.
    Hangup { reason: EndReason, after_ms: u32 },
    /// Stay silent until the other side has spoken again.
    StaySilent,
    /// Stay silent for this many milliseconds, then ask the mind to go on.
    Pause { ms: u32 },
    /// Scripted silence, then words if any.
    Silence { duration_ms: Option<u32>, then: Option<String> },
}

/// Progress of a plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanStage {
    /// The other side's final text is awaited.
    Hearing,
    /// The mind is asked what the other side means.
    Comparing,
    /// The mind is asked for a move.
    Thinking,
    /// Everything is known (audio may still come).
    Settled,
    /// The plan is being carried out.
    Taken,
}

/// State of a question to the mind about the other side's meaning, for the case that no answer comes.
#[derive(Clone, Debug)]
pub(super) struct Comparing {
    /// Rules in question, by their positions in the script.
    pub rules: Vec<usize>,
    /// Text of the turn in question.
    pub text: Arc<str>,
    /// Sample from which the answer is no longer waited for.
    pub until: Sample,
}

/// Move of this side that is planned or being carried out.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Sample at which its first sample is due.
    pub due: Sample,
    /// Sample from which it counts as late (the delay of the analysis).
    pub late_from: Sample,
    /// Progress of the plan.
    pub stage: PlanStage,
    /// Purpose of its words.
    pub kind: Kind,
    /// Notes of the mind about it.
    pub notes: Vec<&'static str>,
    /// Words; moved to the sent audio when the turn is taken.
    pub utterance: Option<Utterance>,
    /// Id of the words, also after they moved.
    pub utterance_id: u32,
    /// Digits after the words.
    pub digits: String,
    /// Step after its words and digits.
    pub next: NextStep,
    /// Scripted rule that made it (position in the script).
    pub rule: Option<usize>,
    /// The thought whose move (or further parts of it) is awaited, or the comparison.
    pub thinking: Option<EffectId>,
    /// State of the comparison while the stage is [`PlanStage::Comparing`].
    pub comparing: Option<Comparing>,
    /// True for the re-prompt after mutual silence.
    pub reprompt: bool,
    /// True when it answers a turn of the other side, and is dropped when that side goes on.
    pub answers: bool,
}

impl Plan {
    /// Returns a plan that waits for the other side's text.
    pub(super) fn new(due: Sample, kind: Kind) -> Plan {
        Plan {
            due,
            late_from: due,
            stage: PlanStage::Hearing,
            kind,
            utterance: None,
            utterance_id: 0,
            digits: String::new(),
            next: NextStep::Listen,
            rule: None,
            thinking: None,
            comparing: None,
            reprompt: false,
            answers: false,
            notes: Vec::new(),
        }
    }

    /// True when it can be taken now: it is settled, and its first words have audio.
    pub(super) fn is_ready(&self) -> bool {
        let words_ready = self.utterance.as_ref().is_none_or(Utterance::is_ready);
        match self.stage {
            PlanStage::Settled => words_ready,
            PlanStage::Thinking => self.utterance.as_ref().is_some_and(Utterance::is_ready),
            PlanStage::Hearing | PlanStage::Comparing | PlanStage::Taken => false,
        }
    }

    /// Returns the effects that are not wanted any more when it is dropped.
    pub(super) fn effects(&self) -> Vec<EffectId> {
        let mut left: Vec<EffectId> = self.utterance.iter().flat_map(Utterance::waiting).collect();
        left.extend(self.thinking);
        left
    }
}
