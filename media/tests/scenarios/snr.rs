//! Signal-to-noise ratio that the other side of a call measures, for every background noise and volume. It compares the
//! decoded words' active speech level by ITU-T P.56 with the noise's long-term RMS.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::*;
use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use ringer_media::frame::SILENCE;
use ringer_media::leg::{MediaParams, RtpLeg, Scratch};
use ringer_media::level::{active_level_dbov, rms_dbov, to_speech_level};
use ringer_media::noise::{Kind, gain_for, generate, snr_db};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

/// Length of the noise loops, in seconds.
const LOOP_S: u32 = 12;
/// Time at which the words begin: before it a whole loop is received alone, after the jitter buffer has settled.
const WORDS_MS: u32 = 14_000;
/// End of the call, in seconds.
const END_S: usize = 26;

/// Returns words of `flite` at 16 kHz and -26 dBov.
fn words() -> Arc<[i16]> {
    let path = std::env::temp_dir().join(format!("ringer-snr-{}.wav", std::process::id()));
    let text = "Good morning, I would like to move my appointment with the dentist from Tuesday to next Friday, please. \
        It is about a filling that fell out, and I can come at any time before noon.";
    let status = Command::new("flite").args(["-voice", "slt", "-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("the package flite is installed").success(), "flite says its words");
    let bytes = std::fs::read(&path).expect("flite wrote a file");
    std::fs::remove_file(&path).expect("it is there");
    let mut pcm = Clip::from_wav(&bytes).expect("flite writes WAV").to_16k();
    to_speech_level(&mut pcm, 16_000);
    pcm.into()
}

/// Returns the audio that the other side decodes of a call with `words` over `noise`, at the codec's rate.
fn hear(codec: Codec, noise: Option<NoiseSpec>, words: &Arc<[i16]>) -> Vec<i16> {
    let media = MediaParams { event_payload_type: None, ..MediaParams::new(codec) };
    let mut call = Call::new(CallSpec {
        opening: if words.is_empty() {
            Opening::Listen { open_after_ms: None }
        } else {
            Opening::Listen { open_after_ms: Some(WORDS_MS) }
        },
        turn: TurnRules { silence_timeout_ms: 600_000, ..TurnRules::default() },
        noise,
        ..CallSpec::default()
    });
    let mut now = Time::from_millis(1000);
    let mut far = RtpLeg::new(media, Seed(2), now);
    let mut pcm = Vec::new();
    call.handle(now, Input::Signal(Signal::Dialing { address: String::new() }));
    call.handle(now, Input::Signal(Signal::Answered { code: 200, leg: media.into(), text: false }));
    for _ in 0..END_S * 50 {
        now = now + TICK;
        far.send(now, &SILENCE);
        let packet = far.packet().expect("20 ms are one packet").to_vec();
        let mut answers = Vec::new();
        for input in [
            Input::Tick { late: Duration::ZERO, sent: &mut Sent::default() },
            Input::Packet { path: MediaChannel::Rtp, arrived: now, bytes: &packet },
            Input::Listen,
        ] {
            call.handle(now, input);
            while let Some(output) = call.poll() {
                match output {
                    Output::Packet { path: MediaChannel::Rtp, bytes } => {
                        far.receive(now, bytes);
                    }
                    Output::Effect(id, Effect::Think(_)) => {
                        let opening = Move { say: "Good morning.".into(), ..Move::default() };
                        answers.push((id, Effected::Move(opening)));
                    }
                    Output::Effect(id, Effect::Synthesize { .. }) => {
                        answers.push((id, Effected::Audio { pcm: words.clone(), last: true }));
                    }
                    _ => {}
                }
            }
        }
        answers.into_iter().for_each(|(id, done)| call.handle(now, Input::Done(id, done)));
        let mut scratch = Scratch::default();
        let frame = far.listen(now, &mut scratch);
        if codec.rate_hz() == 8000 { pcm.extend(frame.narrow) } else { pcm.extend(frame.pcm) }
    }
    pcm
}

#[test]
fn the_far_side_measures_the_asked_ratio() {
    let words = words();
    assert!(words.len() > 5 * 16_000 && words.len() < (END_S - 15) * 16_000, "{} samples", words.len());
    let mut worst: (f64, String) = (0.0, String::new());
    let mut table = String::new();
    for codec in [Codec::Pcmu, Codec::G722] {
        let rate_hz = codec.rate_hz();
        let said = WORDS_MS as usize / 1000 * rate_hz as usize..;
        let clean = hear(codec, None, &words);
        let speech = active_level_dbov(&clean[said.clone()], rate_hz).expect("words were said").level_dbov;
        let power = |pcm: &[i16]| 10f64.powf(rms_dbov(pcm) / 10.0);
        for (kind, name) in Kind::ALL {
            let loop_pcm: Arc<[i16]> = generate(kind, Seed(1), LOOP_S, &[]).into();
            let gains = [8000, 16_000].map(|rate_hz| gain_for(&loop_pcm, 0.0, rate_hz));
            table += &format!("{:>5} {name:<17}", codec.name());
            for volume in [0.0, 0.4, 0.8, 1.0] {
                let factor = 10f64.powf(-snr_db(volume) / 20.0);
                let [gain_narrow, gain_wide] = gains.map(|gain| (gain * factor) as f32);
                let noise = NoiseSpec { loop_pcm: loop_pcm.clone(), gain_narrow, gain_wide, start: 5000 };
                let noisy = hear(codec, Some(noise), &words);
                // One whole loop, wherever it begins.
                let alone = &noisy[rate_hz as usize..][..(LOOP_S * rate_hz) as usize];
                let measured = speech - rms_dbov(alone);
                let off = measured - snr_db(volume);
                table += &format!(" {measured:6.2}");
                if off.abs() > worst.0 {
                    worst = (off.abs(), format!("{} {name} at volume {volume}: {measured:.2} dB", codec.name()));
                }
                // The noise goes on at its level under the words: powers add up over the same stretch of the loop.
                let from = said.start;
                let under = LOOP_S as usize * rate_hz as usize;
                let alone_there = power(&noisy[from - under..from]);
                let both = power(&noisy[from..from + under]) / (power(&clean[from..from + under]) + alone_there);
                assert!((10.0 * both.log10()).abs() < 0.5, "{name} at {volume}: {:.2} dB off", 10.0 * both.log10());
            }
            table += "\n";
        }
    }
    println!(
        "SNR in dB measured at volumes 0, 0.4, 0.8, 1 (asked: 30 20 10 5)\n{table}worst: {:.2} dB, {}",
        worst.0, worst.1
    );
    assert!(worst.0 <= 0.5, "{}", worst.1);
}
