//! Lost audio of the other side, reported turn by turn: as much as the network lost of each, and no more in all than
//! the call counts.

use std::fmt::Write;

use ringer_media::call::EventKind;
use ringer_media::frame::FRAME;
use ringer_media::testing::Log;

const TURNS: u32 = 20;

/// Plays turns of 4 s every 10 s, each of two parts with a pause that ends no turn, and an answer to each.
fn play(net: &str, codec: &str) -> Log {
    let mut source = format!("seed 9\ncodec {codec}\nnet {net}\ncaller endpointing 1.5\n");
    for n in 0..TURNS {
        let at = 10 * n + 2;
        writeln!(source, "caller replies \"I see, and then?\"\n{at}.0 agent says 2.0 \"this is a story\"")
            .expect("a string has space");
        writeln!(source, "{}.0 agent says 1.5 \"and it goes on\"", at + 3).expect("a string has space");
    }
    writeln!(source, "until {}", TURNS * 10).expect("a string has space");
    let voice = super::voice();
    let scenario = super::grammar::parse("concealed", &source, &voice).expect("it is right");
    let rig = super::play(&scenario, &voice);
    assert_eq!(super::promises::broken(&scenario, &rig), [""; 0], "{net} {codec}");
    rig.log
}

/// Returns the middles of the frames that never arrived, on the clock of the other side, which begins with its first
/// packet.
fn lost_positions(log: &Log) -> Vec<i64> {
    let first = &log.arrived[0];
    let number = |sequence: u16| i64::from(sequence.wrapping_sub(first.sequence));
    let came: Vec<i64> = log.arrived.iter().map(|packet| number(packet.sequence)).collect();
    let last = came.iter().max().expect("some came");
    let frame = FRAME as i64;
    (0..*last).filter(|n| !came.contains(n)).map(|n| n * frame + frame / 2).collect()
}

#[test]
fn turns_tell_what_was_concealed_of_them() {
    for (net, codec) in
        [("loss 2%", "PCMU"), ("burst loss 5%", "PCMU"), ("burst loss 10%", "G722"), ("loss 0%", "PCMU")]
    {
        let log = play(net, codec);
        let lost = lost_positions(&log);
        let quality = &log.endings[0].quality;
        assert_eq!(quality.late_packets, 0, "nothing else is concealed");
        let (mut reported_ms, mut true_ms, mut turns) = (0, 0, 0);
        for event in &log.events {
            let EventKind::TurnEnded { from_sample, end_sample, concealed_ms, .. } = event.what else { continue };
            let truth = lost.iter().filter(|at| (from_sample..end_sample).contains(*at)).count() as i64 * 20;
            let concealed_ms = concealed_ms as i64;
            // The frame at a seam may be one or the other's.
            let at_seam = |at: &&i64| [from_sample, end_sample].iter().any(|edge| (*at - edge).abs() <= FRAME as i64);
            let seams_ms = 20 * lost.iter().filter(at_seam).count().min(2) as i64;
            let apart = (concealed_ms - truth).abs();
            assert!(
                apart <= seams_ms,
                "{net}: {concealed_ms} ms told of a turn that lost {truth} ms, {seams_ms} at seams"
            );
            reported_ms += concealed_ms;
            true_ms += truth;
            turns += 1;
        }
        let all_ms = quality.concealed_ms as i64;
        println!("{net} {codec}: {turns} turns, {reported_ms} ms in them of {true_ms}, {all_ms} in all");
        assert_eq!((turns, all_ms), (TURNS, lost.len() as i64 * 20), "{net} {codec}");
        assert!(
            (reported_ms - true_ms).abs() <= 40,
            "{net} {codec}: {reported_ms} ms told of turns that lost {true_ms} ms"
        );
        assert_eq!(reported_ms > 0, net != "loss 0%");
    }
}
