//! A media thread: a call over rings, and deadlines that were missed.

use ringer_media::call::{CallSpec, EndReason, Opening};
use ringer_media::frame::PER_MS;
use ringer_media::leg::PcmParams;
use ringer_media::rings::{FrameRings, FromCall, frame_rings};
use ringer_media::seed::Seed;
use ringer_media::testing::Voice;
use rtrb::RingBuffer;

use super::super::recording_blocks::recording_blocks;
use super::super::recording_ring::recording_track;
use super::*;

/// Speech in mu-law at 8 kHz.
const SPEECH: &[u8] = include_bytes!("../../../fixtures/audio/speech.ul");
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn media_thread(
    commands: Consumer<ToShard>,
    messages: Producer<FromShard>,
    blocks: Blocks,
) -> (Arc<Shared>, std::thread::JoinHandle<()>) {
    let wake = Arc::new(super::super::wake::Wake::new().expect("an event descriptor"));
    let shared = Arc::new(Shared {
        stop: false.into(),
        rests: false.into(),
        calls: 0.into(),
        lateness: Lateness::default(),
        wake,
    });
    let own = shared.clone();
    let run = move || Shard::new(commands, messages, own, blocks).run();
    (shared, std::thread::Builder::new().name("media".to_owned()).spawn(run).expect("a thread starts"))
}

/// Returns a call over rings that is recorded into `heard`.
fn live_call(spec: CallSpec, rings: FrameRings, tap: Producer<i16>, heard: RecordingRing) -> LiveCall {
    LiveCall {
        no: CallNo(1),
        call: Call::new(spec),
        media: MediaPath::Rings(rings),
        tap,
        tapped: 0,
        recording: RecordingRings { heard, ..RecordingRings::default() },
        packet_tap: None,
        handshakes: None,
        awaits_reports: false,
        dropped_frames: 0,
        ticks: 0,
        symmetric: SymmetricRtp::Off,
    }
}

/// A call over rings to an agent that sends its words in one burst: frames leave in order, and the words are heard and
/// recorded at real time without a gap.
#[test]
fn a_call_over_rings_is_heard_at_real_time() {
    let params = PcmParams::new(16_000).expect("a rate that is spoken");
    let (rings, mut agent) = frame_rings(params);
    let (mut orders, commands) = RingBuffer::new(64);
    let (messages, mut inbox) = RingBuffer::new(4096);
    let (blocks, mut back, reserve) = recording_blocks();
    let _share = reserve.share(1500);
    let (shared, thread) = media_thread(commands, messages, blocks);
    let (heard, mut recorded) = recording_track(1500);
    let (tap, _ears) = RingBuffer::new(16_000);
    let mut spec = CallSpec { seed: Seed(3), opening: Opening::Listen { open_after_ms: None }, ..CallSpec::default() };
    spec.ears.text = false;
    let live = live_call(spec, rings, tap, heard);
    let mut order = |order| {
        assert!(orders.push(order).is_ok());
        shared.rouse(thread.thread());
    };
    order(ToShard::Place(Box::new(live)));
    order(ToShard::Signal(CallNo(1), Signal::Dialing { address: "ws://127.0.0.1/".into() }));
    order(ToShard::Signal(CallNo(1), Signal::Answered { code: 101, leg: params.into(), text: false }));
    // As much as the rings hold: nothing here depends on when this thread runs.
    let words = Voice::from_ulaw(SPEECH).say(6400, 0);
    let (began, mut frames, mut events, mut ended) = (monotonic(), Vec::new(), Vec::new(), false);
    let (mut sent, mut hung_up) = (false, false);
    while !ended && monotonic().since(began) < PATIENCE {
        while let Some(message) = agent.next_message() {
            if let FromCall::Frame { from, piece, .. } = message {
                assert_eq!(piece.pcm().len(), 320);
                frames.push(from);
            }
        }
        if frames.len() >= 5 && !sent {
            sent = agent.receive(monotonic(), &words);
        }
        while let Ok(message) = inbox.pop() {
            match message {
                FromShard::Event(_, event) => events.push(event),
                FromShard::Ended(..) => ended = true,
                _ => {}
            }
        }
        if sent && agent.unheard() <= PER_MS as u64 && frames.len() >= 100 && !hung_up {
            order(ToShard::Hangup(CallNo(1), EndReason::ApiHangup));
            hung_up = true;
        }
        std::thread::yield_now();
    }
    shared.stop.store(true, Ordering::Relaxed);
    thread.join().expect("the thread ends");
    assert!(ended, "the call ends: {events:?}");
    assert!(frames.windows(2).all(|pair| pair[0] < pair[1] && pair[1] % 320 == 0), "{frames:?}");
    let onset = events.iter().find(|event| matches!(event.what, EventKind::AgentSpeechStarted { .. }));
    let end = events.iter().rfind(|event| matches!(event.what, EventKind::AgentSpeechEnded { .. }));
    let (onset, end) = (onset.expect("it is heard").sample, end.expect("it ends").sample);
    assert!((4000..=9000).contains(&(end - onset)), "from {onset} to {end}");
    let mut track = vec![0; recorded.waiting()];
    recorded.take(&mut track, &mut back);
    let first = track.iter().position(|sample| *sample != 0).expect("it is recorded");
    let begun = words.iter().position(|sample| *sample != 0).expect("it is speech");
    assert_eq!(track[first..first + 6400 - begun], words[begun..], "without a gap");
}

#[test]
fn a_thread_that_was_held_up_sends_at_most_two_frames_within_20_ms() {
    let mut draws = Seed(11).stream("hold-ups");
    let tick_ns = STEP_NS * SLOTS as u64;
    let (now, mut sent, mut skipped) = (std::cell::Cell::new(Time(0)), Vec::new(), 0);
    // Held up before one of ten wake-ups, for up to five ticks.
    let sleep = |deadline: Time| {
        let held_up = if draws.unit() < 0.1 { draws.unit() * 5.0 * tick_ns as f64 } else { 0.0 };
        now.set(Time(now.get().max(deadline).0 + held_up as u64));
        now.get()
    };
    pace(Time(0), sleep, |step, now, deadline| {
        match deadline {
            Some(_) => sent.push(now),
            None => skipped += 1,
        }
        // The slot of one call.
        Some(step + SLOTS as u64).filter(|next| *next < 20_000 * SLOTS as u64)
    });
    assert!(skipped > 1000, "{skipped} of 20000 are skipped");
    let together = sent.windows(2).filter(|pair| pair[1].since(pair[0]) < Duration::from_millis(10)).count();
    assert!(together > 100, "{together} times two leave together");
    assert!(sent.windows(3).all(|three| three[2].since(three[0]) >= Duration::from_millis(20)));
}
