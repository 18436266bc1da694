//! Every codec in packets of every length, and losses with Opus.

use super::*;
use crate::resample::Up2;

const SPEECH: &[u8] = include_bytes!("../../../../../fixtures/audio/speech.ul");

/// Sends `pcm` in packets of `ptime_ms` from a near leg to a far one. Returns the packets and the recording of them.
fn send_and_hear(codec: Codec, ptime_ms: u8, pcm: &[i16]) -> (Vec<(u64, Vec<u8>)>, Take) {
    let mut near = RtpLeg::new(MediaParams { ptime_ms, ..params(codec) }, Seed(1), Time::default());
    let mut sent = Vec::new();
    for (tick, frame) in pcm.chunks_exact(FRAME).enumerate() {
        let at = tick as u64 * 20;
        near.send(Time::from_millis(at), frame.try_into().expect("a frame"));
        while let Some(bytes) = near.packet() {
            sent.push((at, bytes.to_vec()));
        }
    }
    let (take, _) = hear(codec, &sent, NetemSpec::default(), pcm.len() as u64 / 16 + 500);
    (sent, take)
}

#[test]
fn every_codec_is_sent_and_heard_in_packets_of_every_length() {
    let wave: Vec<i16> = (0..16_000 * 6).map(|at| tone(at, 16_000, true)).collect();
    for codec in Codec::ALL {
        for ptime_ms in [10, 20, 30, 40, 50, 60] {
            let (sent, take) = send_and_hear(codec, ptime_ms, &wave);
            let case = format!("{codec:?} {ptime_ms} ms");
            assert_eq!(sent.len(), 6000 / usize::from(ptime_ms), "{case}");
            let packets: Vec<_> = sent.iter().map(|(_, bytes)| Packet::parse(bytes).expect("it is RTP")).collect();
            for (n, (packet, (at, _))) in packets.iter().zip(&sent).enumerate() {
                assert_eq!(codec.ticks(packet.payload), Some(u32::from(ptime_ms) * 8), "{case}");
                let units = codec.rtp_clock_hz() / 1000 * u32::from(ptime_ms) * n as u32;
                assert_eq!(packet.header.timestamp.wrapping_sub(packets[0].header.timestamp), units, "{case}");
                // It leaves in the tick in which its last sample is there.
                assert_eq!(*at, (u64::from(ptime_ms) * (n as u64 + 1) - 1) / 20 * 20, "{case}");
                assert_eq!((packet.header.marker, packet.header.payload_type), (n == 0, codec.payload_type()));
            }
            let figures = take.figures;
            assert_eq!((figures.lost, figures.late, figures.concealed_ms, figures.malformed), (0, 0, 0, 0), "{case}");
            assert_eq!(take.lost, 0, "{case}");
            assert!(take.steps.iter().all(|step| step.1.abs() <= 1), "{case} {:?}", take.steps);
            // All of it is in the recording, without a hole, at its level.
            let (from, to) = (16_000, 16_000 * 5);
            assert!(take.written[from..to].iter().all(|&written| written), "{case}");
            let level_db = 10.0 * (power(&take.record[from..to]) / 32e6).log10();
            // Opus is not faithful to a single tone.
            let most_db = if codec == Codec::Opus { 1.5 } else { 0.3 };
            assert!(level_db.abs() < most_db, "{case}: {level_db} dB");
        }
    }
}

#[test]
fn another_codec_of_the_same_clock_is_followed() {
    for (first, second) in [(Codec::Pcmu, Codec::Pcma), (Codec::G722, Codec::Pcmu), (Codec::Pcma, Codec::G722)] {
        let mut legs = [RtpLeg::new(params(first), Seed(1), Time(0)), RtpLeg::new(params(first), Seed(2), Time(0))];
        let [near, far] = &mut legs;
        let (mut heard, mut types) = (Vec::new(), Vec::new());
        for tick in 0..300 {
            let now = Time::from_millis(tick * 20);
            if tick == 150 {
                assert!(near.renegotiate(params(second)) && far.renegotiate(params(second)));
                assert!(!near.renegotiate(params(Codec::Opus)), "its clock is another one");
            }
            near.send(now, &std::array::from_fn(|i| tone(tick as usize * FRAME + i, 16_000, true)));
            while let Some(bytes) = near.packet().map(<[u8]>::to_vec) {
                types.push(Packet::parse(&bytes).expect("it is RTP").header.payload_type);
                assert_eq!(far.receive(now, &bytes), Received::Audio);
            }
            let mut scratch = Scratch::default();
            let frame = far.listen(now, &mut scratch);
            heard.push((tick, frame.position, power(frame.pcm)));
        }
        assert_eq!((types[100], types[200]), (first.payload_type(), second.payload_type()));
        let figures = far.figures();
        assert_eq!((figures.received, figures.lost, figures.unknown_payload_type), (300, 0, 0), "{first:?} {second:?}");
        let is_heard = |(_, _, power): &(u64, Sample, f64)| (10.0 * (power / 32e6).log10()).abs() < 1.0;
        let quiet: Vec<u64> = heard.iter().filter(|frame| !is_heard(frame)).map(|(tick, ..)| *tick).collect();
        // Before the first packet, and as long as the buffer is deep at the change.
        assert!(quiet.iter().all(|tick| *tick < 10 || (145..170).contains(tick)), "{first:?} {second:?}: {quiet:?}");
        let behind = |tick: usize| tick as Sample * FRAME as Sample - heard[tick].1;
        assert!((behind(120) - behind(280)).abs() < FRAME as Sample * 3, "{} {}", behind(120), behind(280));
    }
}

#[test]
fn plain_samples_are_recorded_as_they_were_sent() {
    let speech = speech();
    let (_, take) = send_and_hear(Codec::L16Wide, 60, &speech[..FRAME * 300]);
    let first = take.written.iter().position(|&written| written).expect("something came");
    assert_eq!(take.record[first..first + FRAME * 290], speech[..FRAME * 290]);
}

#[test]
fn each_direction_has_its_payload_type() {
    let near = MediaParams { payload_type: 96, receive_payload_type: 111, ..params(Codec::Opus) };
    let far = MediaParams { payload_type: 111, receive_payload_type: 96, ..near };
    let mut legs = [RtpLeg::new(near, Seed(1), Time(0)), RtpLeg::new(far, Seed(2), Time(0))];
    for (from, to) in [(0, 1), (1, 0)] {
        legs[from].send(Time(0), &SILENCE);
        let packet = legs[from].packet().expect("one a tick").to_vec();
        assert_eq!(legs[to].receive(Time(0), &packet), Received::Audio);
    }
}

#[test]
fn an_event_longer_than_its_clock_can_count_is_sent_as_long_as_it_can() {
    for (codec, longest_ms) in [(Codec::Pcmu, 8000), (Codec::L16Wide, 4095), (Codec::Opus, 1365)] {
        let mut leg = RtpLeg::new(params(codec), Seed(1), Time(0));
        assert!(leg.start_event('1', 10_000));
        let mut durations = Vec::new();
        while leg.sending_event() {
            leg.send(Time(0), &SILENCE);
            while let Some(bytes) = leg.packet() {
                let payload = Packet::parse(bytes).expect("it is RTP").payload;
                durations.push(EventPayload::parse(payload).expect("it is an event").duration);
            }
        }
        let last = u32::from(*durations.last().expect("it was sent"));
        assert_eq!(last / (codec.rtp_clock_hz() / 1000), longest_ms, "{codec:?}");
        assert!(durations.is_sorted());
    }
}

/// Returns the distance of speech with losses from the same speech without, in dB. It is the mean signal to error ratio
/// of the lost frames, each between -10 and 35.
fn lost_frames_db(loss: f64, fec: bool) -> f64 {
    let speech = speech();
    let mut peer = Peer::new(Codec::Opus);
    peer.encoder.set_fec(fec);
    for (n, frame) in speech.chunks_exact(FRAME).enumerate() {
        let mut payload = [0; 400];
        let len = peer.encoder.encode(frame, &mut payload);
        peer.push(n as u64 * 20, Codec::Opus.payload_type(), false, peer.timestamp, &payload[..len]);
        peer.pause(20);
    }
    let for_ms = speech.len() as u64 / 16 + 500;
    let (whole, _) = hear(Codec::Opus, &peer.sent, NetemSpec::default(), for_ms);
    let mut stream = Seed(11).stream("loss");
    let mut arrives = peer.sent.clone();
    let mut lost = Vec::new();
    arrives.retain(|(at, _)| {
        let loses = stream.unit() < loss && (1000..for_ms - 1000).contains(at);
        lost.extend(loses.then_some(*at));
        !loses
    });
    let (torn, _) = hear(Codec::Opus, &arrives, NetemSpec::default(), for_ms);
    assert_eq!(torn.figures.concealed_ms, lost.len() as u64 * 20);
    let ratios = lost.iter().filter_map(|at| {
        let frame = *at as usize * 16 - 104..*at as usize * 16 - 104 + FRAME;
        let (truth, heard) = (&whole.record[frame.clone()], &torn.record[frame]);
        let error: Vec<i16> = truth.iter().zip(heard).map(|(a, b)| a.saturating_sub(*b)).collect();
        // Frames below -50 dBov are pauses.
        (power(truth) > 1e4).then(|| (10.0 * (power(truth) / power(&error).max(1.0)).log10()).clamp(-10.0, 35.0))
    });
    let ratios: Vec<f64> = ratios.collect();
    assert!(ratios.len() > 15, "{} frames of speech were lost", ratios.len());
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

#[test]
fn lost_packets_of_opus_come_back_from_the_ones_behind_them() {
    for loss in [0.05, 0.1] {
        let (with, without) = (lost_frames_db(loss, true), lost_frames_db(loss, false));
        println!("lost frames at {loss}: {with:.1} dB with FEC, {without:.1} dB without");
        assert!(with > without + 3.0, "{loss}: {with} dB with FEC, {without} dB without");
        // Silence in the place of what was lost is 0 dB.
        assert!(without > 0.2, "{loss}: {without} dB without FEC");
    }
}

fn speech() -> Vec<i16> {
    let mut pcm = vec![0; SPEECH.len()];
    Decoder::new(Codec::Pcmu).decode(SPEECH, &mut pcm);
    let mut wide = vec![0; pcm.len() * 2];
    Up2::new().process(&pcm, &mut wide);
    wide
}

fn power(pcm: &[i16]) -> f64 {
    pcm.iter().map(|&sample| f64::from(sample).powi(2)).sum::<f64>() / pcm.len() as f64
}
