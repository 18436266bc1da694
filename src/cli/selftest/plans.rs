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
    goal: I would like to see a doctor. The third of March. Yes please.
    traits: { date_of_birth: \"The third of March.\" }
    endpointing_delay: 2
    max_seconds: 90
    expect:
      - { not_heard: walker }
      - { metric: p95_agent_latency, at_most: 2.5 }
      - { metric: time_to_first_agent_utterance, at_most: 3 }
      - { metric: agent_interruption_count, at_most: 0 }
      - { metric: num_turns, at_most: 5 }
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
      - say: I would like to see a doctor.
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
      - interrupt: { after_ms: 1500, say: \"Excuse me, I have one question for you.\" }
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
// stop beside a cough: an agent that yields does so at most of them.
const COUGHS: Plan = (
    "coughs",
    "
    goal: What are your opening hours? Yes, I would like to see a doctor. The third of March. No, not then. Yes please.
    endpointing_delay: 2
    max_seconds: 120
    duplex: { vocal_tic_per_minute: 10 }
    expect: [{ metric: vocal_tic_selectivity, at_least: 0.5 }]
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
      - { metric: time_to_first_agent_utterance, at_least: 1.5 }
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
    goal: I would like to see a doctor. The third of March. Yes please.
    endpointing_delay: 2
    max_seconds: 90
    expect: [{ ended_by: agent }]
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
        _ => BOOKS,
    }
}

/// Returns the suite of an agent that greets soon on a channel.
pub(crate) fn greeting_plan(channel: Channel) -> Plan {
    if channel == Channel::Chat { WRITES_SOON } else { GREETS_SOON }
}

/// Returns the channels over which a fault is planted: the time of the greeting counts from another moment on each, and
/// a wrong rate is one of a WebSocket. None: the fault is not planted in virtual time.
pub(crate) fn channels(fault: Fault, is_real: bool) -> &'static [Channel] {
    match fault {
        Fault::WrongRate if is_real => &[Channel::WebSocket],
        Fault::WrongRate => &[],
        _ => Channel::all(is_real && fault == Fault::LateFirstWord),
    }
}

/// Returns a suite of something else, that an agent with the fault passes.
pub(crate) fn sparing(fault: Fault) -> Plan {
    match fault {
        Fault::IgnoresKeys | Fault::WrongDigit | Fault::DoesNotYield | Fault::YieldsToCough => BOOKS,
        Fault::MishearsName | Fault::LateFirstWord | Fault::LateBehindRingback => KEYS,
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

/// Returns the file of an agent at this port; `command` starts it.
pub(crate) fn file(agent: &str, channel: Channel, plans: &[Plan], port: u16, command: Option<&[String]>) -> String {
    let mut text = format!("version: 1\nconnect: {}\n", channel.connect(agent, port));
    if let Some(command) = command {
        let spawn = serde_json::json!({
            "command": command, "ready": { "tcp": format!("127.0.0.1:{port}"), "within_s": 60 },
        });
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
        let command = ["ringer".to_owned(), "agent".to_owned()];
        for fault in Fault::ALL {
            let found = finding(fault, Channel::Sip);
            assert_ne!(found, sparing(fault));
            for (agent, plans) in
                [(fault.as_str(), &[found, sparing(fault), GREETS_SOON][..]), (sound(fault), &[found])]
            {
                for (channel, command) in
                    [(Channel::Sip, None), (Channel::Sip, Some(&command[..])), (Channel::WebSocket, Some(&command[..]))]
                {
                    let root = parse(&file(agent, channel, plans, 5081, command), "f").expect("it is YAML");
                    let read = of_node(&root, Path::new("f")).unwrap_or_else(|problems| panic!("{problems:?}"));
                    let names: Vec<String> = read.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
                    assert_eq!(names, plans.iter().map(|plan| name(agent, channel, *plan)).collect::<Vec<_>>());
                    assert_eq!(read.spawn.is_some(), command.is_some());
                }
            }
        }
    }
}
