//! Calls over a simulated bad connection: sent packets are really lost and late, the other side is measured as it was
//! received, and no loss counts as a fault of the engine or of the network.

use std::fmt::Write;

use ringer_media::call::EventKind;
use ringer_media::connection::ConnectionSpec;
use ringer_media::testing::Log;

const MINUTES: u32 = 10;

/// Plays ten minutes in which the agent speaks for 4 s of every 10 and is answered.
fn play(connection: ConnectionSpec) -> Log {
    let mut source = String::from("seed 3\ncaller endpointing 1.0\n");
    for n in 0..MINUTES * 6 {
        writeln!(source, "caller replies \"I see, and then?\"\n{}.0 agent says 4.0 \"this is a story\"", 10 * n + 2)
            .expect("a string has space");
    }
    writeln!(source, "until {}", MINUTES * 60).expect("a string has space");
    let voice = super::voice();
    let mut scenario = super::grammar::parse("connection", &source, &voice).expect("it is right");
    scenario.call.connection = connection;
    let rig = super::play(&scenario, &voice);
    assert_eq!(super::promises::broken(&scenario, &rig), [""; 0], "{connection:?}");
    rig.log
}

/// Returns the edges of the other side's speech, and its channel of the recording.
fn other_side(log: &Log) -> (Vec<(i64, bool)>, Vec<i16>) {
    let edges = log.events.iter().filter_map(|event| match event.what {
        EventKind::AgentSpeechStarted { .. } => Some((event.sample, true)),
        EventKind::AgentSpeechEnded { .. } => Some((event.sample, false)),
        _ => None,
    });
    (edges.collect(), log.recorded.iter().skip(1).step_by(2).copied().collect())
}

#[test]
fn packets_are_lost_and_late_and_the_other_side_is_measured_as_received() {
    let clear = play(ConnectionSpec::default());
    let (edges, heard) = other_side(&clear);
    assert!(edges.len() as u32 >= MINUTES * 12);
    assert_eq!(clear.endings[0].quality.impairment, None);
    let origin = clear.packets[0].at;
    for (loss, mean_burst, jitter_ms) in [(0.05, 3.0, 30.0), (0.15, 6.0, 80.0)] {
        let log = play(ConnectionSpec { loss, mean_burst, jitter_ms, ..ConnectionSpec::default() });
        let quality = &log.endings[0].quality;
        let measured = quality.impairment.expect("the connection was bad");
        let ticks = clear.packets.len();
        let lost_pct = 100.0 * (1.0 - log.packets.len() as f64 / ticks as f64);
        println!("{loss} {mean_burst} {jitter_ms}: {lost_pct:.2} % of {ticks} packets did not leave; {measured:.3?}");
        assert!((lost_pct - 100.0 * loss).abs() <= 2.5, "{lost_pct} %");
        // Packets that were on their way at the end of the call are missing, too: at most those of 160 ms.
        assert!((lost_pct - measured.sent.loss_pct).abs() <= 100.0 * 9.0 / ticks as f64, "{lost_pct} {measured:?}");
        assert!((measured.received.loss_pct - 100.0 * loss).abs() <= 2.5, "{measured:?}");
        // Each left as long after its own tick as it was delayed, to the nanosecond and not on the grid of ticks.
        let late_ms = log.packets.iter().map(|packet| {
            let tick = packet.timestamp.wrapping_sub(clear.packets[0].timestamp) / 8;
            packet.at.since(origin).as_secs_f64() * 1e3 - f64::from(tick)
        });
        let late_ms: Vec<f64> = late_ms.collect();
        assert!(late_ms.iter().all(|late| (-1e-6..=2.0 * jitter_ms).contains(late)));
        let mean_ms = late_ms.iter().sum::<f64>() / late_ms.len() as f64;
        assert!((mean_ms - measured.sent.jitter_ms).abs() < 0.5, "{mean_ms} {measured:?}");
        assert!(mean_ms > 0.9 * jitter_ms);
        // The tap lies before the bad connection, and so does everything that is measured.
        let (edges_now, heard_now) = other_side(&log);
        assert!(edges_now == edges && heard_now == heard, "{loss}: the other side changed");
        assert_eq!(
            (quality.lost_packets, quality.late_packets, quality.concealed_ms, quality.late_frames),
            (0, 0, 0, 0)
        );
        // The caller still takes its turns: what is missing of a turn may cost its answer, but not the conversation.
        let answers = log.synthesized.len() as u32;
        assert!(answers >= MINUTES * 6 * 3 / 4, "{loss}: {answers} answers");
    }
}
