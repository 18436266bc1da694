//! Cost of one 20 ms tick of a call: thread CPU time of whole calls and of their stages, as a table. It fails when a
//! tick without an event allocates, and when a whole call costs more than its bound (a machine that is far slower fails
//! too).
//!
//! Each figure is the median over runs of many ticks. The other side speaks half of the time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{
    Call, CallSpec, Ears, Effect, EffectId, Effected, Input, MediaChannel, Move, NoiseSpec, Opening, Output, Sent,
    Signal,
};
use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::dtmf::Detector;
use ringer_media::frame::{FRAME, Frame, RATE_HZ, SILENCE, Sample};
use ringer_media::leg::{MediaParams, RtpLeg, Scratch};
use ringer_media::mixer::{Mixer, NOTHING, add};
use ringer_media::noise::{Kind, gain_for, generate, snr_db};
use ringer_media::recording::Window;
use ringer_media::resample::{Down2, resample_whole};
use ringer_media::rtp::srtp::{MAX_OVERHEAD, MasterKey, Opener, Protector, SrtpParams, Suite};
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use ringer_media::vad::VoiceActivity;

/// Speech of 20 s in mu-law.
const SPEECH: &[u8] = include_bytes!("../../fixtures/audio/speech.ul");
/// Number of ticks of speech, then of silence: 2 s each.
const STRETCH: usize = 100;
/// Number of ticks of one run.
const TICKS: usize = 5000;
/// Length of an RTP header, and space for one with 20 ms of any codec, in bytes.
const HEADER: usize = 12;
const PACKET: usize = HEADER + 640;
/// Number of runs; their median counts.
const RUNS: usize = 7;
/// Largest cost of a tick of a whole call, microseconds.
const MOST_US: f64 = 18.0;
const MOST_OPUS_US: f64 = 160.0;

fn main() {
    let far = FarSide::new();
    let all = Ears { text: false, ..Ears::default() };
    // `--ticks N MEDIA` runs one call for as many ticks and nothing else: for callgrind, which counts instructions.
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--ticks") {
        let ticks = args.get(at + 1).and_then(|ticks| ticks.parse().ok()).expect("--ticks takes a number");
        let media = args.get(at + 2).map_or("PCMU", String::as_str);
        let (name, secure) = if media == "WEBRTC" { ("OPUS", true) } else { (media, false) };
        let codec = Codec::from_name(name).expect("--ticks takes a codec, or WEBRTC, behind the number");
        return Conversation::with(&far, codec, all, true, secure).run(ticks);
    }
    let none = Ears { voice_activity: false, dtmf: false, ..all };
    println!("whole calls, us of CPU per 20 ms tick");
    let totals = [
        ("PCMU: noise, voice activity, DTMF, recording", Codec::Pcmu, all, true),
        ("  without noise", Codec::Pcmu, all, false),
        ("  without DTMF", Codec::Pcmu, Ears { dtmf: false, ..all }, true),
        ("  without voice activity", Codec::Pcmu, Ears { voice_activity: false, ..all }, true),
        ("  without voice activity and DTMF", Codec::Pcmu, none, true),
        ("PCMA: all", Codec::Pcma, all, true),
        ("G722: all", Codec::G722, all, true),
        ("  without voice activity and DTMF", Codec::G722, none, true),
        ("L16: all", Codec::L16Wide, all, true),
        ("OPUS: all", Codec::Opus, all, true),
        ("  without voice activity and DTMF", Codec::Opus, none, true),
    ];
    let (mut allocating, mut dear) = (0, Vec::new());
    for (name, codec, ears, noise) in totals {
        let mut conversation = Conversation::new(&far, codec, ears, noise);
        let cost = row(name, || conversation.run(TICKS));
        let most = if codec == Codec::Opus { MOST_OPUS_US } else { MOST_US };
        dear.extend((cost > most).then(|| format!("{name}: {cost:.1} us, at most {most} are allowed")));
        // The library of Opus allocates within every frame.
        allocating += if codec == Codec::Opus { 0 } else { conversation.allocating_ticks };
    }
    crowd(&far, "PCMU: all, 200 calls in turn", all);
    crowd(&far, "  without voice activity and DTMF", none);
    println!("stages, us per 20 ms");
    stages(&far);
    println!("ticks without an event that allocated: {allocating}");
    assert_eq!(allocating, 0, "a tick without an event allocates");
    assert!(dear.is_empty(), "{dear:?}");
}

/// Runs 200 calls in slots of 40 as a media thread serves them: all of a slot send, then all of it listen. Each call
/// comes out of the cold.
fn crowd(far: &FarSide, name: &str, ears: Ears) {
    let mut slots: [Vec<Conversation>; 5] =
        std::array::from_fn(|_| (0..40).map(|_| Conversation::new(far, Codec::Pcmu, ears, true)).collect());
    let ticks = TICKS / 200;
    let mut costs: Vec<f64> = (0..RUNS * 8)
        .map(|_| {
            let before = cpu_us();
            for _ in 0..ticks {
                for slot in &mut slots {
                    for call in slot.iter_mut() {
                        call.send();
                    }
                    for call in slot.iter_mut() {
                        call.listen();
                    }
                }
            }
            (cpu_us() - before) / (200 * ticks) as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{:8.2}  {name}", costs[costs.len() / 2]);
}

fn stages(far: &FarSide) {
    let [speech, silence] = [0, STRETCH * FRAME].map(|from| far.frames(from));
    for codec in [Codec::Pcmu, Codec::Opus] {
        let mut packets = far.packets(codec);
        let mut leg = RtpLeg::new(MediaParams::new(codec), Seed(1), Time::default());
        let mut clock = Clock::default();
        row(&format!("{}: receive, jitter buffer, decode, resample", codec.name()), || {
            for _ in 0..TICKS {
                let now = clock.next();
                black_box(leg.receive(now, packets.packet()));
                black_box(leg.listen(now, &mut Scratch::default()));
            }
        });
        let mut clock = Clock::default();
        row(&format!("{}: encode, resample, packet", codec.name()), || {
            for at in 0..TICKS {
                leg.send(clock.next(), &speech[at % STRETCH]);
                while let Some(packet) = leg.packet() {
                    black_box(packet);
                }
            }
        });
    }
    for suite in Suite::ALL {
        secure(suite, far.packets(Codec::Pcmu));
    }
    for (name, frames) in [("voice activity awake", &speech), ("voice activity asleep", &silence)] {
        let (mut vad, mut from) = (VoiceActivity::new(), 0);
        row(name, || {
            for at in 0..TICKS {
                black_box(vad.push(&frames[at % STRETCH], from));
                from += FRAME as Sample;
            }
        });
    }
    for (name, frames) in [("DTMF in speech", &speech), ("DTMF in silence", &silence)] {
        let narrow: Vec<Vec<i16>> = frames.iter().map(|frame| narrow(frame)).collect();
        let (mut digits, mut from) = (Detector::new(), 0);
        row(name, || {
            for at in 0..TICKS {
                black_box(digits.push(&narrow[at % STRETCH], from));
                from += FRAME as Sample;
            }
        });
    }
    let (mut mixer, mut frame) = (Mixer::new(), SILENCE);
    row("mix and limit", || {
        for at in 0..TICKS {
            let mut sum = NOTHING;
            add(&mut sum, 0, &speech[at % STRETCH]);
            add(&mut sum, 0, &speech[(at + 7) % STRETCH]);
            mixer.finish(&sum, black_box(&mut frame));
        }
    });
    let (mut window, mut at) = (Window::new(), 0);
    row("recording window", || {
        for tick in 0..TICKS {
            window.push(at - 700, &speech[tick % STRETCH]);
            at += FRAME as Sample;
            black_box(window.advance(at));
        }
    });
}

/// Measures both stages of secure RTP.
fn secure(suite: Suite, mut packets: Packets) {
    let key = MasterKey::new(suite, &vec![7; 16 + suite.salt_bytes()]).expect("the length is that of the suite");
    let plain: Vec<Vec<u8>> = (0..TICKS).map(|_| packets.packet().to_vec()).collect();
    let mut protector = Protector::new(suite, &key);
    let mut buffer = [0; 172 + MAX_OVERHEAD];
    row(&format!("protect {}", suite.name()), || {
        for packet in &plain {
            buffer[..172].copy_from_slice(packet);
            black_box(protector.protect(&mut buffer, 172));
        }
    });
    let mut protector = Protector::new(suite, &key);
    let mut len = 0;
    let sealed = plain.iter().map(|packet| {
        let mut buffer = [0; 172 + MAX_OVERHEAD];
        buffer[..172].copy_from_slice(packet);
        len = protector.protect(&mut buffer, 172);
        buffer
    });
    let sealed: Vec<[u8; 172 + MAX_OVERHEAD]> = sealed.collect();
    row(&format!("unprotect {}", suite.name()), || {
        // A new one knows none of the packets.
        let mut opener = Opener::new(suite, &key);
        for packet in &sealed {
            buffer.copy_from_slice(packet);
            assert!(opener.open(&mut buffer[..len]).is_ok(), "what was protected can be opened");
        }
    });
}

/// Audio of the other side: speech and silence in turn.
struct FarSide {
    wide: Vec<i16>,
    noise: Arc<[i16]>,
}

impl FarSide {
    fn new() -> FarSide {
        let mut pcm = vec![0; SPEECH.len()];
        Decoder::new(Codec::Pcmu).decode(SPEECH, &mut pcm);
        let spoken = resample_whole(&pcm, 8000, RATE_HZ);
        let mut wide = Vec::new();
        for stretch in spoken.chunks_exact(STRETCH * FRAME) {
            wide.extend_from_slice(stretch);
            wide.resize(wide.len() + STRETCH * FRAME, 0);
        }
        FarSide { wide, noise: generate(Kind::Cafe, Seed(1), 10, &[]).into() }
    }

    fn frames(&self, from: usize) -> Vec<Frame> {
        let frames = self.wide[from..][..STRETCH * FRAME].chunks_exact(FRAME);
        frames.map(|frame| frame.try_into().expect("chunks are exact")).collect()
    }

    fn packets(&self, codec: Codec) -> Packets {
        let mut encoder = Encoder::new(codec);
        let packets = self.wide.chunks_exact(FRAME).map(|frame| {
            let mut bytes = vec![0; PACKET];
            let len = if codec.rate_hz() == RATE_HZ {
                encoder.encode(frame, &mut bytes[HEADER..])
            } else {
                encoder.encode(&narrow(frame), &mut bytes[HEADER..])
            };
            bytes.truncate(HEADER + len);
            bytes
        });
        Packets { packets: packets.collect(), codec, sent: 0, protector: None, sealed: [0; PACKET + MAX_OVERHEAD] }
    }

    fn noise(&self) -> NoiseSpec {
        NoiseSpec {
            gain_narrow: gain_for(&self.noise, snr_db(0.8), 8000) as f32,
            gain_wide: gain_for(&self.noise, snr_db(0.8), RATE_HZ) as f32,
            start: 0,
            loop_pcm: self.noise.clone(),
        }
    }
}

/// Endless stream of RTP packets.
struct Packets {
    /// Payloads, each behind space for a header.
    packets: Vec<Vec<u8>>,
    codec: Codec,
    sent: u32,
    /// Encrypts them; `None`: they are plain.
    protector: Option<Protector>,
    sealed: [u8; PACKET + MAX_OVERHEAD],
}

impl Packets {
    fn packet(&mut self) -> &[u8] {
        let at = self.sent as usize % self.packets.len();
        let packet = &mut self.packets[at];
        let units = self.codec.rtp_clock_hz() / 50;
        packet[0] = 0x80;
        packet[1] = self.codec.payload_type();
        packet[2..4].copy_from_slice(&(self.sent as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&self.sent.wrapping_mul(units).to_be_bytes());
        packet[8..12].copy_from_slice(&7u32.to_be_bytes());
        self.sent += 1;
        let Some(protector) = &mut self.protector else { return packet };
        self.sealed[..packet.len()].copy_from_slice(packet);
        let len = protector.protect(&mut self.sealed, packet.len());
        &self.sealed[..len]
    }
}

/// A call with the work of its driver.
struct Conversation {
    call: Call,
    packets: Packets,
    clock: Clock,
    answers: Vec<(EffectId, Effected)>,
    clip: Arc<[i16]>,
    allocating_ticks: u64,
}

impl Conversation {
    fn new(far: &FarSide, codec: Codec, ears: Ears, noise: bool) -> Conversation {
        Conversation::with(far, codec, ears, noise, false)
    }

    /// Returns a call whose media are encrypted where `secure`, as those of WebRTC are (RFC 8827 6.5).
    fn with(far: &FarSide, codec: Codec, ears: Ears, noise: bool, secure: bool) -> Conversation {
        let suite = Suite::AesCm128HmacSha1_80;
        let key = MasterKey::new(suite, &[7; 30]).expect("the length is that of the suite");
        let srtp = secure.then_some(SrtpParams { suite, send: key, receive: key });
        let mut spec =
            CallSpec { ears, opening: Opening::Made, noise: noise.then(|| far.noise()), ..CallSpec::default() };
        spec.limits.max_duration_ms = None;
        spec.turn.silence_timeout_ms = u32::MAX;
        let mut call = Call::new(spec);
        let clock = Clock::default();
        call.handle(clock.0, Input::Signal(Signal::Dialing { address: "sip:far@192.0.2.1".into() }));
        let leg = MediaParams { srtp, ..MediaParams::new(codec) }.into();
        call.handle(clock.0, Input::Signal(Signal::Answered { code: 200, leg, text: false }));
        // Backwards: words of the other side would be an echo.
        let clip = far.wide[..50 * FRAME].iter().rev().copied().collect();
        let mut packets = far.packets(codec);
        packets.protector = secure.then(|| Protector::new(suite, &key));
        let mut made =
            Conversation { call, packets, clock, answers: Vec::with_capacity(16), clip, allocating_ticks: 0 };
        made.run(500);
        made.allocating_ticks = 0;
        made
    }

    fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            let before = ALLOCATIONS.get();
            if !self.tick() && ALLOCATIONS.get() != before {
                self.allocating_ticks += 1;
            }
        }
        assert!(!self.call.is_over(), "the call goes on");
    }

    /// Runs one tick as a media thread does; true when it was more than audio.
    fn tick(&mut self) -> bool {
        let eventful = self.send();
        self.listen() || eventful
    }

    fn send(&mut self) -> bool {
        let now = self.clock.next();
        let mut eventful = !self.answers.is_empty();
        for (id, done) in std::mem::take(&mut self.answers) {
            self.call.handle(now, Input::Done(id, done));
            eventful |= self.drain();
        }
        let mut sent = Sent::default();
        self.call.handle(now, Input::Tick { late: Duration::from_micros(80), sent: &mut sent });
        black_box(sent);
        self.drain() || eventful
    }

    fn listen(&mut self) -> bool {
        let now = self.clock.0;
        let packet = self.packets.packet();
        self.call.handle(now, Input::Packet { path: MediaChannel::Rtp, arrived: now, bytes: packet });
        self.call.handle(now, Input::Listen);
        self.drain()
    }

    fn drain(&mut self) -> bool {
        let mut eventful = false;
        while let Some(output) = self.call.poll() {
            match output {
                Output::Packet { bytes, .. } => {
                    black_box(bytes);
                }
                Output::Heard(pcm) => {
                    black_box(pcm);
                }
                Output::Effect(id, Effect::Think(_)) => {
                    let next = Move { say: "Yes, please go on.".into(), exact: true, ..Move::default() };
                    self.answers.push((id, Effected::Move(next)));
                    eventful = true;
                }
                Output::Effect(id, Effect::Synthesize { .. }) => {
                    self.answers.push((id, Effected::Audio { pcm: self.clip.clone(), last: true }));
                    eventful = true;
                }
                _ => eventful = true,
            }
        }
        eventful
    }
}

/// Virtual time of the driver, 20 ms a step.
#[derive(Default)]
struct Clock(Time);

impl Clock {
    fn next(&mut self) -> Time {
        self.0 = self.0 + Duration::from_millis(20);
        self.0
    }
}

fn narrow(frame: &[i16]) -> Vec<i16> {
    let mut out = vec![0; frame.len() / 2];
    Down2::new().process(frame, &mut out);
    out
}

/// Prints the median cost of a tick of `run`, which does [`TICKS`] of them.
fn row(name: &str, mut run: impl FnMut()) -> f64 {
    let mut costs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let before = cpu_us();
            run();
            (cpu_us() - before) / TICKS as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{:8.2}  {name}", costs[RUNS / 2]);
    costs[RUNS / 2]
}

/// Returns the CPU time of this thread in microseconds.
fn cpu_us() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: std::ffi::c_long,
        nanos: std::ffi::c_long,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: std::ffi::c_int, at: *mut Timespec) -> std::ffi::c_int;
    }
    const THREAD_CPU: std::ffi::c_int = 3;
    let mut at = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: `at` has the layout of a timespec of 64-bit Linux and outlives the call.
    unsafe { clock_gettime(THREAD_CPU, &mut at) };
    at.seconds as f64 * 1e6 + at.nanos as f64 / 1e3
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count of its calls.
struct Counted;

// SAFETY: every call is passed on to the system's allocator; the counter is a plain thread-local without a destructor.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;
