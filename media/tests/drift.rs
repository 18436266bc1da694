//! An hour with another side whose clock runs 200 ppm off: its words are in the recording at the time at which they
//! were said.

use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Ears, Input, Limits, MediaChannel, Opening, Output, Sent, Signal, TICK, TurnRules,
};
use ringer_media::codec::Codec;
use ringer_media::frame::{FRAME, Frame};
use ringer_media::leg::{MediaParams, RtpLeg};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

/// Number of ticks in an hour.
const TICKS: u64 = 180_000;
/// Number of frames of the other side from click to click (30 s).
const CLICK_EVERY: u64 = 1500;
/// Greatest distance of the channels, in samples (20 ms).
const MOST_APART: i64 = 320;

/// Returns the largest error of a click's place in the recording, in samples, over the last minutes of the hour and
/// over all of it.
fn apart(ppm: i64) -> (i64, i64) {
    let codec = Codec::Pcmu;
    let media = MediaParams { event_payload_type: None, ..MediaParams::new(codec) };
    let begin = Time::from_millis(1000);
    let hour = Limits { max_duration_ms: None, ..Limits::default() };
    let mut call = Call::new(CallSpec {
        opening: Opening::Listen { open_after_ms: None },
        turn: TurnRules { silence_timeout_ms: u32::MAX, ..TurnRules::default() },
        limits: hour,
        ears: Ears { text: false, voice_activity: false, dtmf: false, whole: false },
        ..CallSpec::default()
    });
    call.handle(begin, Input::Signal(Signal::Dialing { address: String::new() }));
    call.handle(begin, Input::Signal(Signal::Answered { code: 200, leg: media.into(), text: false }));
    let mut far = RtpLeg::new(media, Seed(4), begin);
    let far_tick = |n: u64| begin + Duration::from_nanos((n as i64 * (20_000_000 + 20 * ppm)) as u64);
    let (mut sent, mut recorded, mut clicks, mut found) = (0u64, 0i64, Vec::new(), Vec::<i64>::new());
    let mut origin = None;
    let mut drain = |call: &mut Call| {
        while let Some(output) = call.poll() {
            let Output::Heard(pcm) = output else { continue };
            for (at, heard) in pcm.iter().enumerate() {
                let at = recorded + at as i64;
                if heard.unsigned_abs() > 8000 && found.last().is_none_or(|last| at - last > 16_000) {
                    found.push(at);
                }
            }
            recorded += pcm.len() as i64;
        }
    };
    for n in 1..=TICKS {
        let now = begin + TICK * n as u32;
        call.handle(now, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
        drain(&mut call);
        let origin = *origin.get_or_insert(now);
        while far_tick(sent) <= now {
            let mut frame: Frame = [0; FRAME];
            let at = far_tick(sent);
            if sent % CLICK_EVERY == CLICK_EVERY - 1 {
                frame[..32].fill(20_000);
                clicks.push((at.since(origin).as_nanos() as i64 * 16) / 1_000_000);
            }
            far.send(at, &frame);
            let packet = far.packet().expect("one a tick").to_vec();
            call.handle(at, Input::Packet { path: MediaChannel::Rtp, arrived: at, bytes: &packet });
            drain(&mut call);
            sent += 1;
        }
        call.handle(now, Input::Listen);
        drain(&mut call);
    }
    // The last may still be on its way.
    assert!(clicks.len() - found.len() <= 1, "{} of {} clicks", found.len(), clicks.len());
    let distances: Vec<i64> = clicks.iter().zip(&found).map(|(sent, found)| (found - sent).abs()).collect();
    let most = |distances: &[i64]| distances.iter().copied().max().expect("clicks");
    (most(&distances[distances.len() - 10..]), most(&distances))
}

#[test]
fn after_an_hour_the_channels_are_together() {
    for ppm in [200, -200] {
        let (at_the_end, ever) = apart(ppm);
        let ms = |samples: i64| samples as f64 / 16.0;
        println!("{ppm} ppm: {} ms apart at the end, {} ms at most", ms(at_the_end), ms(ever));
        assert!(at_the_end <= MOST_APART && ever <= MOST_APART, "{ppm} ppm: {at_the_end} and {ever} samples");
    }
}
