//! Words of the sample agent, an appointment desk: a fixed flow of steps. It depends on turns, keys and yes or no;
//! other words only refine it, so that it works without any recognizer. The Call decides when it speaks.

use ringer_media::call::{ConversationLine, Move, Purpose, Then, Thought, normal_form};
use tokio::sync::mpsc;

use super::Fault;
use crate::human::Mind;
use crate::provider::Job;

// Most sentences begin with a vowel or a voiced sound: a weak first consonant is said, but hardly heard, and the
// agent's own time of an answer would be some hundredths of a second before the one at which anybody can hear it.

/// First words of every call.
pub const GREETING: &str = "Thank you for calling the clinic. Press one for appointments, press two for opening hours, or just \
                            tell me how I can help you.";
/// Words with which the agent interrupts a caller.
pub const CUT_IN: &str = "Sorry, can I ask you a question?";
/// Words after a long silence.
pub const STILL_THERE: &str = "Hello? Are you still there?";

const MENU: &str = "Sorry, I do not have that option. Press 1 for appointments, or press 2 for opening hours.";
const HOURS: &str = "We are open Monday to Friday, from eight in the morning until six in the evening. Can I help you with anything else?";
const BIRTH: &str = "Yes, I can help you. Please tell me your date of birth.";
const TIMES: &str = "Okay. This week I can offer you Tuesday at nine in the morning, Wednesday in the afternoon or Friday \
                     at eleven. Would Tuesday at nine be good for you?";
const OTHER_TIME: &str = "No problem. Would Thursday at eleven be better for you?";
const BOOKED: &str = "Very good, your appointment is booked. Thank you for calling, and goodbye.";
const BOOKED_AT_ONCE: &str = "Very good, your appointment is booked.";
const MEMBER: &str = "Okay, please enter your four digit member number on the keypad.";
const CHECKED_IN: &str = "All right, you are checked in. A nurse will call you back today. Goodbye.";
const CALL_BACK: &str = "I am sorry, I cannot help you like this. Please call again later. Goodbye.";
const TRANSFER: &str = "One moment, please. I will connect you with a nurse.";
const NURSE: &str = "Hello, this is the nurse. How can I help you?";
const GOODBYE: &str = "You are welcome. Thank you for calling, and goodbye.";

/// All of its sentences that are always the same, without those of a transfer, which another voice says.
pub(super) const FIXED: [&str; 13] = [
    GREETING,
    BIRTH,
    TIMES,
    BOOKED,
    OTHER_TIME,
    MEMBER,
    CHECKED_IN,
    HOURS,
    MENU,
    CUT_IN,
    STILL_THERE,
    GOODBYE,
    CALL_BACK,
];

/// Answer to everything of an agent that speaks Spanish.
const SPANISH_ANSWER: &str = "Claro que sí, con mucho gusto. Dígame, por favor, su fecha de nacimiento.";

/// Key for a person.
const KEY_FOR_PERSON: char = '0';
/// Silence before a person answers, in milliseconds: longer than callers wait before they take their turn.
const CONNECTING_MS: u32 = 4000;
/// Silence amid an answer that is a fault, in milliseconds.
const DEAD_AIR_MS: u32 = 4500;

/// Digits of a member number.
const MEMBER_DIGITS: usize = 4;
/// Number of times that the same thing is asked before the agent gives up.
const MOST_ASKED: u32 = 3;

/// Input that the agent waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A key or a wish.
    Menu,
    /// Answer whether there is something else.
    AnythingElse,
    /// The date of birth.
    Birth,
    /// Yes or no to the first time.
    Time,
    /// Yes or no to the second time.
    OtherTime,
    /// Member number of four keys.
    Member,
    /// Yes or no to the digits that were read back.
    MemberRight,
    /// Anything that is said to the person.
    Person,
    /// Goodbye was said; nothing is awaited.
    Over,
}

/// Position in the agent's flow.
#[derive(Clone, Debug)]
struct State {
    step: Step,
    /// Times in a row that the step was asked for.
    asked: u32,
    /// Keys towards a member number.
    digits: String,
    /// Number of answers so far.
    answers: u32,
    /// Words of the last of them.
    last: String,
}

/// Mind of the sample agent, for one call.
pub struct DeskMind {
    state: State,
    /// State before the last move, with its words and the number of lines known then. A move that was dropped before
    /// its first word never happened.
    before: Option<(State, String, usize)>,
    /// Words that follow the last move after its pause; empty for none.
    rest: String,
    fault: Option<Fault>,
}

impl Default for DeskMind {
    fn default() -> Self {
        let state = State { step: Step::Menu, asked: 1, digits: String::new(), answers: 0, last: String::new() };
        DeskMind { state, before: None, rest: String::new(), fault: None }
    }
}

impl Mind for DeskMind {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let next = self.next(&thought);
        Box::pin(async move {
            let _ = out.send(next).await;
        })
    }

    fn known_texts(&self) -> Vec<String> {
        FIXED.map(str::to_owned).to_vec()
    }

    fn speaker(&self) -> String {
        "desk".into()
    }
}

impl DeskMind {
    /// Returns a mind with a fault on purpose.
    pub fn faulty(fault: Fault) -> DeskMind {
        DeskMind { fault: Some(fault), ..DeskMind::default() }
    }

    /// Returns the move as the fault changes it; `before`: the state before it, `told`: the caller's last words.
    fn apply_fault(&mut self, next: Move, before: &State, told: &str) -> Move {
        self.state.answers = before.answers + 1;
        let is_first = self.state.answers == 1;
        let bent = match self.fault {
            Some(Fault::DropsCall) if self.state.answers == 2 => Move { then: Then::Hangup, ..Move::default() },
            Some(Fault::RepeatsItself) if self.state.answers.is_multiple_of(2) => {
                // Whoever says what was said before has not gone on.
                self.state = State { answers: self.state.answers, ..before.clone() };
                Move { say: before.last.clone(), exact: true, ..Move::default() }
            }
            Some(Fault::StuckLoop) if !is_first => {
                self.state = State { answers: self.state.answers, ..before.clone() };
                say(&before.last, Then::Listen)
            }
            Some(Fault::EchoesCaller) if !told.is_empty() => Move { say: format!("{told} {}", next.say), ..next },
            Some(Fault::AnswersTwice) => Move { say: format!("{0} {0}", next.say), ..next },
            Some(Fault::WrongLanguage) => say(SPANISH_ANSWER, Then::Listen),
            Some(Fault::SilentAfterTransfer) if pauses(next.then) => {
                self.rest.clear();
                Move { then: Then::StaySilent, ..next }
            }
            Some(Fault::ReadsBackPrivate) if before.step == Step::Birth && !told.is_empty() => {
                Move { say: format!("Your date of birth is {told}. {}", next.say), ..next }
            }
            Some(Fault::InventsBooking) if is_first => Move { say: format!("{BOOKED_AT_ONCE} {}", next.say), ..next },
            Some(Fault::DeadAir) if is_first => {
                let (first, rest) = next.say.split_once(". ").unwrap_or((&next.say, ""));
                self.rest = rest.to_owned();
                say(&format!("{first}."), Then::Pause { ms: DEAD_AIR_MS })
            }
            Some(Fault::Deaf) => Move { say: STILL_THERE.to_owned(), exact: true, ..Move::default() },
            Some(Fault::MishearsName) => Move { say: format!("Thank you, Mister Walker. {}", next.say), ..next },
            _ => next,
        };
        self.state.last.clone_from(&bent.say);
        bent
    }

    /// Returns the next move of the agent.
    pub(super) fn next(&mut self, thought: &Thought) -> Move {
        match thought.purpose {
            _ if self.fault == Some(Fault::OneWayAudio) => Move::default(),
            Purpose::Opening => say(GREETING, Then::Listen),
            Purpose::BargeIn => say(CUT_IN, Then::Listen),
            Purpose::StillThere => say(STILL_THERE, Then::Listen),
            Purpose::Contextual { .. } => Move::default(),
            Purpose::GoOn if !self.rest.is_empty() => say(&self.rest, Then::Listen),
            Purpose::Reply | Purpose::GoOn => self.reply(&thought.history),
        }
    }

    fn reply(&mut self, history: &[ConversationLine]) -> Move {
        if let Some((state, text, lines)) = self.before.take() {
            let later = history.get(lines..).unwrap_or_default();
            let said = |line: &&ConversationLine| !line.other && !line.text.is_empty();
            let begun = later.iter().filter(said).any(|line| text.starts_with(&*line.text));
            if !begun {
                self.state = state;
            }
        }
        let before = self.state.clone();
        let mut heard = Heard::of(history);
        if self.fault == Some(Fault::IgnoresKeys) {
            heard.digits.clear();
        }
        let (words, step) = self.answer(&heard);
        self.state.asked = if step == self.state.step { self.state.asked + 1 } else { 1 };
        self.state.step = step;
        let then = match step {
            Step::Over => Then::Hangup,
            Step::Person if before.step != Step::Person => Then::Pause { ms: CONNECTING_MS },
            _ => Then::Listen,
        };
        self.rest = if pauses(then) { NURSE.to_owned() } else { String::new() };
        let told = history.last().filter(|line| line.other).map_or("", |line| &*line.text);
        let next = self.apply_fault(say(&words, then), &before, told);
        self.before = Some((before, next.say.clone(), history.len()));
        next
    }

    /// Returns the words in answer to `heard`, and the input that is then awaited.
    fn answer(&mut self, heard: &Heard) -> (String, Step) {
        let step = self.state.step;
        if heard.cut_in
            && self.state.asked < MOST_ASKED
            && let Some(question) = again(step)
        {
            return (format!("Yes, of course. {question}"), step);
        }
        let (words, next) = match step {
            Step::Menu | Step::AnythingElse => self.choose(heard),
            Step::Birth => (TIMES.into(), Step::Time),
            Step::Time if heard.no => (OTHER_TIME.into(), Step::OtherTime),
            Step::Time => (BOOKED.into(), Step::Over),
            Step::OtherTime if heard.no => (CALL_BACK.into(), Step::Over),
            Step::OtherTime => (BOOKED.into(), Step::Over),
            Step::Member => self.member(heard),
            Step::MemberRight if heard.no => (MEMBER.into(), Step::Member),
            Step::MemberRight => (CHECKED_IN.into(), Step::Over),
            Step::Person => (GOODBYE.into(), Step::Over),
            Step::Over => (GOODBYE.into(), Step::Over),
        };
        if next == step && self.state.asked >= MOST_ASKED {
            return (CALL_BACK.into(), Step::Over);
        }
        (words, next)
    }

    fn choose(&self, heard: &Heard) -> (String, Step) {
        match heard.digits.chars().next() {
            Some('1') => (MEMBER.into(), Step::Member),
            Some('2') => (HOURS.into(), Step::AnythingElse),
            Some(KEY_FOR_PERSON) => (TRANSFER.into(), Step::Person),
            Some(_) => (MENU.into(), Step::Menu),
            None if heard.has(&["hours", "open"]) => (HOURS.into(), Step::AnythingElse),
            None if self.state.step == Step::AnythingElse && heard.no => (GOODBYE.into(), Step::Over),
            None => (BIRTH.into(), Step::Birth),
        }
    }

    fn member(&mut self, heard: &Heard) -> (String, Step) {
        let digits = &mut self.state.digits;
        digits.extend(heard.digits.chars().filter(char::is_ascii_digit));
        let mut number = std::mem::take(digits);
        if self.fault == Some(Fault::WrongDigit)
            && let Some(last) = number.pop()
        {
            number.push(if last == '9' { '0' } else { '9' });
        }
        if self.fault == Some(Fault::MisreadsNumber) && number.len() == MEMBER_DIGITS {
            // The second and the third.
            number = [0, 2, 1, 3].map(|at| char::from(number.as_bytes()[at])).iter().collect();
        }
        match number.len() {
            0 => (MEMBER.into(), Step::Member),
            MEMBER_DIGITS => {
                let spaced: Vec<String> = number.chars().map(String::from).collect();
                (format!("All right, your member number is {}. Is that right?", spaced.join(", ")), Step::MemberRight)
            }
            count => (format!("I have got {count} digits only. {MEMBER}"), Step::Member),
        }
    }
}

/// Words and keys of the caller's last turn.
#[derive(Debug, Default)]
struct Heard {
    words: Vec<String>,
    digits: String,
    no: bool,
    /// True if the turn interrupted the agent, and nothing in it answers.
    cut_in: bool,
}

impl Heard {
    fn of(history: &[ConversationLine]) -> Heard {
        let Some(last) = history.last().filter(|line| line.other) else { return Heard::default() };
        let own = history.iter().rev().find(|line| !line.other);
        let words: Vec<String> = normal_form(&last.text).split(' ').map(String::from).collect();
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let no = has(&["no", "nope", "not", "dont", "cant", "cannot", "neither", "wrong"]);
        let yes = has(&["yes", "yeah", "yep", "sure", "okay", "right", "correct", "fine", "good", "great", "works"]);
        let cut_in = own.is_some_and(|line| line.interrupted) && last.digits.is_empty() && !yes && !no;
        Heard { digits: last.digits.to_string(), no: no && !yes, cut_in, words }
    }

    fn has(&self, wanted: &[&str]) -> bool {
        self.words.iter().any(|word| wanted.contains(&word.as_str()))
    }
}

/// Returns the question of a step that was cut off, in short.
fn again(step: Step) -> Option<&'static str> {
    match step {
        Step::Birth => Some("Please tell me your date of birth."),
        Step::Time => Some("Would Tuesday at nine in the morning be good for you?"),
        Step::OtherTime => Some("Would Thursday at eleven be better for you?"),
        Step::AnythingElse => Some("Can I help you with anything else?"),
        Step::Member | Step::MemberRight | Step::Menu | Step::Person | Step::Over => None,
    }
}

/// True if more words follow a move after its pause.
fn pauses(then: Then) -> bool {
    matches!(then, Then::Pause { .. })
}

fn say(words: &str, then: Then) -> Move {
    Move { say: words.to_owned(), exact: true, then, ..Move::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn own(text: &str, interrupted: bool) -> ConversationLine {
        ConversationLine { other: false, text: text.into(), digits: Arc::default(), interrupted }
    }

    /// Returns a caller's turn: words, keys after a `#`.
    fn turn(text: &str) -> ConversationLine {
        let (text, digits) = text.split_once('#').unwrap_or((text, ""));
        ConversationLine { other: true, text: text.into(), digits: digits.into(), interrupted: false }
    }

    /// Plays the turns and compares how each answer begins; the last one hangs up or not.
    fn check(turns: &[&str], expect: &[&str], hangs_up: bool) {
        let (mut mind, mut history, mut last) = (DeskMind::default(), vec![own(GREETING, false)], Move::default());
        for (heard, expect) in turns.iter().zip(expect) {
            history.push(turn(heard));
            last = mind.next(&Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None });
            assert!(last.say.contains(expect), "{heard}: {}", last.say);
            history.push(own(&last.say, false));
        }
        assert_eq!(last.then == Then::Hangup, hangs_up, "{turns:?}");
    }

    #[test]
    fn a_booking_goes_through_with_words_and_without() {
        let expect = ["date of birth", "Tuesday at nine", "booked"];
        check(&["i want an appointment", "march third", "yes please"], &expect, true);
        check(&["", "", ""], &expect, true);
        check(&["", "", "no i can't", "yes"], &["date of birth", "Tuesday", "Thursday at eleven", "booked"], true);
    }

    #[test]
    fn the_menu_takes_keys() {
        check(&["#1", "#4711", "yes"], &["four digit", "4, 7, 1, 1", "checked in"], true);
        check(&["#1", "#47", "#4712", "that is wrong"], &["four digit", "2 digits", "4, 7, 1, 2", "four digit"], false);
        check(&["#2", "no thank you"], &["open Monday", "welcome"], true);
        check(&["#9", "#9", "#9"], &["that option", "that option", "call again"], true);
        check(&["when are you open"], &["open Monday"], false);
    }

    #[test]
    fn a_move_that_was_never_said_did_not_happen() {
        let mut mind = DeskMind::default();
        let mut history = vec![own(GREETING, false), turn("hello")];
        let ask = |mind: &mut DeskMind, history: &[ConversationLine]| {
            mind.next(&Thought { purpose: Purpose::Reply, history: history.to_vec(), unsaid: None }).say
        };
        assert_eq!(ask(&mut mind, &history), BIRTH);
        history[1] = turn("hello i have a question");
        assert_eq!(ask(&mut mind, &history), BIRTH);
        // It was stopped before its first word.
        history.extend([own("", true), turn("")]);
        assert_eq!(ask(&mut mind, &history), BIRTH);
        history.extend([own("Yes, I can help", true), turn("")]);
        assert!(ask(&mut mind, &history).starts_with("Yes, of course. Please tell me your date of birth"));
    }

    #[test]
    fn a_fault_is_as_it_is_named_and_nothing_else() {
        // Each turn is thought about twice: the first move is dropped, and never happened.
        let check = |fault: Fault, turns: &[&str], expect: &[&str]| {
            let (mut mind, mut history) = (DeskMind::faulty(fault), vec![own(GREETING, false)]);
            for (heard, expect) in turns.iter().zip(expect) {
                history.push(turn(heard));
                let ask = || Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None };
                let (dropped, next) = (mind.next(&ask()), mind.next(&ask()));
                assert_eq!(dropped.say, next.say, "{fault:?}: {heard}");
                assert!(next.say.contains(expect), "{fault:?}: {heard}: {}", next.say);
                history.push(own(&next.say, false));
            }
        };
        check(
            Fault::RepeatsItself,
            &["an appointment", "march third", "march third", "yes", "yes"],
            &["date of birth", "date of birth", "Tuesday", "Tuesday", "booked"],
        );
        check(
            Fault::MishearsName,
            &["#1", "#4711", "yes"],
            &["Walker. Okay, please enter", "Walker. All right, your member number is 4, 7, 1, 1", "checked in"],
        );
        let wishes = &["i need a doctor", "in march", "yes"];
        for (fault, expect) in [
            (Fault::EchoesCaller, ["i need a doctor Yes, I can", "in march Okay.", "yes Very good"]),
            (Fault::AnswersTwice, ["birth. Yes, I can", "good for you? Okay.", "goodbye. Very good"]),
            (Fault::WrongLanguage, [SPANISH_ANSWER; 3]),
            (Fault::StuckLoop, [BIRTH; 3]),
            (Fault::ReadsBackPrivate, [BIRTH, "Your date of birth is in march. Okay.", BOOKED]),
            (Fault::InventsBooking, ["is booked. Yes, I can help you.", TIMES, BOOKED]),
            (Fault::DeadAir, ["Yes, I can help you.", TIMES, BOOKED]),
        ] {
            check(fault, wishes, &expect);
        }
        check(Fault::MisreadsNumber, &["#1", "#4711"], &[MEMBER, "your member number is 4, 1, 7, 1."]);
    }

    /// Asks a mind for the answer to a turn, and for what it says when it is asked to go on.
    fn after_the_pause(fault: Option<Fault>, told: &str) -> [Move; 2] {
        let mut mind = fault.map_or_else(DeskMind::default, DeskMind::faulty);
        let mut history = vec![own(GREETING, false), turn(told)];
        let first = mind.next(&Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None });
        history.push(own(&first.say, false));
        let then = mind.next(&Thought { purpose: Purpose::GoOn, history, unsaid: None });
        [first, then]
    }

    #[test]
    fn words_follow_a_pause() {
        let [first, then] = after_the_pause(None, "#0");
        assert_eq!((&*first.say, first.then, &*then.say), (TRANSFER, Then::Pause { ms: CONNECTING_MS }, NURSE));
        let [first, _] = after_the_pause(Some(Fault::SilentAfterTransfer), "#0");
        assert_eq!((&*first.say, first.then), (TRANSFER, Then::StaySilent));
        let [first, then] = after_the_pause(Some(Fault::DeadAir), "i need a doctor");
        assert_eq!((first.then, &*then.say), (Then::Pause { ms: DEAD_AIR_MS }, "Please tell me your date of birth."));
    }

    /// Every sentence of the desk but some numbers is kept in its voice.
    #[test]
    fn the_sentences_are_kept_in_the_agents_voice() {
        let id = crate::agent::Desk::voice_wanted().custom_voice_id.expect("it names one");
        let steps = [Step::Birth, Step::Time, Step::OtherTime, Step::AnythingElse];
        let again = steps.map(|step| format!("Yes, of course. {}", again(step).expect("it is asked again")));
        let short = [1, 2, 3].map(|count| format!("I have got {count} digits only. {MEMBER}"));
        let right = "All right, your member number is 4, 7, 1, 1. Is that right?".to_owned();
        for text in FIXED.map(str::to_owned).into_iter().chain(again).chain(short).chain([right]) {
            assert!(crate::provider::recorded::is_kept(&id, &text), "{text}");
        }
    }

    #[test]
    fn who_cuts_in_is_asked_again_in_short() {
        let mut mind = DeskMind::default();
        let mut history = vec![own(GREETING, false)];
        for text in ["", ""] {
            history.push(turn(text));
            let next = mind.next(&Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None });
            history.push(own(&next.say, false));
        }
        let words = history.last_mut().expect("the times were offered");
        *words = own("Okay. This week I", true);
        history.push(turn("sorry can i just say something"));
        let next = mind.next(&Thought { purpose: Purpose::Reply, history, unsaid: None });
        assert_eq!(next.say, "Yes, of course. Would Tuesday at nine in the morning be good for you?");
    }
}
