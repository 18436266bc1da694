//! Promises that every call keeps, whatever its scenario.

use std::collections::HashSet;

use ringer_media::call::NoiseSpec;
use ringer_media::call::{EndReason, Event, EventKind, Kind, ProbeKind, TICK};
use ringer_media::frame::FRAME;
use ringer_media::impair::AudioQuality;
use ringer_media::rtp::rtcp::{Item, parse};
use ringer_media::testing::{Log, Rig};

use super::grammar::{Action, Scenario};

/// Returns the promises that this call broke.
pub(crate) fn broken(scenario: &Scenario, rig: &Rig) -> Vec<String> {
    let mut broken = Vec::new();
    let mut check = |kept: bool, what: String| {
        if !kept {
            broken.push(what);
        }
    };
    let log = &rig.log;
    check(log.endings.len() == 1, format!("ended {} times", log.endings.len()));
    check(log.after_end == 0, format!("{} outputs after the end", log.after_end));
    check(log.open.is_empty(), format!("effects neither done nor cancelled: {:?}", log.open));
    let Some(ending) = log.endings.first() else { return broken };

    let length = rig.recorded_samples();
    let dead = ending.reason == EndReason::MediaTimeout;
    let exact = if dead { length >= ending.samples } else { length == ending.samples };
    check(exact, format!("{length} samples recorded of {}", ending.samples));
    check(log.clean.len() as i64 == length, format!("{} samples of the clean track of {length}", log.clean.len()));
    if scenario.call.noise.is_none() && scenario.call.audio_quality == AudioQuality::HIGH {
        check(channel(log, 0).eq(log.clean.iter().copied()), "the clean track is not what was sent".into());
    }
    if scenario.pcm.is_some() {
        frames(scenario, rig, &mut check);
    } else if scenario.call.connection == Default::default() {
        packets(scenario, rig, &mut check);
    } else {
        in_order(rig, &mut check);
    }
    goodbye(rig, &mut check);
    speech(rig, &mut check);
    probes(rig, &mut check);
    ears(scenario, rig, &mut check);
    let ends = log.events.iter().filter(|event| matches!(event.what, EventKind::Ended { .. })).count();
    check(ends == 1, format!("{ends} call.ended"));
    let order = log.events.iter().filter(|event| event.sample > ending.samples && event.sample >= 0).count();
    check(dead || order == 0, format!("{order} events after the end"));
    broken
}

/// Returns one channel of the recording.
fn channel(log: &Log, channel: usize) -> impl Iterator<Item = i16> {
    log.recorded.iter().copied().skip(channel).step_by(2)
}

/// Checks that a side which has sent leaves the RTP session, once and last, by a report, its name and BYE (RFC 3550
/// 6.1, 6.6).
fn goodbye(rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let log = &rig.log;
    let said = |bytes: &[u8]| {
        let mut ssrc = None;
        parse(bytes, |item| ssrc = if let Item::Bye(of) = item { Some(of) } else { ssrc });
        ssrc
    };
    let byes: Vec<usize> = (0..log.reports.len()).filter(|at| said(&log.reports[*at]).is_some()).collect();
    if log.packets.is_empty() {
        return check(log.reports.is_empty(), format!("{} reports of who never sent", log.reports.len()));
    }
    check(byes == [log.reports.len().wrapping_sub(1)], format!("BYE in {byes:?} of {} reports", log.reports.len()));
    let Some(last) = log.reports.last() else { return };
    let words: Vec<&[u8]> = last.chunks(4).collect();
    check(matches!(last[1], 200 | 201), format!("the last compound packet begins with {}", last[1]));
    check(words.iter().any(|word| word[..2] == [0x81, 202]), "the last report names nobody".into());
    check(said(last).map(u32::to_be_bytes) == last[4..8].try_into().ok(), "BYE is of another source".into());
}

/// Checks for one frame a tick, each at the position of its tick.
fn frames(scenario: &Scenario, rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let log = &rig.log;
    check(log.packets.is_empty() && log.reports.is_empty(), "packets on a leg of PCM".into());
    let rate_hz = scenario.pcm.map_or(0, |pcm| pcm.rate_hz as usize);
    for pair in log.frames.windows(2) {
        check(pair[1].from > pair[0].from, format!("a frame at {} after one at {}", pair[1].from, pair[0].from));
    }
    let samples: usize = log.frames.iter().map(|frame| frame.len).sum();
    check(samples.abs_diff(log.frames.len() * rate_hz / 50) <= 1, format!("{samples} samples in frames of 20 ms"));
    let missed: usize =
        scenario.actions.iter().map(|(_, action)| if let Action::Misses(n) = action { *n } else { 0 }).sum();
    let length = log.endings[0].samples as usize / FRAME;
    check(
        (log.frames.len() + missed).abs_diff(length)
            <= 1 + usize::from(scenario.call.connection != Default::default()) * 5,
        format!("{} frames in {length} ticks", log.frames.len()),
    );
}

/// Checks for one packet a tick, each with the next number and the timestamp of its tick; an event keeps its timestamp.
fn packets(scenario: &Scenario, rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let packets = &rig.log.packets;
    let audio = scenario.media.payload_type;
    let Some(first) = packets.iter().find(|packet| packet.payload_type == audio) else { return };
    let mut ticks = HashSet::new();
    for pair in packets.windows(2) {
        let step = pair[1].sequence.wrapping_sub(pair[0].sequence);
        check(step == 1, format!("sequence {} after {}", pair[1].sequence, pair[0].sequence));
    }
    for packet in packets {
        check(ticks.insert(packet.at), format!("two packets at {:?}", packet.at));
        if packet.payload_type == audio {
            let passed = packet.at.since(first.at).as_millis() as u32 * 8;
            check(packet.timestamp == first.timestamp.wrapping_add(passed), format!("timestamp at {:?}", packet.at));
        }
    }
    let last = packets.last().map_or(first.at, |packet| packet.at);
    let misses: usize =
        scenario.actions.iter().map(|(_, action)| if let Action::Misses(n) = action { *n } else { 0 }).sum();
    let missed = misses + ticks_unwanted(scenario, rig, check);
    let span = (last.since(first.at).as_millis() / TICK.as_millis()) as usize + 1;
    check(ticks.len() + missed == span, format!("{} ticks had a packet of {span}", ticks.len()));
    let length = (rig.log.endings[0].samples as usize / FRAME).min(wanted_for(scenario));
    let dead = rig.log.endings[0].reason == EndReason::MediaTimeout;
    check(dead || span.abs_diff(length) <= 1, format!("packets in {span} ticks of {length}"));
}

/// Returns the number of ticks until the other side did not want to receive for good.
fn wanted_for(scenario: &Scenario) -> usize {
    let last = scenario.actions.iter().rev().find_map(|(at, action)| match action {
        Action::Hold(held) => Some((*at, !held)),
        Action::WantsAudio(wants) => Some((*at, *wants)),
        _ => None,
    });
    last.filter(|(_, wants)| !wants).map_or(usize::MAX, |(from, _)| (from / 0.02).round() as usize)
}

/// Counts the ticks up to the last packet in which the other side did not want to receive: none of them has a packet.
fn ticks_unwanted(scenario: &Scenario, rig: &Rig, check: &mut impl FnMut(bool, String)) -> usize {
    let packets: Vec<f64> = rig.log.packets.iter().map(|packet| rig.seconds_of(packet.at)).collect();
    let last = packets.last().copied().unwrap_or(0.0);
    let mut changes = scenario.actions.iter().filter_map(|(at, action)| match action {
        Action::Hold(held) => Some((*at, !held)),
        Action::WantsAudio(wants) => Some((*at, *wants)),
        _ => None,
    });
    let mut ticks = 0;
    while let Some((from, wants)) = changes.next() {
        if wants || from > last {
            continue;
        }
        let to = changes.find(|(_, wants)| *wants).map_or(last, |(to, _)| to.min(last));
        // The signal comes before its tick.
        let between = |at: &&f64| (from + 0.021..to + 0.001).contains(*at);
        check(packets.iter().filter(between).count() == 0, format!("packets between {from} and {to} s"));
        ticks += ((to - from) / 0.02).round() as usize;
    }
    ticks
}

/// Checks a connection that is bad on purpose: packets are missing and late, and none overtakes another.
fn in_order(rig: &Rig, check: &mut impl FnMut(bool, String)) {
    for pair in rig.log.packets.windows(2) {
        let step = pair[1].sequence.wrapping_sub(pair[0].sequence);
        check(step > 0 && step < 1000, format!("sequence {} after {}", pair[1].sequence, pair[0].sequence));
    }
}

/// Checks that speech begins and ends in turns, each once. A turn is reported once, and never over another.
fn speech(rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let (mut own, mut other, mut turns) = (None, None, Vec::new());
    for event in &rig.log.events {
        match &event.what {
            EventKind::SpeechStarted { utterance_id, .. } => {
                check(own.is_none(), format!("utterance {utterance_id} begins in another"));
                own = Some((*utterance_id, event.sample));
            }
            EventKind::SpeechEnded { utterance_id, .. } => {
                let fits = own.take().is_some_and(|(id, from)| id == *utterance_id && from <= event.sample);
                check(fits, format!("utterance {utterance_id} ends, but does not run"));
            }
            EventKind::AgentSpeechStarted { .. } => {
                check(other.is_none(), format!("agent speech begins twice at {}", event.sample));
                other = Some(event.sample);
            }
            EventKind::AgentSpeechEnded { .. } => {
                let fits = other.take().is_some_and(|from| from < event.sample);
                check(fits, format!("agent speech ends at {} without onset", event.sample));
            }
            EventKind::TurnEnded { from_sample, end_sample, .. } => turns.push((*from_sample, *end_sample)),
            _ => {}
        }
    }
    check(own.is_none() && other.is_none(), format!("speech without end: {own:?} {other:?}"));
    turns.sort_unstable();
    let apart = turns.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    check(apart && turns.iter().all(|turn| turn.0 <= turn.1), format!("turns run into each other: {turns:?}"));
}

/// Checks that probes sound while the other side speaks and this side is silent, 2 s after the one before. A
/// backchannel sounds 1 s into the turn. Each has its length; the audible part may be a little shorter.
fn probes(rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let events = &rig.log.events;
    let mut last: Option<Event> = None;
    let (mut speaks, mut since, mut own) = (false, 0, false);
    for (n, event) in events.iter().enumerate() {
        match &event.what {
            EventKind::AgentSpeechStarted { .. } => {
                let answered = own || events[..n].iter().rev().find_map(words).is_some_and(|side| side == "own");
                since = if answered || since == 0 { event.sample } else { since };
                speaks = true;
            }
            EventKind::AgentSpeechEnded { .. } => speaks = false,
            EventKind::SpeechStarted { kind, .. } if *kind != Kind::Probe => own = true,
            EventKind::SpeechEnded { kind, .. } if *kind != Kind::Probe => own = false,
            EventKind::Probe { kind } => {
                let at = event.sample;
                check(speaks && !own, format!("a probe at {at} beside the other side's speech, or in own words"));
                let early = *kind == ProbeKind::Backchannel && at < since + 16_000;
                check(!early, format!("a backchannel at {at}, the turn began at {since}"));
                let apart = last.as_ref().is_none_or(|last| at - last.sample >= 32_000);
                check(apart, format!("a probe at {at}, the last ended at {:?}", last.as_ref().map(|last| last.sample)));
                last = ends(&events[n..]);
                let length = last.as_ref().map_or(0, |end| end.sample - at);
                let cut = matches!(
                    last.as_ref().map(|end| &end.what),
                    Some(EventKind::SpeechEnded { interrupted: true, .. })
                );
                let [least, most] = match kind {
                    ProbeKind::Backchannel => [3200, 8000],
                    ProbeKind::VocalTic => [2880, 12_800],
                    ProbeKind::NonDirected => [16_000, 32_000],
                };
                check(length <= most && (cut || length >= least), format!("a {kind:?} at {at} of {length} samples"));
            }
            _ => {}
        }
    }
}

/// Returns the side whose words an event ends: `own` or `other`; `None` for other events.
fn words(event: &Event) -> Option<&'static str> {
    match &event.what {
        EventKind::SpeechEnded { kind, .. } if *kind != Kind::Probe => Some("own"),
        EventKind::AgentSpeechEnded { .. } => Some("other"),
        _ => None,
    }
}

/// Returns the end of the probe that begins with these events.
fn ends(events: &[Event]) -> Option<Event> {
    let end = |event: &&Event| matches!(event.what, EventKind::SpeechEnded { kind: Kind::Probe, .. });
    events.iter().find(end).cloned()
}

/// Checks that the recognizer's audio runs on within a segment when the network is good. A buffer that becomes
/// shallower may skip up to two frames.
fn ears(scenario: &Scenario, rig: &Rig, check: &mut impl FnMut(bool, String)) {
    let broken_on_purpose = scenario.actions.iter().any(|(_, action)| !matches!(action, Action::Says { .. }));
    if scenario.net != Default::default() || broken_on_purpose || scenario.call.connection != Default::default() {
        return;
    }
    for pair in rig.log.ears.windows(2).filter(|pair| !pair[1].first) {
        let next = pair[0].from + pair[0].len as i64;
        check(
            (next..=next + 2 * FRAME as i64).contains(&pair[1].from),
            format!("ears jump from {next} to {}", pair[1].from),
        );
    }
}

/// Same seed, same call: every byte of the recording, every event.
#[test]
fn a_seed_gives_one_call() {
    let voice = super::voice();
    let source = "net jitter 40 loss 5%\ncaller interrupts 1.0\ncaller opens \"Good morning.\"\ncaller replies \"I see, and then?\"\n\
        3.0 agent says 4.0 \"this is quite a long story\"\n12.0 agent says 1.0 \"the end\"\nuntil 20";
    let play = |seed: u64| {
        let mut scenario = super::grammar::parse("seed", source, &voice).expect("it is right");
        scenario.call.seed = ringer_media::seed::Seed(seed);
        super::play(&scenario, &voice).log
    };
    let (first, again, other) = (play(5), play(5), play(6));
    assert!(first.recorded == again.recorded && first.events == again.events && first.packets == again.packets);
    assert!(first.recorded != other.recorded && first.events != other.events);
    assert_eq!(TICK.as_millis(), 20);
}

/// The recording of this side is silent while the other side does not want to hear it, whatever noise there is.
#[test]
fn nothing_is_recorded_as_sent_on_hold() {
    let voice = super::voice();
    let source = "caller opens \"Good morning.\"\n4.0 agent holds\n8.0 agent resumes\nuntil 10";
    let mut scenario = super::grammar::parse("hold", source, &voice).expect("it is right");
    let loop_pcm = voice.say(16_000 * 5, 4000);
    scenario.call.noise = Some(NoiseSpec { loop_pcm, gain_narrow: 0.2, gain_wide: 0.2, start: 77 });
    let rig = super::play(&scenario, &voice);
    assert_eq!(broken(&scenario, &rig), [""; 0]);
    let sent: Vec<i16> = channel(&rig.log, 0).collect();
    let heard = |from_ms: usize, to_ms: usize| sent[from_ms * 16..to_ms * 16].iter().filter(|x| **x != 0).count();
    assert_eq!(heard(4020, 8000), 0);
    assert!(heard(3000, 3900) > 5000 && heard(8100, 9000) > 5000);
}

/// The clean track holds the words as if there were neither noise nor a bad connection, at the same samples.
#[test]
fn the_clean_track_has_no_noise() {
    let voice = super::voice();
    let source = "caller opens \"Good morning.\"\ncaller replies \"I see, and then?\"\n\
        3.0 agent says 2.0 \"a story\"\n3.5 driver misses 3\nuntil 12";
    let play = |noisy: bool| {
        let mut scenario = super::grammar::parse("clean", source, &voice).expect("it is right");
        if noisy {
            let loop_pcm = voice.say(16_000 * 5, 4000);
            scenario.call.noise = Some(NoiseSpec { loop_pcm, gain_narrow: 0.2, gain_wide: 0.2, start: 77 });
            scenario.call.audio_quality = AudioQuality::HORRIBLE;
        }
        super::play(&scenario, &voice).log
    };
    let (plain, noisy) = (play(false), play(true));
    assert!(plain.clean.iter().filter(|x| x.unsigned_abs() > 1000).count() > 10_000);
    assert!(plain.clean == noisy.clean && channel(&plain, 0).eq(plain.clean.iter().copied()));
    let differing = channel(&noisy, 0).zip(&noisy.clean).filter(|(sent, clean)| sent != *clean).count();
    assert!(differing > noisy.clean.len() / 2, "{differing} of {}", noisy.clean.len());
    assert_eq!(noisy.recorded.len(), 2 * noisy.clean.len());
}
