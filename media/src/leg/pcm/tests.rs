//! Positions, gaps, bursts and rates of frames of PCM.

use std::time::Duration;

use super::*;
use crate::call::TICK;
use crate::frame::SILENCE;

const ORIGIN: Time = Time::from_millis(1000);

/// A leg that is listened to every 20 ms, from the origin on.
struct Listener {
    leg: PcmLeg,
    now: Time,
    /// HeardFrame audio by position: frames, as many as were listened for.
    heard: Vec<(Sample, HeardKind, Frame)>,
}

impl Listener {
    fn new(rate_hz: u32) -> Listener {
        let params = PcmParams::new(rate_hz).expect("a rate that is spoken");
        Listener { leg: PcmLeg::new(params, ORIGIN), now: ORIGIN, heard: Vec::new() }
    }

    /// Listens once, after `late_ms` beyond the tick's time.
    fn listen(&mut self, late_ms: u64) {
        let mut scratch = Scratch::default();
        let heard = self.leg.listen(self.now + Duration::from_millis(late_ms), &mut scratch);
        if let Some(passed) = heard.passed {
            self.heard.push((passed.position, passed.kind, *passed.pcm));
        }
        self.heard.push((heard.position, heard.kind, *heard.pcm));
        self.now = self.now + TICK;
    }

    fn listen_for(&mut self, ticks: usize) {
        (0..ticks).for_each(|_| self.listen(0));
    }

    /// Returns the audio from position 0 on.
    fn track(&self) -> Vec<i16> {
        let mut track = Vec::new();
        for (position, _, pcm) in &self.heard {
            for (at, sample) in (*position..).zip(pcm).filter(|(at, _)| *at >= 0) {
                track.resize(track.len().max(at as usize + 1), 0);
                track[at as usize] = *sample;
            }
        }
        track
    }

    /// Returns the first and last position of a sample that is not silence.
    fn sounds(&self) -> Option<(usize, usize)> {
        let track = self.track();
        let first = track.iter().position(|sample| *sample != 0)?;
        Some((first, track.iter().rposition(|sample| *sample != 0)?))
    }
}

fn ms(ms: u64) -> Time {
    ORIGIN + Duration::from_millis(ms)
}

#[test]
fn frames_follow_each_other_whatever_the_listener_is_late() {
    let mut listener = Listener::new(16_000);
    for tick in 0..200 {
        listener.listen(if tick % 7 == 3 { 9 } else { 0 });
    }
    assert!(listener.heard.windows(2).all(|pair| pair[0].0 + FRAME as Sample == pair[1].0));
    assert_eq!(listener.heard.len(), 200);
}

#[test]
fn audio_lies_where_it_arrived() {
    for (arrives_ms, expect) in [(100, 1600), (101, 1616), (119, 1904)] {
        let mut listener = Listener::new(16_000);
        listener.listen_for(5);
        listener.leg.receive(ms(arrives_ms), &[1000; 320]);
        listener.listen_for(10);
        assert_eq!(listener.sounds(), Some((expect, expect + 319)), "{arrives_ms} ms");
    }
}

#[test]
fn uneven_sending_makes_no_gap() {
    let mut listener = Listener::new(16_000);
    // Every piece but the first is late by up to 19 ms.
    let late_ms = [0, 15, 19, 5, 0, 12, 19, 18, 2, 10];
    let mut due: Vec<u64> = (0..).zip(late_ms).map(|(piece, late)| 100 + 20 * piece + late).collect();
    due.sort_unstable();
    for tick in 0..30_u64 {
        for at in due.iter().filter(|at| (20 * tick..20 * tick + 20).contains(*at)) {
            listener.leg.receive(ms(*at), &[1000; 320]);
        }
        listener.now = ms(20 * tick + 20);
        listener.listen(0);
    }
    let (first, last) = listener.sounds().expect("it was heard");
    assert_eq!((first, last), (1600, 1600 + 3199));
    assert!(listener.track()[first..=last].iter().all(|sample| *sample == 1000));
}

#[test]
fn a_pause_of_the_sender_stays_as_long_as_it_was() {
    let mut listener = Listener::new(16_000);
    listener.listen_for(2);
    listener.leg.receive(ms(40), &[1000; 320]);
    listener.listen_for(8);
    listener.leg.receive(ms(190), &[1000; 320]);
    listener.listen_for(8);
    let track = listener.track();
    let silent = track[640..3360].iter().filter(|sample| **sample == 0).count();
    assert_eq!((listener.sounds(), silent), (Some((640, 3359)), 2720 - 640));
}

#[test]
fn a_burst_is_heard_at_real_time_and_its_queue_has_an_end() {
    let mut listener = Listener::new(16_000);
    listener.listen_for(1);
    // 900 ms at once.
    listener.leg.receive(ms(20), &[1000; 14_400]);
    assert_eq!(listener.leg.overflow_count(), 0);
    listener.listen_for(60);
    assert_eq!(listener.sounds(), Some((320, 320 + 14_399)));
    assert_eq!(listener.leg.heard_samples(), 14_400);
    // The newest of 1.2 s is dropped.
    let at = listener.now;
    listener.leg.receive(at, &[1000; 19_200]);
    assert_eq!(listener.leg.overflow_count(), 1);
    listener.listen_for(80);
    assert_eq!(listener.leg.heard_samples(), 14_400 + 16_000);
}

#[test]
fn audio_that_is_taken_back_is_not_heard() {
    let mut listener = Listener::new(16_000);
    listener.listen_for(1);
    listener.leg.receive(ms(20), &[1000; 9600]);
    listener.listen_for(10);
    listener.leg.clear();
    assert_eq!(listener.leg.heard_samples(), 9600);
    listener.listen_for(1);
    assert!(listener.heard.last().expect("it listened").2 == SILENCE);
    listener.leg.receive(ms(240), &[500; 320]);
    listener.listen_for(10);
    assert_eq!(listener.track()[3840..4160], [500; 320]);
}

#[test]
fn every_rate_keeps_length_place_and_loudness() {
    for rate_hz in PcmParams::RATES {
        let mut listener = Listener::new(rate_hz);
        let tone = |n: usize| (8000.0 * (n as f64 * 440.0 * std::f64::consts::TAU / f64::from(rate_hz)).sin()) as i16;
        let pcm: Vec<i16> = (0..rate_hz as usize).map(tone).collect();
        for (piece, pcm) in pcm.chunks(rate_hz as usize / 50).enumerate() {
            listener.leg.receive(ms(20 * piece as u64), pcm);
            listener.listen_for(1);
        }
        listener.listen_for(10);
        let track = listener.track();
        let (first, last) = listener.sounds().expect("it was heard");
        assert!(first <= 60 && (15_900..=16_100).contains(&last), "{rate_hz}: {first} to {last}");
        let power = |pcm: &[i16]| pcm.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / pcm.len() as f64;
        let level = power(&track[1600..14_400]).sqrt();
        assert!((level - 8000.0 / 2f64.sqrt()).abs() < 60.0, "{rate_hz}: {level}");
        // The other direction.
        let mut frame = SILENCE;
        let mut sent = Vec::new();
        for at in 0..50 {
            for (n, sample) in frame.iter_mut().enumerate() {
                *sample = (8000.0 * ((at * FRAME + n) as f64 * 440.0 * std::f64::consts::TAU / 16_000.0).sin()) as i16;
            }
            sent.extend_from_slice(listener.leg.send(&frame));
        }
        assert!((sent.len() as i64 - i64::from(rate_hz)).abs() <= 1, "{rate_hz}: {} samples", sent.len());
        let level = power(&sent[rate_hz as usize / 10..]).sqrt();
        assert!((level - 8000.0 / 2f64.sqrt()).abs() < 60.0, "{rate_hz}: {level}");
    }
    assert_eq!(PcmParams::new(11_025), None);
}

#[test]
fn a_listener_that_was_away_passes_over_what_is_old() {
    let mut listener = Listener::new(16_000);
    listener.listen_for(2);
    for piece in 0..40 {
        listener.leg.receive(ms(40 + 20 * piece), &[1000; 320]);
    }
    listener.now = ms(840);
    listener.listen(0);
    let (position, ..) = *listener.heard.last().expect("it listened");
    assert_eq!(position, 840 * 16 - 320);
}

/// Sends 20 ms of `level` at a time for `ticks`, each `behind_ms` after its time, and listens.
fn stream(listener: &mut Listener, level: i16, ticks: usize, behind_ms: u64) {
    for _ in 0..ticks {
        let now = listener.now + Duration::from_millis(behind_ms);
        listener.leg.receive(now, &[level; 320]);
        listener.listen(0);
    }
}

#[test]
fn time_that_a_stream_was_held_up_is_given_back_in_its_silence() {
    let mut listener = Listener::new(16_000);
    stream(&mut listener, 0, 50, 0);
    // 200 ms without a frame, and then all of them at once.
    listener.listen_for(10);
    (0..10).for_each(|_| listener.leg.receive(listener.now, &[0; 320]));
    stream(&mut listener, 0, 20, 0);
    // Words are never cut, nor are the pauses between them.
    let depth = |listener: &Listener| listener.leg.figures().depth_ms;
    let before = depth(&listener);
    for _ in 0..4 {
        stream(&mut listener, 3000, 40, 0);
        stream(&mut listener, 0, 30, 0);
    }
    assert!(before >= 200.0 && depth(&listener) == before, "{before} {}", depth(&listener));
    let heard = listener.leg.heard_samples();
    stream(&mut listener, 0, 150, 0);
    assert!(depth(&listener) <= 60.0, "{}", depth(&listener));
    // Silence that was left out counts as heard, so that a wait for its end is over.
    let passed = listener.leg.heard_samples() - heard;
    assert!((150 * 320 + 2560..=150 * 320 + 3200).contains(&passed), "{passed}");
    stream(&mut listener, 3000, 1, 0);
    listener.listen_for(5);
    let loud = listener.track().iter().rposition(|sample| *sample != 0).expect("the last word");
    let sent = (listener.now.0 - ORIGIN.0) as usize / 62_500 - 6 * 320;
    assert!(loud - sent <= 60 * 16, "heard {} samples after it was sent", loud - sent);
}

#[test]
fn a_burst_keeps_its_pauses() {
    let mut listener = Listener::new(16_000);
    let words: Vec<i16> = [[2000; 1600].as_slice(), &[0; 12_000], &[2000; 1600]].concat();
    for (at, piece) in words.chunks(640).enumerate() {
        // Twice as fast as real time.
        listener.leg.receive(listener.now, piece);
        assert!(at < 100);
        listener.listen(0);
    }
    listener.listen_for(60);
    let (first, last) = listener.sounds().expect("words");
    assert_eq!(last - first + 1, words.len());
}
