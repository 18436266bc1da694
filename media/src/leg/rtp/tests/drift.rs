//! An hour of two clocks that drift apart, with pauses and without. `-- --nocapture drift` prints the figures.

use super::*;

/// Result of a long stream.
#[derive(Debug)]
struct Long {
    /// The largest difference between neighbouring samples of the recording, and between their differences.
    step: i32,
    bend: i32,
    /// Largest depth of the buffer in the first half and in the second.
    depth_ms: [f64; 2],
    /// Error of the position of the last onset, in milliseconds.
    error_ms: f64,
    figures: LegFigures,
}

/// Returns packet number `sent` of a stream, with the audio `pcm`.
fn packet_of(sent: usize, encoder: &mut Encoder, pcm: &[i16]) -> [u8; HEADER + 160] {
    let mut packet = [0; HEADER + 160];
    let header = Header {
        payload_type: encoder.codec().payload_type(),
        sequence: sent as u16,
        timestamp: (sent * 160) as u32,
        ssrc: 9,
        ..Header::default()
    };
    header.write(packet.first_chunk_mut().unwrap());
    encoder.encode(pcm, &mut packet[HEADER..]);
    packet
}

/// Listens to 20 ms, and records what belongs in a recording.
fn record(leg: &mut RtpLeg, now: Time, window: &mut crate::recording::Window) {
    let mut scratch = Scratch::default();
    let heard = leg.listen(now, &mut scratch);
    window.move_back(heard.moved);
    let recorded = |kind| matches!(kind, HeardKind::Real | HeardKind::Lost);
    if let Some(passed) = heard.passed.filter(|passed| recorded(passed.kind)) {
        window.push(passed.position, passed.pcm);
    }
    if recorded(heard.kind) {
        window.push(heard.position, heard.pcm);
    }
}

/// Sends `talk` (sample of the sender's clock and its rate) for `minutes` by a clock that is slower by `drift`.
fn long(codec: Codec, minutes: u64, drift: f64, jitter_ms: f64, talk: impl Fn(usize, usize) -> i16) -> Long {
    let origin = Time::from_millis(ORIGIN_MS);
    let mut leg = RtpLeg::new(params(codec), Seed(3), origin);
    let spec = NetemSpec { jitter_ms, overtake: true, ..net_with_delay(30.0) };
    let mut netem = Netem::new(spec, Seed(5).stream("netem"));
    let mut window = crate::recording::Window::new();
    let mut encoder = Encoder::new(codec);
    let rate = codec.rate_hz() as usize;
    let per_frame = rate / 50;
    let (mut sent, mut at) = (0usize, 0i64);
    let (mut before, mut difference) = (0i32, 0i32);
    let (mut last, mut onset) = (-100_000i64, 0i64);
    let mut long = Long { step: 0, bend: 0, depth_ms: [0.0; 2], error_ms: 0.0, figures: LegFigures::default() };
    let ticks = minutes * 3000;
    for tick in 0..ticks {
        let now = Time::from_millis(ORIGIN_MS + tick * 20 + 7);
        loop {
            let sent_ns = (sent as f64 * 20e6 * (1.0 + drift)) as u64;
            if origin.0 + sent_ns > now.0 {
                break;
            }
            let pcm: Vec<i16> = (0..per_frame).map(|i| talk(sent * per_frame + i, rate)).collect();
            let packet = packet_of(sent, &mut encoder, &pcm);
            netem.send(Time(origin.0 + sent_ns), &packet);
            sent += 1;
        }
        while let Some((arrived, bytes)) = netem.receive(now) {
            leg.receive(arrived, &bytes);
        }
        record(&mut leg, now, &mut window);
        let depth = &mut long.depth_ms[usize::from(tick > ticks / 2)];
        *depth = depth.max(leg.figures().depth_ms);
        while let Some(pcm) = window.advance(tick as i64 * 320) {
            for &sample in pcm {
                let sample = i32::from(sample);
                // The mapping settles in the first ten seconds.
                if at > 160_000 {
                    long.step = long.step.max((sample - before).abs());
                    long.bend = long.bend.max((sample - before - difference).abs());
                }
                (difference, before) = (sample - before, sample);
                if sample.abs() > 2000 {
                    if at - last > 3200 {
                        onset = at;
                    }
                    last = at;
                }
                at += 1;
            }
        }
    }
    // Onsets are every 1200 ms, 480 ms from the start (see `speech`), by the sender's clock.
    let spoken_ms = (onset as f64 / 16.0 - 30.0) / (1.0 + drift);
    long.error_ms = (spoken_ms - 480.0 + 600.0).rem_euclid(1200.0) - 600.0;
    long.figures = leg.figures();
    long
}

fn speech(at: usize, rate: usize) -> i16 {
    let ms = at * 1000 / rate;
    tone(at, rate, (480..720).contains(&(ms % 1200)))
}

/// Returns a tone of 437 Hz, whose phase no jump of whole milliseconds meets again.
fn unbroken(at: usize, rate: usize) -> i16 {
    (8000.0 * (std::f64::consts::TAU * 437.0 * at as f64 / rate as f64).sin()) as i16
}

#[test]
fn an_hour_of_unbroken_sound_at_drifting_clocks_has_no_click_in_it() {
    let check = |codec: Codec, minutes: u64, drifts: &[f64], jitter_ms: f64| {
        let still = long(codec, 5, 0.0, 0.0, unbroken);
        for drift in drifts {
            let long = long(codec, minutes, *drift, jitter_ms, unbroken);
            println!("{codec:?} {:+} ppm, jitter {jitter_ms} ms: {long:?}, without drift {still:?}", drift * 1e6);
            assert!(long.step <= still.step + 40 && long.bend <= still.bend + 40, "{long:?} {still:?}");
            assert!(long.depth_ms[1] <= long.depth_ms[0] + 20.0 && long.depth_ms[1] < 130.0, "{long:?}");
            assert_eq!((long.figures.lost, long.figures.late, long.figures.concealed_ms), (0, 0, 0));
        }
    };
    check(Codec::Pcmu, 60, &[2e-4, -2e-4], 0.0);
    check(Codec::G722, 5, &[2e-4, -2e-4], 0.0);
    check(Codec::Pcmu, 10, &[2e-4, -2e-4], 20.0);
}

#[test]
fn an_hour_of_speech_at_drifting_clocks_ends_where_it_was_spoken() {
    for (minutes, drift, jitter_ms) in [(60, 2e-4, 0.0), (60, -2e-4, 0.0), (10, 2e-4, 30.0), (10, -2e-4, 30.0)] {
        let long = long(Codec::Pcmu, minutes, drift, jitter_ms, speech);
        println!("{:+} ppm, jitter {jitter_ms} ms: {long:?}", drift * 1e6);
        assert!(long.error_ms.abs() <= 3.0, "{long:?}");
        assert!(long.depth_ms[1] <= long.depth_ms[0] && long.depth_ms[1] < 60.0, "{long:?}");
        assert_eq!((long.figures.lost, long.figures.late, long.figures.concealed_ms), (0, 0, 0));
    }
}
