//! A tick without an event allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Effect, Effected, Input, MediaChannel, Move, NoiseSpec, Opening, Output, ProbeRates, Sent, Signal,
    TICK, Word,
};
use ringer_media::codec::Codec;
use ringer_media::connection::ConnectionSpec;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::dtmf::Detector;
use ringer_media::echo::EchoGuard;
use ringer_media::frame::{FRAME, Sample};
use ringer_media::impair::AudioQuality;
use ringer_media::leg::{MediaParams, RtpLeg};
use ringer_media::recording::Window;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use ringer_media::vad::VoiceActivity;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count_held(bytes: i64) {
    HELD_BYTES.with(|held| held.set(held.get() + bytes));
}

// SAFETY: hands everything to the system's allocator; the counts are plain cells of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        count_held(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count_held(-(layout.size() as i64));
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        count_held(size as i64 - layout.size() as i64);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Number of allocations of the Opus library in a tick, one frame encoded and one decoded: it makes its buffers anew
/// for each.
const OPUS_ALLOCATIONS: u64 = 100;

/// Runs one tick; true when an event or effect came of it. Nothing here allocates.
fn tick(call: &mut Call, now: Time, packet: &[u8]) -> bool {
    let mut eventful = false;
    for input in [
        Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() },
        Input::Packet { path: MediaChannel::Rtp, arrived: now, bytes: packet },
        Input::Listen,
    ] {
        call.handle(now, input);
        while let Some(output) = call.poll() {
            eventful |= matches!(output, Output::Event(_) | Output::Effect(..) | Output::Control(_));
        }
    }
    eventful
}

/// Returns a call that was answered, and whose opening, if it has one, is `words`.
fn connect_call(spec: CallSpec, media: MediaParams, now: Time, words: Arc<[i16]>) -> Call {
    let mut call = Call::new(spec);
    call.handle(now, Input::Signal(Signal::Dialing { address: String::new() }));
    call.handle(now, Input::Signal(Signal::Answered { code: 200, leg: media.into(), text: true }));
    call.handle(now + TICK, Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() });
    let mut asked = None;
    while let Some(output) = call.poll() {
        if let Output::Effect(id, Effect::Synthesize { .. }) = output {
            asked = Some(id);
        }
    }
    if let Some(id) = asked {
        call.handle(now + TICK, Input::Done(id, Effected::Audio { pcm: words, last: true }));
    }
    call
}

#[test]
fn a_quiet_tick_allocates_nothing() {
    let speech = super::voice().say(16_000 * 20, 0);
    let silent = CallSpec { opening: Opening::Listen { open_after_ms: None }, ..CallSpec::default() };
    let talking = CallSpec { opening: Opening::Say("A long story.".into()), ..CallSpec::default() };
    let noisy = CallSpec {
        opening: Opening::Say("A long story.".into()),
        noise: Some(NoiseSpec { loop_pcm: speech.clone(), gain_narrow: 0.1, gain_wide: 0.1, start: 5 }),
        audio_quality: AudioQuality::HORRIBLE,
        ..CallSpec::default()
    };
    let lossy = CallSpec {
        connection: ConnectionSpec { loss: 0.15, mean_burst: 6.0, jitter_ms: 80.0, ..ConnectionSpec::default() },
        ..noisy.clone()
    };
    let probes = ProbeRates { backchannel_per_minute: 20.0, vocal_tic_per_minute: 10.0, non_directed_per_minute: 10.0 };
    let probing = CallSpec { probes, ..silent.clone() };
    for codec in Codec::ALL {
        for (name, spec, spoken_from) in [
            ("silent", &silent, None),
            ("listening", &silent, Some(0)),
            ("listening with probes", &probing, Some(0)),
            ("speaking", &noisy, None),
            ("echoing", &talking, Some(50)),
            ("speaking over a bad connection", &lossy, None),
        ] {
            let media = MediaParams::new(codec);
            let mut now = Time::from_millis(1000);
            let mut far = RtpLeg::new(media, Seed(4), now);
            let mut call = connect_call(spec.clone(), media, now, speech.clone());
            now = now + TICK;
            let (mut quiet, mut allocations) = (0, 0);
            for n in 0..700usize {
                now = now + TICK;
                let at = spoken_from.and_then(|from| n.checked_sub(from));
                let frame = at.map_or([0; FRAME], |at| speech[at * FRAME..][..FRAME].try_into().expect("a frame"));
                far.send(now, &frame);
                let packet = far.packet().expect("one a tick");
                let before = ALLOCATIONS.with(Cell::get);
                let eventful = tick(&mut call, now, packet);
                if n >= 250 && !eventful {
                    quiet += 1;
                    allocations += ALLOCATIONS.with(Cell::get) - before;
                }
            }
            assert!(quiet > 350, "{codec:?} {name}: {quiet} of 450 ticks had no event");
            if codec == Codec::Opus {
                assert!(allocations <= quiet * OPUS_ALLOCATIONS, "{name}: {allocations} allocations in {quiet} ticks");
            } else {
                assert_eq!(allocations, 0, "{codec:?} {name}: {allocations} allocations in {quiet} ticks");
            }
        }
    }
}

/// Largest mean number of allocations of an event, an effect or a command to the other side.
const MOST_PER_EVENT: u64 = 2;

/// Returns a driver's answer to an effect.
fn answer(effect: Effect, words: &Arc<[i16]>) -> Option<Effected> {
    let heard = ["is", "tuesday", "free"];
    match effect {
        Effect::Hear { .. } => Some(Effected::Partial(heard[0].into())),
        Effect::Recognize { .. } => {
            let word = |(at, text): (usize, &&str)| Word {
                text: (*text).into(),
                from: at as Sample * 8000,
                to: at as Sample * 8000 + 4000,
                confidence: Some(0.9),
            };
            let words = heard.iter().enumerate().map(word).collect();
            Some(Effected::Final {
                text: heard.join(" "),
                words,
                confidence: Some(0.9),
                detected_language: DetectedLanguage::Fixed,
            })
        }
        Effect::Think(_) => Some(Effected::Move(Move { say: "It is not.".into(), ..Move::default() })),
        Effect::Synthesize { .. } => Some(Effected::Audio { pcm: words.clone(), last: true }),
        _ => None,
    }
}

#[test]
fn an_event_allocates_little() {
    let speech = super::voice().say(16_000 * 2, 0);
    let words = super::voice().say(16_000, 1);
    for codec in [Codec::Pcmu, Codec::G722] {
        let media = MediaParams::new(codec);
        let mut now = Time::from_millis(1000);
        let mut far = RtpLeg::new(media, Seed(4), now);
        let spec = CallSpec { opening: Opening::Listen { open_after_ms: None }, ..CallSpec::default() };
        let mut call = connect_call(spec, media, now, words.clone());
        now = now + TICK;
        let mut asked = Vec::with_capacity(64);
        let (mut events, mut allocations) = (0, 0);
        // Twelve turns of two seconds each, and four seconds to answer them; the first warms up.
        for n in 0..12 * 300usize {
            now = now + TICK;
            let at = n % 300;
            let frame = speech.get(at * FRAME..(at + 1) * FRAME);
            let frame = frame.map_or([0; FRAME], |frame| frame.try_into().expect("a frame"));
            far.send(now, &frame);
            let packet = far.packet().expect("one a tick");
            let done: Vec<_> = asked.drain(..).filter_map(|(id, effect)| Some((id, answer(effect, &words)?))).collect();
            let mut sent = Sent::default();
            let answers = done.into_iter().map(|(id, done)| Input::Done(id, done));
            let inputs = [
                Input::Tick { late: Duration::ZERO, sent: &mut sent },
                Input::Packet { path: MediaChannel::Rtp, arrived: now, bytes: packet },
                Input::Listen,
            ];
            for input in answers.into_iter().chain(inputs) {
                let before = ALLOCATIONS.with(Cell::get);
                call.handle(now, input);
                let mut told_count = 0;
                while let Some(output) = call.poll() {
                    told_count +=
                        u64::from(matches!(output, Output::Event(_) | Output::Effect(..) | Output::Control(_)));
                    if let Output::Effect(id, effect) = output {
                        asked.push((id, effect));
                    }
                }
                if n >= 300 {
                    (events, allocations) = (events + told_count, allocations + ALLOCATIONS.with(Cell::get) - before);
                }
            }
        }
        println!("{codec:?}: {allocations} allocations in {events} events");
        assert!(events > 100, "{codec:?}: {events} events");
        assert!(allocations <= events * MOST_PER_EVENT, "{codec:?}: {allocations} allocations in {events} events");
    }
}

/// Largest size of a call in bytes, its rings to other threads left out. Half of it is the search for echoes.
const MOST_BYTES: i64 = 133 * 1024;

/// Returns the bytes that the codec may hold on top: longer payloads, audio at 16 kHz, and the state of Opus.
fn most_of(codec: Codec) -> i64 {
    match codec {
        Codec::Pcmu | Codec::Pcma => 0,
        Codec::G722 => 8 * 1024,
        Codec::L16Narrow => 12 * 1024,
        Codec::L16Wide => 37 * 1024,
        Codec::Opus => 130 * 1024,
    }
}

/// Returns the bytes that `make` allocates and returns.
fn bytes_of<T>(make: impl FnOnce() -> T) -> i64 {
    let before = HELD_BYTES.with(Cell::get);
    let made = std::hint::black_box(Box::new(make()));
    let held = HELD_BYTES.with(Cell::get) - before;
    drop(made);
    held
}

#[test]
fn a_call_is_small() {
    let leg = || RtpLeg::new(MediaParams::new(Codec::Pcmu), Seed(4), Time::default());
    for (name, bytes) in [
        ("leg, PCMU", bytes_of(leg)),
        ("echo and voice activity", bytes_of(EchoGuard::new)),
        ("  voice activity alone", bytes_of(VoiceActivity::new)),
        ("digits", bytes_of(Detector::new)),
        ("recording window", bytes_of(Window::new)),
    ] {
        println!("{bytes:7} bytes: {name}");
    }
    let speech = super::voice().say(16_000 * 4, 0);
    let spec = CallSpec {
        opening: Opening::Say("A story.".into()),
        noise: Some(NoiseSpec { loop_pcm: speech.clone(), gain_narrow: 0.1, gain_wide: 0.1, start: 5 }),
        audio_quality: AudioQuality::HORRIBLE,
        ..CallSpec::default()
    };
    // What all calls share is made by the first one that needs it, which is not counted.
    for (codec, is_counted) in [(Codec::Pcma, false)].into_iter().chain(Codec::ALL.map(|codec| (codec, true))) {
        let media = MediaParams::new(codec);
        let mut now = Time::from_millis(1000);
        let mut far = RtpLeg::new(media, Seed(4), now);
        let before = HELD_BYTES.with(Cell::get);
        let mut call = Box::new(connect_call(spec.clone(), media, now, speech.clone()));
        for _ in 0..500 {
            now = now + TICK;
            far.send(now, &[0; FRAME]);
            let packet = far.packet().expect("one a tick");
            tick(&mut call, now, packet);
        }
        let held = HELD_BYTES.with(Cell::get) - before;
        if !is_counted {
            continue;
        }
        println!("{held:7} bytes: whole call, {codec:?}");
        assert!(held <= MOST_BYTES + most_of(codec), "{codec:?}: a call holds {held} bytes");
    }
}
