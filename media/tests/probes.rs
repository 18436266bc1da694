//! Measures of probes against signals that are laid out here as `fixtures/audio/probes.json` says, with the values that
//! they have to measure. The signals are made without any code of the measures.

use std::process::Command;

use ringer_media::call::ProbeKind;
use ringer_media::measure::{Conversation, Probe, Span, Word, metrics, segments};
use ringer_media::seed::Seed;
use ringer_media::vocal_tic::{self, Tic};
use serde_json::Value;

const RATE: f64 = 16_000.0;

/// Returns speech of flite, 16 kHz, whose pauses are cut to 100 ms: between loud places it is one stretch.
fn say(voice: &str) -> Vec<i16> {
    let text = "I would really like to know when my order will arrive because nobody could tell me anything about it, and \
        then I was told to call again in the morning, so here I am and I am waiting for your answer";
    let path = std::env::temp_dir().join(format!("ringer-probes-{}-{voice}.wav", std::process::id()));
    let status = Command::new("flite").args(["-voice", voice, "-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("the package flite is installed").success());
    let bytes = std::fs::read(&path).expect("flite wrote a file");
    std::fs::remove_file(&path).expect("it is ours");
    let pcm: Vec<i16> = bytes[44..].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect();
    let mut quiet = 0;
    let kept = pcm.chunks_exact(160).filter(|block| {
        quiet = if is_loud(block) { 0 } else { quiet + 1 };
        quiet <= 10
    });
    kept.flatten().copied().collect()
}

fn is_loud(block: &[i16]) -> bool {
    block.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() > block.len() as f64 * 1000f64.powi(2)
}

/// Returns `count` samples of speech whose first and last 60 ms are loud.
fn first_samples(clip: &[i16], count: usize) -> &[i16] {
    let loud = |from: usize| clip[from..from + 960].chunks(160).all(is_loud);
    let from = (0..clip.len() - count).step_by(80).find(|from| loud(*from) && loud(*from + count - 960));
    &clip[from.expect("loud edges")..][..count]
}

fn span(pair: &[Value]) -> Span {
    let place = |at: usize| (pair[at].as_f64().expect("seconds") * RATE).round() as i64;
    Span { from: place(0), to: place(1) }
}

fn list<'a>(case: &'a Value, name: &str) -> impl Iterator<Item = &'a [Value]> {
    case[name].as_array().into_iter().flatten().map(|entry| entry.as_array().expect("a list").as_slice())
}

/// Returns a channel with these sounds.
fn channel(length: usize, sounds: impl Iterator<Item = (Span, Vec<i16>)>) -> Vec<i16> {
    let mut pcm = vec![0i16; length];
    for (span, sound) in sounds {
        pcm.iter_mut().skip(span.from as usize).zip(sound).for_each(|(x, sound)| *x = x.saturating_add(sound));
    }
    pcm
}

#[test]
fn probes_measure_as_they_were_laid_out() {
    let fixture: Value = serde_json::from_str(include_str!("../../fixtures/audio/probes.json")).expect("JSON");
    let (own, other) = (say("slt"), say("awb"));
    let mut tics = Seed(1).stream("tics");
    for case in fixture["conversations"].as_array().expect("conversations") {
        let name = case["name"].as_str().expect("a name");
        let length = (case["seconds"].as_f64().expect("seconds") * RATE) as usize;
        let said = |clip: &[i16], span: Span| (span, first_samples(clip, span.length() as usize).to_vec());
        let probes: Vec<Probe> = list(case, "probes")
            .map(|probe| {
                let kind = probe[0].as_str().and_then(ProbeKind::from_name).expect("a kind of probe");
                Probe { kind, span: span(&probe[1..]) }
            })
            .collect();
        let sounds: Vec<(Span, Vec<i16>)> = probes
            .iter()
            .map(|probe| match probe.kind {
                ProbeKind::VocalTic => (probe.span, vocal_tic::generate(Tic::ThroatClearing, &mut tics)),
                _ => said(&own, probe.span),
            })
            .collect();
        let dh = channel(length, list(case, "dh").map(|turn| said(&own, span(turn))).chain(sounds));
        let agent = channel(length, list(case, "agent").map(|turn| said(&other, span(turn))));
        let words = list(case, "words")
            .map(|word| Word { span: span(word), text: word[2].as_str().expect("a word").to_owned() })
            .collect();
        let conversation = Conversation {
            duration: length as i64,
            dh: segments(&dh),
            agent: segments(&agent),
            probes,
            words,
            interface: "PHONE",
            ..Conversation::default()
        };
        let found = serde_json::to_value(metrics(&conversation)).expect("metrics are plain numbers");
        for (metric, expect) in case["expect"].as_object().expect("metrics") {
            let (found, expect) = (found[metric].as_f64(), expect.as_f64());
            // Edges found in a signal lie on a grid of 10 ms; a share of the call is in percent.
            let tolerance = if metric.ends_with("percentage") { 0.6 } else { 0.03 };
            let fits = match (found, expect) {
                (Some(found), Some(expect)) => (found - expect).abs() <= tolerance,
                (found, expect) => found == expect,
            };
            assert!(fits, "{name}: {metric} is {found:?}, expected {expect:?}; {conversation:?}");
        }
    }
}
