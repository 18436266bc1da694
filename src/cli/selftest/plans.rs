//! Suites of the selftest: for each fault one that should find it, what passes the same suite, and one that the fault
//! does not touch.

use crate::agent::Fault;

/// A scenario without its name: the word for it, and its lines.
pub(crate) type Plan = (&'static str, &'static str);

/// Channel over which an agent is called.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// SIP, in virtual or in real time.
    Sip,
    /// The engine's own protocol on a WebSocket, in real time alone.
    WebSocket,
    /// A voice pipeline, in real time alone.
    Pipeline,
    /// Chat-completions requests, in real time alone.
    Chat,
}

impl Channel {
    /// Returns the channels of calls in real time, or of those in virtual time.
    pub(crate) fn all(is_real: bool) -> &'static [Channel] {
        match is_real {
            true => &[Channel::Sip, Channel::WebSocket, Channel::Pipeline, Channel::Chat],
            false => &[Channel::Sip],
        }
    }

    /// Returns the word behind the name of an agent that is called over this channel.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Channel::Sip => "",
            Channel::WebSocket => " over WebSocket",
            Channel::Pipeline => " over a pipeline",
            Channel::Chat => " in writing",
        }
    }

    /// Returns the address of an agent at this port of the machine, as a suite writes it.
    fn connect(self, agent: &str, port: u16) -> String {
        match self {
            Channel::Sip => format!("{{ sip: \"sip:{agent}@127.0.0.1:{port}\" }}"),
            Channel::WebSocket => format!("{{ ws: \"ws://127.0.0.1:{port}/\" }}"),
            Channel::Pipeline => format!("{{ pipeline: \"http://127.0.0.1:{port}\" }}"),
            Channel::Chat => format!("{{ chat: \"http://127.0.0.1:{port}/v1\", model: desk, key: none }}"),
        }
    }
}

// Words are expected that the recognizer of a machine without neural models hears right. A caller who speaks of
// appointments would key what the menu offers for them. Answers wait for 2 s, so that a recognizer that has calls of
// both sides to hear is in time.
const BOOKS: Plan = (
    "books",
    "
    goal: I need a doctor. The third of March. Yes please.
    traits: { date_of_birth: \"The third of March.\" }
    endpointing_delay: 2
    max_seconds: 90
    expect:
      - { not_heard: walker }
      - { metric: p95_agent_latency, at_most: 2.5 }
      - { metric: time_to_first_agent_utterance, at_most: 3 }
      - { metric: agent_interruption_count, at_most: 0 }
      - { metric: num_turns, at_least: 3, at_most: 5 }
      - { metric: agent_snr, at_least: 25 }
      - { metric: agent_audio_clarity, at_least: 85 }
      - { heard: \"booked|appointment is|and goodbye\", as: regex }
      - { ended_by: agent, within_s: 80 }
",
);

const KEYS: Plan = (
    "keys",
    "
    endpointing_delay: 2
    max_seconds: 90
    turns:
      - expect: { contains: press }
      - dtmf: \"1\"
      - expect: { contains: four digit, within_ms: 5000 }
      - dtmf: \"4711\"
      - expect: { excludes: [\"9\", nine], within_ms: 5000 }
      - say: Yes, that is right.
      - expect: { contains: nurse, within_ms: 5000 }
",
);

const ASKS: Plan = (
    "asks",
    "
    endpointing_delay: 2
    max_seconds: 90
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
      - say: The third of March.
      - expect: { excludes: [date of birth, birth] }
",
);

const CUTS_IN: Plan = (
    "cuts in",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - interrupt: { after_ms: 3500, say: \"Excuse me, I have one question for you.\" }
      - expect: { within_ms: 5000 }
    expect: [{ metric: yield_rate, at_least: 1 }]
",
);

// The greeting ends by itself beside the caller's long words, which is no yielding.
const TALKS_LONG: Plan = (
    "talks long",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - interrupt: { after_ms: 5700, say: \"Excuse me, I am sorry to stop you here, and yet I have a question about the visit of my daughter, who was with you on Monday, and would like to come again on Friday.\" }
      - expect: { within_ms: 5000 }
    expect: [{ metric: yield_rate, at_least: 1 }]
",
);

// Much is said by the agent, so that coughs fall into it in every call. A pause between two sentences can look like a
// stop beside a cough: an agent that goes on does so at few of them.
const COUGHS: Plan = (
    "coughs",
    "
    goal: What are your opening hours? Yes, I need a doctor. The third of March. No, not then. Yes please.
    endpointing_delay: 2
    max_seconds: 120
    duplex: { vocal_tic_per_minute: 10 }
    expect: [{ metric: vocal_tic_selectivity, at_least: 0.75 }]
",
);

const GREETS: Plan = (
    "greets",
    "
    max_seconds: 30
    turns:
      - expect: { contains: press, within_ms: 4000 }
",
);

/// Suite of an agent that greets soon. The late first word comes after 6 s: told 2 s too early it would pass.
const GREETS_SOON: Plan = (
    "greets soon",
    "
    max_seconds: 30
    turns:
      - expect: { within_ms: 5000 }
    expect: [{ metric: time_to_first_agent_utterance, at_most: 5 }]
",
);

/// Suite of an agent whose greeting comes soon behind a ringback tone, which is none.
const GREETS_BEHIND: Plan = (
    "greets behind a tone",
    "
    max_seconds: 30
    turns:
      - expect: { within_ms: 5000 }
    expect:
      - { metric: time_to_first_agent_utterance, at_most: 5 }
      - { metric: time_to_first_agent_utterance, at_least: 0.8 }
",
);

/// Suite of an agent that writes its greeting soon.
const WRITES_SOON: Plan = (
    "writes soon",
    "
    max_seconds: 30
    turns:
      - expect: { contains: press, within_ms: 5000 }
",
);

const ENDS: Plan = (
    "ends",
    "
    goal: I need a doctor. The third of March. Yes please.
    endpointing_delay: 2
    max_seconds: 90
    expect: [{ ended_by: agent }]
",
);

const ANSWERS_SOON: Plan = (
    "answers soon",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 4000 }
",
);

const SILENT: Plan = (
    "keeps silent",
    "
    max_seconds: 30
    turns:
      - expect: { absent: true, within_ms: 4000 }
",
);

/// Suite of an agent that does not say the caller's words back. They are enough to be told from words that both sides
/// use.
const NO_ECHO: Plan = (
    "says nothing back",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I am ill and need help.
      - expect: { within_ms: 15000 }
    expect: [{ metric: echoed_turns, at_most: 0 }]
",
);

const SAYS_ONCE: Plan = (
    "says it once",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
    expect: [{ metric: doubled_turns, at_most: 0 }]
",
);

const SPEAKS_ENGLISH: Plan = (
    "speaks English",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { contains: date of birth, within_ms: 15000 }
    expect: [{ metric: foreign_turns, at_most: 0 }]
",
);

const GOES_ON: Plan = (
    "goes on",
    "
    endpointing_delay: 2
    max_seconds: 90
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
      - say: The third of March.
      - expect: { within_ms: 15000 }
      - say: Yes please.
      - expect: { within_ms: 15000 }
    expect: [{ metric: repeated_turns, at_most: 0 }]
",
);

const KEYS_AT_ONCE: Plan = (
    "keys all at once",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { contains: press }
      - dtmf: \"14711471\"
      - expect: { within_ms: 15000 }
    expect: [{ metric: keys_talked_over, at_most: 0 }]
",
);

// The caller waits to the end: words after the silence would come too late to be heard.
const CONNECTED: Plan = (
    "is connected",
    "
    endpointing_delay: 2
    silence_timeout: 50
    max_seconds: 45
    turns:
      - expect: { contains: press }
      - dtmf: \"0\"
      - expect: { contains: connect, within_ms: 8000 }
      - expect: { within_ms: 14000 }
",
);

const KEEPS_PRIVATE: Plan = (
    "keeps it private",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
      - say: The third of March.
      - expect: { within_ms: 15000 }
    expect: [{ not_heard: march }]
",
);

// Read in the wrong order it is the number that the agent's own voice says.
const READS_NUMBER: Plan = (
    "reads the number",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { contains: press }
      - dtmf: \"1\"
      - expect: { contains: four digit, within_ms: 5000 }
      - dtmf: \"4171\"
      - expect: { contains: \"4171\", within_ms: 5000 }
",
);

/// Only the meaning of a booking tells whether it was asked for.
const BOOKS_WHAT_IS_ASKED: Plan = (
    "books what is asked for",
    "
    endpointing_delay: 2
    max_seconds: 90
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
      - say: The third of March.
      - expect: { within_ms: 15000 }
      - say: Yes please.
      - expect: { within_ms: 15000 }
    expect: [{ meaning: The agent says that an appointment is booked only after the caller has agreed to a time. }]
",
);

const STOPS_SOON: Plan = (
    "stops soon",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - interrupt: { after_ms: 3500, say: \"Excuse me, I am sorry to stop you here, and yet I have a question about the visit of my daughter on Monday.\" }
      - expect: { within_ms: 5000 }
    expect: [{ metric: yield_rate, at_least: 1 }]
",
);

const BEGINS_WHOLE: Plan = (
    "begins with its first word",
    "
    endpointing_delay: 2
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { contains: \"yes\", within_ms: 15000 }
",
);

// The caller waits longer than the fault is silent.
const NO_DEAD_AIR: Plan = (
    "speaks without a hole",
    "
    endpointing_delay: 7
    max_seconds: 60
    turns:
      - expect: { within_ms: 15000 }
      - say: I need a doctor.
      - expect: { within_ms: 15000 }
    expect: [{ metric: longest_agent_pause, at_most: 2 }]
",
);

/// Returns the suite that should find a fault on a channel.
pub(crate) fn finding(fault: Fault, channel: Channel) -> Plan {
    match fault {
        _ if channel != Channel::Sip => greeting_plan(channel),
        Fault::IgnoresKeys | Fault::WrongDigit => KEYS,
        Fault::RepeatsItself => ASKS,
        Fault::DoesNotYield => CUTS_IN,
        Fault::LateBehindRingback => GREETS_BEHIND,
        Fault::Deaf => TALKS_LONG,
        Fault::YieldsToCough => COUGHS,
        Fault::EchoesCaller => NO_ECHO,
        Fault::AnswersTwice => SAYS_ONCE,
        Fault::WrongLanguage => SPEAKS_ENGLISH,
        Fault::StuckLoop => GOES_ON,
        Fault::TalksOverKeys => KEYS_AT_ONCE,
        Fault::SilentAfterTransfer => CONNECTED,
        Fault::ReadsBackPrivate => KEEPS_PRIVATE,
        Fault::MisreadsNumber => READS_NUMBER,
        Fault::InventsBooking => BOOKS_WHAT_IS_ASKED,
        Fault::StopsLate => STOPS_SOON,
        Fault::CutsFirstWord => BEGINS_WHOLE,
        Fault::DeadAir => NO_DEAD_AIR,
        _ => BOOKS,
    }
}

/// Returns the suite of an agent that greets soon on a channel.
pub(crate) fn greeting_plan(channel: Channel) -> Plan {
    if channel == Channel::Chat { WRITES_SOON } else { GREETS_SOON }
}

/// Returns the channels over which a fault is planted: the time of the greeting counts from another moment on each, and
/// a wrong rate is one of a WebSocket. None: the fault is not planted in virtual time, or not in real time, where an
/// English recognizer has no words for another language.
pub(crate) fn channels(fault: Fault, is_real: bool) -> &'static [Channel] {
    match fault {
        Fault::WrongRate if is_real => &[Channel::WebSocket],
        Fault::WrongRate => &[],
        Fault::WrongLanguage if is_real => &[],
        _ => Channel::all(is_real && fault == Fault::LateFirstWord),
    }
}

/// Returns a suite of something else, that an agent with the fault passes.
pub(crate) fn sparing(fault: Fault) -> Plan {
    match fault {
        Fault::IgnoresKeys | Fault::WrongDigit | Fault::DoesNotYield | Fault::YieldsToCough => BOOKS,
        Fault::TalksOverKeys | Fault::SilentAfterTransfer | Fault::MisreadsNumber | Fault::StopsLate => BOOKS,
        Fault::MishearsName | Fault::LateFirstWord | Fault::LateBehindRingback => KEYS,
        Fault::EchoesCaller | Fault::ReadsBackPrivate | Fault::InventsBooking | Fault::DeadAir => GREETS,
        Fault::AnswersTwice | Fault::StuckLoop => GREETS,
        Fault::WrongLanguage => ANSWERS_SOON,
        Fault::CutsFirstWord => ENDS,
        Fault::OneWayAudio => SILENT,
        Fault::ClippedAudio => ENDS,
        _ => GREETS,
    }
}

/// Returns the agent without the fault, which passes the suite that should find it.
pub(crate) fn sound(fault: Fault) -> &'static str {
    match fault {
        Fault::YieldsToCough => Fault::Steady.as_str(),
        Fault::LateBehindRingback => Fault::SoonBehindRingback.as_str(),
        _ => "desk",
    }
}

/// Returns the name of a scenario: an agent with its channel, and the word for what is tried.
pub(crate) fn name(agent: &str, channel: Channel, plan: Plan) -> String {
    format!("{agent}{} {}", channel.suffix(), plan.0)
}

/// Name of an agent that does not run: its calls should be told to be unreachable.
pub(crate) const DEAD: &str = "dead";

/// Returns the line of a suite that says which agent is called.
pub(crate) fn connect_line(agent: &str, channel: Channel, port: u16) -> String {
    format!("connect: {}", channel.connect(agent, port))
}

/// True for a fault that is made of the caller's words: the agent has to hear them.
fn needs_words(agent: &str) -> bool {
    matches!(Fault::of_word(agent), Some(Fault::EchoesCaller | Fault::ReadsBackPrivate))
}

/// Command of an agent, with the folder of its speech models where it has some.
pub(crate) struct Started {
    pub command: Vec<String>,
    pub models: Option<String>,
}

/// Returns the file of an agent at this port; `started`: what starts it.
pub(crate) fn file(agent: &str, channel: Channel, plans: &[Plan], port: u16, started: Option<&Started>) -> String {
    let mut text = format!("version: 1\n{}\n", connect_line(agent, channel, port));
    if let Some(Started { command, models }) = started {
        let mut spawn = serde_json::json!({
            "command": command, "ready": { "tcp": format!("127.0.0.1:{port}"), "within_s": 60 },
        });
        // Most agents do well without knowing a word, and two programs that recognise take twice the time.
        if let Some(models) = models.as_ref().filter(|_| needs_words(agent)) {
            spawn["env"] = serde_json::json!({ "RINGER_SPEECH_MODELS": models });
        }
        text += &format!("spawn: {spawn}\n");
    }
    text += "scenarios:\n";
    plans.iter().for_each(|plan| text += &format!("  - name: {}{}", name(agent, channel, *plan), plan.1));
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::suite::file::of_node;
    use crate::suite::yaml::parse;

    #[test]
    fn the_suites_of_the_faults_can_be_read() {
        let (command, models) = (vec!["ringer".to_owned(), "agent".to_owned()], Some("/models".to_owned()));
        let started = Started { command, models };
        for fault in Fault::ALL {
            let found = finding(fault, Channel::Sip);
            assert_ne!(found, sparing(fault));
            for (agent, plans) in
                [(fault.as_str(), &[found, sparing(fault), GREETS_SOON][..]), (sound(fault), &[found])]
            {
                for (channel, started) in
                    [(Channel::Sip, None), (Channel::Sip, Some(&started)), (Channel::WebSocket, Some(&started))]
                {
                    let root = parse(&file(agent, channel, plans, 5081, started), "f").expect("it is YAML");
                    let read = of_node(&root, Path::new("f")).unwrap_or_else(|problems| panic!("{problems:?}"));
                    let names: Vec<String> = read.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
                    assert_eq!(names, plans.iter().map(|plan| name(agent, channel, *plan)).collect::<Vec<_>>());
                    assert_eq!(read.spawn.is_some(), started.is_some());
                }
            }
        }
    }
}
