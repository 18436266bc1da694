//! A leg behind a simulated network: its audio, the positions on the clock, and the counts.

use super::*;
use crate::codec::Decoder;
use crate::frame::SILENCE;
use crate::frame::{FRAME, Sample};
use crate::netem::{Loss, Netem, NetemSpec};
use crate::recording::WINDOW;
use crate::rtp::packet::{Header, event_of};

mod both_ways;
mod codecs;
mod counts;
mod depth;
mod digits;
mod drift;
mod secure;
mod streams;

const ORIGIN_MS: u64 = 5000;

fn params(codec: Codec) -> MediaParams {
    MediaParams::new(codec)
}

/// Sender of any packet length whose numbers are about to wrap.
struct Peer {
    encoder: Encoder,
    codec: Codec,
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    phase: usize,
    sent: Vec<(u64, Vec<u8>)>,
}

impl Peer {
    fn new(codec: Codec) -> Peer {
        let encoder = Encoder::new(codec);
        Peer { encoder, codec, ssrc: 77, sequence: 0xfff0, timestamp: 0xffff_f000, phase: 0, sent: Vec::new() }
    }

    fn push(&mut self, at_ms: u64, payload_type: u8, marker: bool, timestamp: u32, payload: &[u8]) {
        let header = Header { marker, payload_type, sequence: self.sequence, timestamp, ssrc: self.ssrc };
        self.sequence = self.sequence.wrapping_add(1);
        let mut head = [0; HEADER];
        header.write(&mut head);
        self.sent.push((at_ms, [&head[..], payload].concat()));
    }

    /// Makes one packet of a 1 kHz tone (or of silence), continuous in phase.
    fn audio(&mut self, at_ms: u64, ptime_ms: usize, loud: bool) {
        let rate = self.codec.rate_hz() as usize;
        let pcm: Vec<i16> = (0..rate * ptime_ms / 1000).map(|i| tone(self.phase + i, rate, loud)).collect();
        self.phase += pcm.len();
        let payload = self.payload_of(&pcm);
        assert_eq!(self.codec.ticks(&payload), Some(ptime_ms as u32 * 8));
        self.push(at_ms, self.codec.payload_type(), false, self.timestamp, &payload);
        self.pause(ptime_ms);
    }

    /// Opus makes no longer frames than 60 ms: two of them are one packet (RFC 6716 3.2.4).
    fn payload_of(&mut self, pcm: &[i16]) -> Vec<u8> {
        let mut encode = |pcm: &[i16]| {
            let mut payload = vec![0; MAX_PAYLOAD];
            let len = self.encoder.encode(pcm, &mut payload);
            payload.truncate(len);
            payload
        };
        if self.codec != Codec::Opus || pcm.len() <= 960 {
            return encode(pcm);
        }
        let (first, second) = pcm.split_at(pcm.len() / 2);
        let (first, second) = (encode(first), encode(second));
        assert!(first[0] == second[0] && first[0] & 3 == 0, "each is one frame");
        let len = first.len() - 1;
        let length = if len < 252 { vec![len as u8] } else { vec![252 + (len & 3) as u8, ((len - 252) >> 2) as u8] };
        [&[first[0] | 2][..], &length, &first[1..], &second[1..]].concat()
    }

    fn pause(&mut self, ms: usize) {
        self.timestamp = self.timestamp.wrapping_add(ms as u32 * self.codec.rtp_clock_hz() / 1000);
    }

    /// Makes `for_ms` of packets from `from_ms` on: tone bursts of 240 ms every 1200 ms, 480 ms from the start, or
    /// always tone.
    fn talk(&mut self, from_ms: u64, for_ms: usize, ptime_ms: usize, always: bool) {
        for at in (0..for_ms).step_by(ptime_ms) {
            self.audio(from_ms + at as u64, ptime_ms, always || (480..720).contains(&(at % 1200)));
        }
    }
}

fn tone(at: usize, rate: usize, loud: bool) -> i16 {
    let angle = std::f64::consts::TAU * 1000.0 * at as f64 / rate as f64;
    if loud { (8000.0 * angle.sin()) as i16 } else { 0 }
}

/// Result of a leg that received packets.
#[derive(Default)]
struct Take {
    /// Real and concealed audio at its positions.
    record: Vec<i16>,
    /// True for each sample of it that was written.
    written: Vec<bool>,
    /// Positions of frames that do not follow on the one before, each with the difference in samples.
    steps: Vec<(Sample, Sample)>,
    real: usize,
    lost: usize,
    stretched: usize,
    digits: Vec<ReceivedDigit>,
    deepest_ms: f64,
    figures: LegFigures,
}

impl Take {
    /// Moves positions back as a recording does: audio older than its window at `now` stays.
    fn move_back(&mut self, by: Sample, now: Sample, due: &mut Option<Sample>) {
        let held = (now - WINDOW).clamp(0, self.record.len() as Sample - by) as usize;
        self.record[held..].rotate_left(by as usize);
        self.written[held..].rotate_left(by as usize);
        *due = due.map(|due| due - by);
    }

    fn keep(&mut self, position: Sample, kind: HeardKind, pcm: &[i16], due: &mut Option<Sample>) {
        if kind == HeardKind::Stretched {
            return;
        }
        let step = due.map_or(0, |due| position - due);
        if step != 0 {
            self.steps.push((position, step));
        }
        *due = Some(position + FRAME as Sample);
        if kind == HeardKind::Silence {
            return;
        }
        for (at, &sample) in (position..).zip(pcm) {
            if (0..self.record.len() as Sample).contains(&at) {
                (self.record[at as usize], self.written[at as usize]) = (sample, true);
            }
        }
    }

    /// Returns the onsets of the tone after at least 200 ms without it, in ms.
    fn onsets_ms(&self) -> Vec<f64> {
        let mut last = -4000;
        let mut onsets = Vec::new();
        for (at, sample) in self.record.iter().enumerate() {
            if sample.unsigned_abs() > 2000 {
                if at as i64 - last > 3200 {
                    onsets.push(at as f64 / 16.0);
                }
                last = at as i64;
            }
        }
        onsets
    }
}

/// Sends datagrams, each at milliseconds after the origin, through a network, and listens for `for_ms`.
fn hear(codec: Codec, sent: &[(u64, Vec<u8>)], spec: NetemSpec, for_ms: u64) -> (Take, u64) {
    hear_seeded(codec, sent, spec, for_ms, Seed(4))
}

fn hear_seeded(codec: Codec, sent: &[(u64, Vec<u8>)], spec: NetemSpec, for_ms: u64, seed: Seed) -> (Take, u64) {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut leg = RtpLeg::new(params(codec), Seed(3), origin);
    let mut netem = Netem::new(spec, seed.stream("netem"));
    let length = for_ms as usize * 16;
    let mut take = Take { record: vec![0; length], written: vec![false; length], ..Take::default() };
    let (mut next, mut due) = (0, None);
    for tick in 0..for_ms / 20 {
        let now = Time::from_millis(ORIGIN_MS + tick * 20 + 7);
        while let Some((at, bytes)) = sent.get(next).filter(|(at, _)| ORIGIN_MS + at <= now.0 / 1_000_000) {
            netem.send(Time::from_millis(ORIGIN_MS + at), bytes);
            next += 1;
        }
        while let Some((arrived, bytes)) = netem.receive(now) {
            leg.receive(arrived, &bytes);
        }
        take.digits.extend(std::iter::from_fn(|| leg.digit()));
        let mut scratch = Scratch::default();
        let heard = leg.listen(now, &mut scratch);
        take.move_back(heard.moved, tick as Sample * FRAME as Sample, &mut due);
        if let Some(passed) = heard.passed {
            take.keep(passed.position, passed.kind, passed.pcm, &mut due);
        } else if heard.kind == HeardKind::Silence && due.is_none() {
            continue;
        }
        match heard.kind {
            HeardKind::Real => take.real += 1,
            HeardKind::Lost => take.lost += 1,
            HeardKind::Stretched => take.stretched += 1,
            HeardKind::Silence => {}
        }
        take.keep(heard.position, heard.kind, heard.pcm, &mut due);
        if heard.kind == HeardKind::Real {
            take.deepest_ms = take.deepest_ms.max(leg.figures().depth_ms);
        }
    }
    take.figures = leg.figures();
    (take, netem.drop_count())
}

fn net_with_delay(delay_ms: f64) -> NetemSpec {
    NetemSpec { delay_ms, ..NetemSpec::default() }
}

#[track_caller]
fn assert_onsets(take: &Take, expect_ms: &[f64], within_ms: f64) {
    let onsets = take.onsets_ms();
    assert_eq!(onsets.len(), expect_ms.len(), "{onsets:?}");
    for (onset, expect) in onsets.iter().zip(expect_ms) {
        assert!((onset - expect).abs() <= within_ms, "{onsets:?} {expect_ms:?}");
    }
}

/// Returns the onsets of `talk` from 0 on through a path of `path_ms`.
fn bursts(count: usize, path_ms: f64) -> Vec<f64> {
    (0..count).map(|i| i as f64 * 1200.0 + 480.0 + path_ms).collect()
}

#[test]
fn a_clean_stream_is_heard_where_it_was_sent_whatever_its_packet_length() {
    for codec in Codec::ALL {
        for ptime_ms in [10, 20, 30, 40, 60] {
            let mut peer = Peer::new(codec);
            peer.talk(0, 12_000, ptime_ms, false);
            let (take, _) = hear(codec, &peer.sent, net_with_delay(30.0), 12_600);
            assert_onsets(&take, &bursts(10, 30.0), 2.0);
            let figures = take.figures;
            assert_eq!(figures.received, 12_000 / ptime_ms as u64);
            assert_eq!(
                (figures.lost, figures.late, figures.concealed_ms, take.lost),
                (0, 0, 0, 0),
                "{codec:?} {ptime_ms}"
            );
            assert!(take.steps.iter().all(|step| step.1.abs() <= 1), "{codec:?} {ptime_ms} {:?}", take.steps);
            assert!(take.deepest_ms < 85.0, "{}", take.deepest_ms);
        }
    }
}

#[test]
fn a_clean_tone_is_heard_clean() {
    for (codec, least_db) in [
        (Codec::Pcmu, 33.0),
        (Codec::Pcma, 33.0),
        (Codec::G722, 30.0),
        (Codec::L16Narrow, 60.0),
        (Codec::L16Wide, 60.0),
    ] {
        let mut peer = Peer::new(codec);
        peer.talk(0, 4000, 20, true);
        let (take, _) = hear(codec, &peer.sent, net_with_delay(30.0), 4000);
        let part = &take.record[16_000..48_000];
        let (sin, cos) = part.iter().enumerate().fold((0.0, 0.0), |(sin, cos), (i, &sample)| {
            let angle = std::f64::consts::TAU * i as f64 / 16.0;
            (sin + f64::from(sample) * angle.sin(), cos + f64::from(sample) * angle.cos())
        });
        let total: f64 = part.iter().map(|&sample| f64::from(sample).powi(2)).sum();
        let signal = 2.0 * (sin * sin + cos * cos) / part.len() as f64;
        let snr_db = 10.0 * (signal / (total - signal)).log10();
        assert!(snr_db > least_db, "{codec:?} {snr_db}");
        assert!((signal / part.len() as f64 - 32e6).abs() < 1e6);
    }
}

#[test]
fn jitter_up_to_60_ms_moves_nothing() {
    let check = |jitter_ms: f64, overtake: bool, codec: Codec| {
        let mut peer = Peer::new(codec);
        peer.talk(0, 60_000, 20, false);
        let spec = NetemSpec { jitter_ms, overtake, ..net_with_delay(40.0) };
        let (take, _) = hear(codec, &peer.sent, spec, 60_600);
        assert_onsets(&take, &bursts(50, 40.0), 20.0);
        let figures = take.figures;
        assert_eq!((figures.received, figures.lost), (3000, 0));
        assert!(figures.late <= 15, "{jitter_ms} {overtake}: late {}", figures.late);
        assert!(figures.jitter_ms > jitter_ms / 10.0 && figures.jitter_ms < jitter_ms, "{}", figures.jitter_ms);
        assert!(take.deepest_ms < 150.0, "{}", take.deepest_ms);
    };
    for jitter_ms in [5.0, 20.0, 40.0, 60.0] {
        check(jitter_ms, false, Codec::Pcmu);
        check(jitter_ms, true, Codec::Pcmu);
    }
    check(60.0, true, Codec::G722);
}

#[test]
fn the_first_words_are_placed_before_the_network_is_known() {
    for (jitter_ms, overtake, most_far) in
        [(0.0, false, 0), (10.0, false, 0), (30.0, false, 0), (60.0, false, 5), (60.0, true, 0)]
    {
        let (mut far, mut most_ms) = (0, 0.0f64);
        for seed in 0..300 {
            let mut peer = Peer::new(Codec::Pcmu);
            peer.talk(0, 1000, 20, true);
            let spec = NetemSpec { jitter_ms, overtake, ..net_with_delay(40.0) };
            let (take, _) = hear_seeded(Codec::Pcmu, &peer.sent, spec, 1400, Seed(seed));
            let error_ms = take.onsets_ms()[0] - 40.0;
            assert!((-2.0..jitter_ms * 0.45 + 2.0).contains(&error_ms), "{jitter_ms} {seed}: {error_ms}");
            far += usize::from(error_ms > 20.0);
            most_ms = most_ms.max(error_ms);
        }
        println!("jitter {jitter_ms} ms, overtaking {overtake}: at most {most_ms:.1} ms, {far} of 300 over 20 ms");
        assert!(far <= most_far, "{jitter_ms}: {far}");
    }
}

#[test]
fn losses_keep_length_and_place_and_are_counted() {
    for loss in [Loss::Independent(0.05), Loss::Burst { enter: 0.02, leave: 0.4, loss: 1.0 }] {
        for ptime_ms in [20, 30, 60] {
            let mut peer = Peer::new(Codec::Pcmu);
            peer.talk(0, 30_000, ptime_ms, true);
            let spec = NetemSpec { loss, ..net_with_delay(30.0) };
            let (take, dropped) = hear(Codec::Pcmu, &peer.sent, spec, 30_600);
            let figures = take.figures;
            // A loss after the last packet received cannot be known.
            assert!(figures.lost > 3 && (0..=4).contains(&(dropped - figures.lost)), "{figures:?} {dropped}");
            assert_eq!(figures.received + dropped, 30_000 / ptime_ms as u64);
            assert_eq!(figures.concealed_ms, figures.lost * ptime_ms as u64, "{loss:?} {ptime_ms}");
            assert!(take.steps.iter().all(|step| step.1.abs() <= 1), "{:?}", take.steps);
            let from = take.written.iter().position(|&written| written).unwrap();
            let to = take.written.iter().rposition(|&written| written).unwrap();
            let holes = take.written[from..to].iter().filter(|&&written| !written).count();
            let most = if matches!(loss, Loss::Burst { .. }) { (to - from) / 50 } else { 0 };
            assert!(holes <= most, "{loss:?} {ptime_ms}: {holes}");
            assert!((to - from) as i64 >= 30_000 * 16 - 200 * 16, "{}", to - from);
        }
    }
}

#[test]
fn a_lost_frame_of_a_tone_does_not_fall_silent() {
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 2000, 20, true);
    peer.sent.remove(50);
    let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(0.0), 2000);
    let lost = &take.record[1000 * 16..1020 * 16];
    let level = (lost.iter().map(|&sample| f64::from(sample).powi(2)).sum::<f64>() / lost.len() as f64).sqrt();
    assert!(level > 4000.0, "{level}");
    assert_eq!((take.figures.lost, take.figures.concealed_ms), (1, 20));
}

#[test]
fn duplicates_and_reordering_change_nothing() {
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 24_000, 20, false);
    let spec = NetemSpec { duplicate: 0.2, reorder: 0.1, reorder_ms: 35.0, ..net_with_delay(30.0) };
    let (take, _) = hear(Codec::Pcmu, &peer.sent, spec, 24_600);
    assert_onsets(&take, &bursts(20, 30.0), 3.0);
    let figures = take.figures;
    assert_eq!((figures.received, figures.lost, figures.late), (1200, 0, 0));
    assert!((180..300).contains(&figures.duplicates), "{}", figures.duplicates);
}

#[test]
fn another_source_is_heard_from_its_first_packet_and_a_stray_never() {
    let mut peer = Peer::new(Codec::Pcmu);
    peer.talk(0, 6000, 20, false);
    (peer.ssrc, peer.sequence, peer.timestamp) = (99, 12, 34);
    peer.talk(6000, 6000, 20, false);
    let mut strays = Peer::new(Codec::Pcmu);
    strays.ssrc = 5;
    strays.talk(1000, 400, 20, true);
    let mut sent = peer.sent;
    sent.extend(strays.sent);
    sent.sort_by_key(|packet| packet.0);
    let (take, _) = hear(Codec::Pcmu, &sent, net_with_delay(30.0), 12_600);
    assert_onsets(&take, &bursts(10, 30.0), 2.0);
    let figures = take.figures;
    assert_eq!((figures.received, figures.lost, figures.foreign, figures.source_changes), (600, 0, 20, 1));
}

#[test]
fn a_silent_sender_loses_nothing() {
    // 1 s of tone, 3 s of nothing (with or without comfort noise), again and again.
    for comfort in [false, true] {
        let mut peer = Peer::new(Codec::Pcmu);
        for round in 0..5 {
            peer.talk(round * 4000, 1000, 20, true);
            if comfort {
                let timestamp = peer.timestamp;
                peer.push(round * 4000 + 1000, COMFORT_NOISE, false, timestamp, &[60]);
            }
            peer.pause(3000);
        }
        let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 20_000);
        let expect: Vec<f64> = (0..5).map(|round| f64::from(round) * 4000.0 + 30.0).collect();
        assert_onsets(&take, &expect, 2.0);
        let figures = take.figures;
        assert_eq!((figures.lost, figures.late, figures.concealed_ms, take.lost), (0, 0, 0, 0));
        assert!((248..=260).contains(&take.real), "{}", take.real);
        assert!(!comfort || take.stretched == 0, "{}", take.stretched);
    }
}

#[test]
fn timestamps_that_stand_still_or_jump_are_followed() {
    let check = |pause_ms: u64, jump: u32| {
        let mut peer = Peer::new(Codec::Pcmu);
        peer.talk(0, 3600, 20, false);
        peer.timestamp = peer.timestamp.wrapping_add(jump);
        peer.talk(3600 + pause_ms, 6000, 20, false);
        let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 10_000 + pause_ms);
        let mut expect = bursts(3, 30.0);
        expect.extend(bursts(5, 3630.0 + pause_ms as f64));
        assert_onsets(&take, &expect, 5.0);
        assert_eq!(take.figures.lost, 0);
    };
    check(0, 0);
    check(2000, 0);
    check(2000, 16_000);
    check(0, 0x7000_0000);
    check(500, 0u32.wrapping_sub(90_000));
}

#[test]
fn a_stall_of_the_network_is_waited_for_or_counted() {
    let check = |stall_ms: u64, heard_ms: std::ops::RangeInclusive<u64>| {
        let mut peer = Peer::new(Codec::Pcmu);
        peer.talk(0, 12_000, 20, false);
        for packet in &mut peer.sent {
            if (5800..5800 + stall_ms).contains(&packet.0) {
                packet.0 = 5800 + stall_ms;
            }
        }
        let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 12_600);
        assert_eq!((take.figures.received, take.figures.lost), (600, 0));
        assert!(heard_ms.contains(&take.figures.concealed_ms), "{stall_ms}: {}", take.figures.concealed_ms);
        assert_eq!(take.figures.late * 20, take.figures.concealed_ms);
        assert_onsets(&take, &bursts(10, 30.0), 2.0);
    };
    check(100, 0..=0);
    check(180, 0..=0);
    check(600, 380..=480);
}

#[test]
fn what_was_sent_is_recorded_to_the_sample_whatever_the_network_delays() {
    for codec in Codec::ALL {
        let mut peer = Peer::new(codec);
        peer.talk(0, 12_000, 20, false);
        let (calm, _) = hear(codec, &peer.sent, net_with_delay(30.0), 12_600);
        for packet in &mut peer.sent {
            // In a pause, in the middle of a burst, and half in each.
            for (from, to) in [(2000, 2080), (4200, 4300), (5500, 5660), (7640, 7720)] {
                if (from..to).contains(&packet.0) {
                    packet.0 = to;
                }
            }
        }
        let (rough, _) = hear(codec, &peer.sent, net_with_delay(30.0), 12_600);
        assert!(
            rough.stretched > calm.stretched + 3 && rough.figures.late == 0,
            "{} {}",
            rough.stretched,
            calm.stretched
        );
        let differ = rough.record.iter().zip(&calm.record).filter(|(a, b)| a != b).count();
        assert_eq!(differ, 0, "{codec:?}");
    }
}

#[test]
fn two_clocks_drift_apart_without_a_gap() {
    for drift in [2e-4, -2e-4] {
        let mut peer = Peer::new(Codec::Pcmu);
        peer.talk(0, 120_000, 20, false);
        for packet in &mut peer.sent {
            packet.0 = (packet.0 as f64 * (1.0 + drift)).round() as u64;
        }
        let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 120_600);
        let expect: Vec<f64> = bursts(100, 0.0).iter().map(|at| at * (1.0 + drift) + 30.0).collect();
        assert_onsets(&take, &expect, 4.0);
        assert_eq!((take.figures.late, take.figures.lost), (0, 0));
        assert!(take.steps.iter().all(|step| step.1.abs() == 1) && take.steps.len() > 200, "{:?}", take.steps);
    }
}

#[test]
fn digits_come_through_losses_and_duplicates() {
    let check = |loss: f64, duplicate: f64, jitter_ms: f64, least: usize| {
        let mut peer = Peer::new(Codec::Pcmu);
        let digits: Vec<char> = "0123456789*#ABCD".chars().cycle().take(100).collect();
        for (i, &digit) in digits.iter().enumerate() {
            let start = i as u64 * 240;
            let timestamp = peer.timestamp;
            for packet in 1..=7u64 {
                let (duration, end) = (packet.min(5) as u16 * 160, packet >= 5);
                let payload = EventPayload { event: event_of(digit).unwrap(), end, volume: 10, duration };
                peer.push(start + packet.min(5) * 20, 101, packet == 1, timestamp, &payload.bytes());
            }
            peer.pause(100);
            peer.talk(start + 120, 140, 20, false);
        }
        let spec = NetemSpec { loss: Loss::Independent(loss), duplicate, jitter_ms, ..net_with_delay(30.0) };
        let (take, dropped) = hear(Codec::Pcmu, &peer.sent, spec, 24_600);
        let heard: String = take.digits.iter().map(|digit| digit.digit).collect();
        assert!(heard.len() >= least, "{loss} {duplicate}: {heard}");
        assert_eq!(heard, digits.iter().collect::<String>(), "{loss} {duplicate}");
        assert_eq!(take.figures.lost, dropped);
        for (i, digit) in take.digits.iter().enumerate() {
            let truth = (i as i64 * 240 + 30) * 16;
            assert!((digit.from - truth).abs() <= 45 * 16, "{i} {} {truth}", digit.from);
            assert!((20..=100).contains(&digit.duration_ms));
        }
    };
    check(0.0, 0.0, 0.0, 100);
    check(0.05, 0.0, 0.0, 100);
    check(0.05, 0.2, 30.0, 100);
}

#[test]
fn events_alone_are_heard_before_any_audio() {
    let mut peer = Peer::new(Codec::Pcmu);
    for packet in 1..=5u16 {
        let payload = EventPayload { event: 4, end: packet == 5, volume: 10, duration: packet * 160 };
        peer.push(500 + u64::from(packet) * 20, 101, packet == 1, 1, &payload.bytes());
    }
    let (take, _) = hear(Codec::Pcmu, &peer.sent, net_with_delay(30.0), 1000);
    assert_eq!(take.digits, [ReceivedDigit { digit: '4', from: 530 * 16, duration_ms: 100 }]);
    assert_eq!((take.real, take.lost, take.stretched, take.figures.lost), (0, 0, 0, 0));
}
