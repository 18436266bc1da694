//! States of runs and results, and the allowed changes between them.

words! {
    /// State of a run: COMPLETED when all its results are terminal.
    kept RunStatus { Running = "RUNNING", Completed = "COMPLETED" } default Running
}

words! {
    /// State of a result.
    kept ResultStatus {
        Initializing = "INITIALIZING", Queued = "QUEUED", Ready = "READY", Dispatched = "DISPATCHED", Running = "RUNNING",
        ConversationEnded = "CONVERSATION_ENDED", Evaluating = "EVALUATING", Completed = "COMPLETED",
        NoConnection = "NO_CONNECTION", NoAnswer = "NO_ANSWER", CallDropped = "CALL_DROPPED",
        OutOfFunds = "OUT_OF_FUNDS", SystemError = "SYSTEM_ERROR", Cancelled = "CANCELLED",
    } default Initializing
}

words! {
    /// Verdict on a terminal result.
    kept Outcome { Passed = "passed", Failed = "failed", Cancelled = "cancelled", NotEvaluated = "not_evaluated" }
}

words! {
    /// Verdict on a completed run.
    kept RunOutcome { Passed = "passed", Failed = "failed", Warning = "warning" }
}

words! {
    /// Side that ended a conversation: USER is the Digital Human (or its timers).
    kept EndedBy { Agent = "AGENT", User = "USER" }
}

use ResultStatus as S;

impl ResultStatus {
    /// True when nothing follows any more. False for a state that this release does not know.
    pub fn is_terminal(self) -> bool {
        use S::*;
        matches!(self, Completed | NoConnection | NoAnswer | CallDropped | OutOfFunds | SystemError | Cancelled)
    }

    /// True before the conversation runs: a cancel or hang-up makes these CANCELLED.
    pub fn is_early(self) -> bool {
        matches!(self, S::Initializing | S::Queued | S::Ready | S::Dispatched)
    }

    /// True while the conversation is still to be held, or is being held.
    pub fn is_open(self) -> bool {
        self.is_early() || self == S::Running
    }

    /// True when a result may change from this state to `to`. One in a state that this release does not know stays in
    /// it: the release that knows the state goes on with it.
    pub fn may_become(self, to: ResultStatus) -> bool {
        if to == S::SystemError {
            return !self.is_terminal() && !matches!(self, S::Unknown(_));
        }
        let next: &[ResultStatus] = match self {
            S::Initializing => &[S::Queued, S::OutOfFunds, S::NoConnection, S::Cancelled],
            S::Queued => &[S::NoConnection, S::Dispatched, S::Ready, S::Cancelled],
            S::Ready => &[S::Queued, S::Dispatched, S::Running, S::NoAnswer, S::NoConnection, S::Cancelled],
            S::Dispatched => &[S::Queued, S::Running, S::NoAnswer, S::NoConnection, S::Cancelled],
            S::Running => &[S::ConversationEnded, S::NoAnswer],
            S::ConversationEnded => &[S::Evaluating],
            S::Evaluating => &[S::Completed, S::CallDropped, S::OutOfFunds, S::Queued],
            _ => &[],
        };
        next.contains(&to)
    }
}

/// Work that follows on a change of state, in the transaction of the change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Minutes of the conversation are counted.
    CountUsage,
    /// The evaluation is requested.
    RequestEvaluation,
    /// Webhooks are told of the end of the conversation.
    TellEnded,
    /// Addresses of the conversation are freed.
    FreeAddresses,
    /// Webhooks are told that the agent is awaited.
    TellAwaited,
    /// The owner of the agent is requested to have it call.
    AskOwner,
    /// Webhooks are told of the final result.
    TellEvaluated,
    /// A grade is requested from whoever the agent's messages go to.
    AskForGrade,
    /// Monitors, issues and alerts look at the result.
    Announce,
    /// The next step of the journey starts.
    StartNextStep,
    /// The run is completed if it was the last result.
    CompleteRun,
}

/// True if an effect follows on a change (from, to).
type Follows = fn(S, S) -> bool;

/// Effects in the order in which they happen, each with the changes (from, to) that it follows on.
const EFFECTS: [(Effect, Follows); 11] = [
    (Effect::CountUsage, |from, _| from == S::Running),
    (Effect::RequestEvaluation, |_, to| to == S::ConversationEnded),
    (Effect::TellEnded, |_, to| to == S::ConversationEnded),
    (Effect::FreeAddresses, |from, to| from.is_open() && !to.is_open()),
    (Effect::TellAwaited, |_, to| to == S::Ready),
    (Effect::AskOwner, |_, to| to == S::Ready),
    (Effect::TellEvaluated, |_, to| to.is_terminal() && to != S::Cancelled),
    (Effect::AskForGrade, |_, to| to == S::Completed),
    (Effect::Announce, |_, to| to.is_terminal()),
    (Effect::StartNextStep, |_, to| to.is_terminal()),
    (Effect::CompleteRun, |_, to| to.is_terminal()),
];

impl Effect {
    /// Returns the effects of a change of state, in order.
    pub fn of(from: ResultStatus, to: ResultStatus) -> impl Iterator<Item = Effect> {
        EFFECTS.into_iter().filter(move |(_, follows)| follows(from, to)).map(|(effect, _)| effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: from; columns: to, in declared order (I Q r D R E e C n a d f s x).
    const TABLE: &str = "
        INITIALIZING       . Q . . . . . . n . . f s x
        QUEUED             . . r D . . . . n . . . s x
        READY              . Q . D R . . . n a . . s x
        DISPATCHED         . Q . . R . . . n a . . s x
        RUNNING            . . . . . E . . . a . . s .
        CONVERSATION_ENDED . . . . . . e . . . . . s .
        EVALUATING         . Q . . . . . C . . d f s .
        COMPLETED          . . . . . . . . . . . . . .
        NO_CONNECTION      . . . . . . . . . . . . . .
        NO_ANSWER          . . . . . . . . . . . . . .
        CALL_DROPPED       . . . . . . . . . . . . . .
        OUT_OF_FUNDS       . . . . . . . . . . . . . .
        SYSTEM_ERROR       . . . . . . . . . . . . . .
        CANCELLED          . . . . . . . . . . . . . .";

    #[test]
    fn only_the_changes_of_the_table_are_allowed() {
        let rows: Vec<&str> = TABLE.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(rows.len(), ResultStatus::ALL.len());
        for row in rows {
            let mut words = row.split_whitespace();
            let from = words.next().and_then(ResultStatus::parse).expect("a status");
            let cells: Vec<&str> = words.collect();
            assert_eq!(cells.len(), ResultStatus::ALL.len(), "{row}");
            for (to, cell) in ResultStatus::ALL.iter().zip(cells) {
                assert_eq!(from.may_become(*to), cell != ".", "{} to {}", from.as_str(), to.as_str());
            }
        }
    }

    #[test]
    fn a_state_that_is_not_known_is_left_alone() {
        let paused = ResultStatus::from("PAUSED");
        assert_eq!(paused.as_str(), "PAUSED");
        assert!(!paused.is_terminal() && !paused.is_open());
        for to in ResultStatus::ALL {
            assert!(!paused.may_become(*to) && !to.may_become(paused), "{}", to.as_str());
        }
    }

    #[test]
    fn effects_follow_on_changes_in_their_order() {
        use Effect::*;
        let end = [Announce, StartNextStep, CompleteRun];
        for (from, to, expect) in [
            (S::Initializing, S::Queued, vec![]),
            (S::Queued, S::Ready, vec![TellAwaited, AskOwner]),
            (S::Queued, S::Dispatched, vec![]),
            (S::Dispatched, S::Running, vec![]),
            (S::Running, S::ConversationEnded, vec![CountUsage, RequestEvaluation, TellEnded, FreeAddresses]),
            (S::Running, S::NoAnswer, [&[CountUsage, FreeAddresses, TellEvaluated][..], &end].concat()),
            (S::Evaluating, S::Completed, [&[TellEvaluated, AskForGrade][..], &end].concat()),
            (S::Evaluating, S::CallDropped, [&[TellEvaluated][..], &end].concat()),
            (S::Ready, S::Cancelled, [&[FreeAddresses][..], &end].concat()),
        ] {
            assert_eq!(Effect::of(from, to).collect::<Vec<_>>(), expect, "{from:?} {to:?}");
        }
    }
}
