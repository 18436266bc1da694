//! Packets that came before the call was up have their place in it.

use std::f64::consts::TAU;
use std::time::Duration;

use ringer_media::call::{Call, CallSpec, Input, MediaChannel, Output, Sent, Signal, TICK};
use ringer_media::codec::{Codec, Encoder};
use ringer_media::leg::MediaParams;
use ringer_media::time::Time;

/// Packets that are handed in at one tick at most, as the ring of a channel holds them.
const RING: usize = 16;

/// Time of sound behind the connection, and of the whole call behind it, in milliseconds.
const SOUND_MS: u64 = 1000;
const CALL_MS: u64 = 3000;

/// Loudness of a sample of the tone.
const LOUD: i16 = 1000;

/// Returns the packets of a tone of so many milliseconds and the silence behind it, with their times of arrival.
fn packets(since: Time, sound_ms: u64, all_ms: u64) -> Vec<(Time, Vec<u8>)> {
    let (mut encoder, mut bytes) = (Encoder::new(Codec::Pcmu), [0; 160]);
    let packet = |n: u64| {
        let tone = |at: u64| (6000.0 * (TAU * 500.0 / 8000.0 * at as f64).sin()) as i16;
        let pcm: [i16; 160] = std::array::from_fn(|at| if n * 20 < sound_ms { tone(n * 160 + at as u64) } else { 0 });
        let mut packet = vec![0x80, 0];
        packet.extend((n as u16).to_be_bytes());
        packet.extend((n as u32 * 160).to_be_bytes());
        packet.extend([0, 0, 0, 7]);
        let len = encoder.encode(&pcm, &mut bytes);
        packet.extend(&bytes[..len]);
        (since + Duration::from_millis(n * 20), packet)
    };
    (0..all_ms / 20).map(packet).collect()
}

/// Returns the recording of a call whose media could flow so long before its first tick, and the positions that it
/// sent.
fn call(before_ms: u64) -> (Vec<i16>, Vec<i64>) {
    let since = Time::from_millis(5000);
    let mut now = since + Duration::from_millis(before_ms);
    let mut waiting = packets(since, before_ms + SOUND_MS, before_ms + CALL_MS).into_iter().peekable();
    let mut call = Call::new(CallSpec::default());
    call.handle(Time(0), Input::Signal(Signal::Dialing { address: "agent".into() }));
    call.handle(now, Input::Signal(Signal::UpSince(since)));
    let leg = MediaParams::new(Codec::Pcmu).into();
    call.handle(now, Input::Signal(Signal::Answered { code: 200, leg, text: false }));
    assert!(!call.takes_packets(), "there is no leg yet");
    let (mut heard, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..CALL_MS / 20 {
        let mut frame = Sent::default();
        call.handle(now, Input::Tick { late: Duration::ZERO, sent: &mut frame });
        sent.extend(frame.position);
        let mut space = RING;
        while space > 0 && call.takes_packets() && waiting.peek().is_some_and(|(at, _)| *at <= now) {
            let (arrived, bytes) = waiting.next().expect("it was seen");
            call.handle(now, Input::Packet { path: MediaChannel::Rtp, arrived, bytes: &bytes });
            space -= 1;
        }
        call.handle(now, Input::Listen);
        while let Some(output) = call.poll() {
            match output {
                Output::Heard(pcm) => heard.extend_from_slice(pcm),
                Output::Event(event) => assert_ne!(event.name(), "late_frames", "{event:?}"),
                _ => {}
            }
        }
        now = now + TICK;
    }
    (heard, sent)
}

#[test]
fn sound_from_before_the_connection_is_recorded_where_it_came() {
    for before_ms in [0, 5, 20, 30, 65, 100, 190, 400, 1000, 3000, 9000] {
        let (heard, sent) = call(before_ms);
        let first = before_ms.div_ceil(20) as i64 * 320;
        assert_eq!((sent[0], sent[1]), (first, first + 320), "{before_ms} ms before");
        let loud = |sample: &i16| sample.abs() > LOUD;
        let from = heard.iter().position(loud).expect("it is heard");
        let to = heard.iter().rposition(loud).expect("it is heard");
        // Ticks are 20 ms apart, so the first packet may lie behind sample 0.
        let late = first as usize - before_ms as usize * 16;
        let expect = (before_ms + SOUND_MS).div_ceil(20) as usize * 320;
        assert!((late..late + 80).contains(&from), "{before_ms} ms before: it begins at {from}, not at {late}");
        assert!((to - from).abs_diff(expect) < 160, "{before_ms} ms before: {} samples, not {expect}", to - from);
        let gap = heard[from..to].chunks(160).position(|part| !part.iter().any(loud));
        assert_eq!(gap, None, "{before_ms} ms before");
    }
}
