//! Streams of one track and of several.

use ringer_media::codec::opus::Opus;

use super::*;
use crate::webrtc::Arrived;

/// A sender of one track: a tone at a level that is no speech, or speech-like sound.
struct Sender {
    source: u32,
    sequence: u16,
    time: u32,
    encoder: Encoder,
}

impl Sender {
    fn new(source: u32) -> Sender {
        Sender {
            source,
            sequence: 65_500 + source as u16,
            time: 1_000_000 * source,
            encoder: Encoder::new(Codec::Opus),
        }
    }

    fn packet(&mut self, at_ms: u64, frame: &Frame) -> Arrived {
        let mut bytes = vec![0x80, 111];
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.time.to_be_bytes());
        bytes.extend(self.source.to_be_bytes());
        bytes.resize(HEADER + PACKET, 0);
        let count = self.encoder.encode(frame, &mut bytes[HEADER..]);
        bytes.truncate(HEADER + count);
        (self.sequence, self.time) = (self.sequence.wrapping_add(1), self.time.wrapping_add(960));
        Arrived { at: Time(at_ms * 1_000_000), is_report: false, bytes }
    }
}

/// Receiver of a stream, with the headers and the decoded audio of its packets.
struct Receiver {
    decoder: Decoder,
    heads: Vec<(u16, u32, u32)>,
    pcm: Vec<i16>,
}

impl Receiver {
    fn new() -> Receiver {
        Receiver { decoder: Decoder::new(Codec::Opus), heads: Vec::new(), pcm: Vec::new() }
    }

    fn take(&mut self, packets: Vec<Arrived>) {
        packets.into_iter().for_each(|packet| self.hear(packet));
    }

    fn hear(&mut self, packet: Arrived) {
        let Arrived { bytes, .. } = packet;
        assert_eq!(bytes[1], 111);
        let word = |at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().expect("a header"));
        self.heads.push((u16::from_be_bytes([bytes[2], bytes[3]]), word(4), word(8)));
        let mut pcm = [0; LONGEST];
        let count = self.decoder.decode(&bytes[HEADER..], &mut pcm);
        self.pcm.extend(&pcm[..count]);
    }

    /// Returns the level of a tone in what was heard from a time on, as a factor of the one that was sent.
    fn level(&self, from_ms: usize, hz: f64) -> f64 {
        let part = &self.pcm[from_ms * 16..];
        let (mut re, mut im) = (0.0, 0.0);
        for (n, sample) in part.iter().enumerate() {
            let angle = std::f64::consts::TAU * hz * n as f64 / 16_000.0;
            (re, im) = (re + f64::from(*sample) * angle.cos(), im + f64::from(*sample) * angle.sin());
        }
        2.0 * re.hypot(im) / part.len() as f64 / LOUD
    }
}

/// Amplitude of the tones.
const LOUD: f64 = 4000.0;

fn tone(hz: f64, at_ms: u64) -> Frame {
    std::array::from_fn(|n| {
        let at = (at_ms * 16) as f64 + n as f64;
        (LOUD * (std::f64::consts::TAU * hz * at / 16_000.0).sin()) as i16
    })
}

fn track(sid: &str, source: u32) -> Track {
    Track { sid: sid.to_owned(), sources: vec![source], payload_type: 111 }
}

fn voices(tracks: &[Track]) -> Voices {
    let mut all = Tracks::default();
    all.set(tracks.to_vec());
    Voices::new(&all, Arc::default(), &Opus::default())
}

/// Sets the tracks that are heard from now on.
fn set(stream: &mut Voices, tracks: &[Track]) {
    let mut before = std::mem::replace(stream, voices(tracks));
    stream.go_on_from(&mut before);
}

/// Returns the packets that are handed on for this one.
fn take(stream: &mut Voices, mut packet: Arrived) -> Vec<Arrived> {
    let mut handed = Vec::new();
    let at = packet.at;
    stream.take(at, &mut packet.bytes, &mut |bytes| {
        handed.push(Arrived { at, is_report: false, bytes: bytes.to_vec() });
    });
    handed
}

#[test]
fn one_track_passes_as_it_is() {
    let mut stream = voices(&[track("a", 1)]);
    let mut sender = Sender::new(1);
    for at in 0..10 {
        let packet = sender.packet(20 * at, &tone(440.0, 20 * at));
        assert_eq!(take(&mut stream, packet.clone()), [packet]);
    }
    assert_eq!(take(&mut stream, Sender::new(2).packet(300, &SILENCE)), [], "nobody asked for it");
    let cut = Arrived { at: Time(0), is_report: false, bytes: vec![0x80; 11] };
    assert_eq!(take(&mut stream, cut), []);
}

#[test]
fn another_track_goes_on_where_the_first_one_ended() {
    let mut stream = voices(&[track("a", 1)]);
    let (mut first, mut second, mut heard) = (Sender::new(1), Sender::new(2), Receiver::new());
    for at in 0..20 {
        heard.take(take(&mut stream, first.packet(20 * at, &SILENCE)));
    }
    set(&mut stream, &[Track { payload_type: 96, ..track("b", 2) }]);
    // A gap of 100 ms beside the 20 ms that a packet lasts.
    for at in 25..45 {
        let mut packet = second.packet(20 * at, &SILENCE);
        packet.bytes[1] = 0x80 | 96;
        let mut taken = take(&mut stream, packet);
        taken[0].bytes[1] &= 0x7f;
        heard.take(taken);
    }
    let (sequences, times): (Vec<u16>, Vec<u32>) = heard.heads.iter().map(|(seq, time, _)| (*seq, *time)).unzip();
    assert!(sequences.windows(2).all(|two| two[1] == two[0].wrapping_add(1)), "{sequences:?}");
    let gaps: Vec<u32> = times.windows(2).map(|two| two[1].wrapping_sub(two[0]) / 48).collect();
    assert_eq!((gaps[19], gaps.iter().filter(|gap| **gap == 20).count()), (120, 38), "{gaps:?}");
    assert!(heard.heads.iter().all(|(.., source)| *source == 1));
    let later = times[20].wrapping_sub(2_000_000);
    let mut report = Arrived { at: Time(0), is_report: true, bytes: vec![0x80, 200, 0, 6, 0, 0, 0, 2] };
    report.bytes.resize(28, 0);
    assert!(stream.take_report(&mut report.bytes));
    assert_eq!(report.bytes[4..8], [0, 0, 0, 1]);
    assert_eq!(report.bytes[16..20], later.to_be_bytes(), "its time is that of the stream");
}

#[test]
fn all_tracks_are_mixed_until_one_has_spoken() {
    let mut stream = voices(&[track("a", 1), track("b", 2)]);
    let (mut first, mut second, mut heard) = (Sender::new(1), Sender::new(2), Receiver::new());
    for at in (0..2000).step_by(20) {
        heard.take(take(&mut stream, first.packet(at, &tone(440.0, at))));
        heard.take(take(&mut stream, second.packet(at + 7, &tone(1000.0, at))));
    }
    assert_eq!(heard.heads.len(), 100, "one packet in 20 ms");
    for hz in [440.0, 1000.0] {
        let level = heard.level(500, hz);
        assert!((0.8..1.2).contains(&level), "{hz} Hz: {level}");
    }
    // The second one has spoken: it alone is heard from now on, whichever is followed.
    stream.voices[1].has_spoken = true;
    let mut heard = Receiver::new();
    for at in (2000..4000).step_by(20) {
        heard.take(take(&mut stream, first.packet(at, &tone(440.0, at))));
        heard.take(take(&mut stream, second.packet(at + 7, &tone(1000.0, at))));
    }
    let levels = [440.0, 1000.0].map(|hz| heard.level(500, hz));
    assert!(levels[0] < 0.05 && (0.8..1.2).contains(&levels[1]), "{levels:?}");
}

#[test]
fn a_track_that_ends_hands_over_without_a_lost_frame() {
    let mut stream = voices(&[track("a", 1), track("b", 2)]);
    let (mut first, mut second, mut heard) = (Sender::new(1), Sender::new(2), Receiver::new());
    for at in (0..1000).step_by(20) {
        heard.take(take(&mut stream, first.packet(at, &SILENCE)));
        heard.take(take(&mut stream, second.packet(at + 1, &tone(1000.0, at))));
    }
    let before = heard.pcm.len();
    for at in (1000..2000).step_by(20) {
        heard.take(take(&mut stream, second.packet(at + 1, &tone(1000.0, at))));
    }
    let new_ms = (heard.pcm.len() - before) / 16;
    assert!((980..=1020).contains(&new_ms), "{new_ms} ms of 1000");
    let times: Vec<u32> = heard.heads.iter().map(|(_, time, _)| *time).collect();
    let steps: Vec<u32> = times.windows(2).map(|two| two[1].wrapping_sub(two[0]) / 960).collect();
    assert!(steps.iter().all(|step| (1..=4).contains(step)), "no frame lies on another: {steps:?}");
    let frames = steps.iter().sum::<u32>() + 1;
    assert!((100..=101).contains(&frames), "as much time as passed, and a frame that waited: {steps:?}");
    // The description follows.
    set(&mut stream, &[track("b", 2)]);
    heard.take(take(&mut stream, second.packet(2001, &SILENCE)));
    assert!(heard.heads.iter().all(|(.., source)| *source == 1));
    let ordered = heard.heads.windows(2).all(|two| two[1].0 == two[0].0.wrapping_add(1));
    assert!(ordered, "{:?}", heard.heads);
}

#[test]
fn payloads_are_found_behind_every_header() {
    let check = |bytes: &[u8], expect: Option<std::ops::Range<usize>>| assert_eq!(payload_at(bytes), expect);
    let header = [0x80; HEADER];
    check(&header, Some(12..12));
    let mut with_source = header.to_vec();
    with_source[0] = 0x81;
    check(&with_source, None);
    with_source.extend([0; 6]);
    check(&with_source, Some(16..18));
    let mut extended = header.to_vec();
    extended[0] = 0x90;
    extended.extend([0xbe, 0xde, 0, 1, 1, 2, 3, 4, 9]);
    check(&extended, Some(20..21));
    check(&extended[..14], None);
    let mut padded = header.to_vec();
    padded[0] = 0xa0;
    padded.extend([7, 0, 2]);
    check(&padded, Some(12..13));
    padded[14] = 200;
    check(&padded, None);
    check(&[], None);
}
