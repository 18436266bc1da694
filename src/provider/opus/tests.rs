//! libopus beside the port, and libraries that are not libopus.

use std::process::Command;

use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::frame::FRAME;
use ringer_media::level::to_speech_level;
use ringer_media::resample::resample_whole;
use ringer_media::seed::Seed;

use super::*;

const SPEECH: &[u8] = include_bytes!("../../../fixtures/audio/speech.ul");

/// Functions with the names of libopus. `VERSION` and `ENCODED` are put in when they are compiled.
const STAND_IN: &str = r#"
    static int state;
    const char *opus_get_version_string(void) { return VERSION; }
    void *opus_encoder_create(int rate, int channels, int application, int *error) { *error = 0; return &state; }
    int opus_encoder_ctl(void *encoder, int request, ...) { return 0; }
    int opus_encode(void *encoder, const short *pcm, int count, unsigned char *out, int space) { return ENCODED; }
    void opus_encoder_destroy(void *encoder) {}
    void *opus_decoder_create(int rate, int channels, int *error) { *error = 0; return &state; }
    int opus_decode(void *decoder, const unsigned char *in, int len, short *out, int count, int fec) { return count; }
    void opus_decoder_destroy(void *decoder) {}
"#;

fn system() -> Opus {
    open(None).expect("the package libopus0 is installed")
}

/// Returns both libraries, the port first.
fn both() -> [Opus; 2] {
    [Opus::default(), system()]
}

/// Returns recorded speech of 20 s at 16 kHz.
fn speech() -> Vec<i16> {
    let mut narrow = vec![0; SPEECH.len()];
    Decoder::new(Codec::Pcmu).decode(SPEECH, &mut narrow);
    resample_whole(&narrow, 8000, 16_000)
}

/// Returns the packets of `pcm`, 20 ms each.
fn encode(opus: &Opus, fec: bool, pcm: &[i16]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::with(Codec::Opus, opus);
    encoder.set_fec(fec);
    let packet = |frame| {
        let mut bytes = vec![0; 400];
        let len = encoder.encode(frame, &mut bytes);
        bytes.truncate(len);
        bytes
    };
    pcm.chunks_exact(FRAME).map(packet).collect()
}

/// Bits a second of speech: the other side's bound holds, and a higher one than the library's own changes nothing.
#[test]
fn no_more_bits_are_sent_than_the_other_side_takes() {
    for opus in both() {
        let rate = |max| {
            let mut encoder = Encoder::with(Codec::Opus, &opus);
            encoder.set_max_bitrate(max);
            let mut bytes = [0; 400];
            let frames = speech().as_chunks::<FRAME>().0.to_vec();
            let sent: usize = frames.iter().map(|frame| encoder.encode(frame, &mut bytes)).sum();
            sent * 8 * 50 / frames.len()
        };
        let (own, bound) = (rate(None), rate(Some(16_000)));
        assert!(bound <= 16_000, "{opus:?}: {bound}");
        assert!(own > 20_000 && rate(Some(510_000)) == own, "{opus:?}: {own}");
    }
}

/// Returns the audio of packets of which some are lost: from the packet behind the gap, or concealed.
fn decode(opus: &Opus, packets: &[Vec<u8>], lost: &[usize]) -> Vec<i16> {
    let mut decoder = Decoder::with(Codec::Opus, opus);
    let mut heard = vec![0; packets.len() * FRAME];
    for (n, frame) in heard.chunks_exact_mut(FRAME).enumerate() {
        if lost.contains(&n) {
            let next = packets.get(n + 1).filter(|_| !lost.contains(&(n + 1)));
            assert!(decoder.conceal(next.map(Vec::as_slice), frame));
        } else {
            assert_eq!(decoder.decode(&packets[n], frame), FRAME);
        }
    }
    heard
}

fn power(pcm: &[i16]) -> f64 {
    pcm.iter().map(|&sample| f64::from(sample).powi(2)).sum::<f64>() / pcm.len() as f64
}

/// Returns the numbers of frames that are lost, a tenth.
fn losses(frames: usize) -> Vec<usize> {
    let mut draws = Seed(11).stream("loss");
    (50..frames - 50).filter(|_| draws.unit() < 0.1).collect()
}

/// Returns how near frames are to what they would be without losses, in dB: the mean over loud ones of the signal to
/// error ratio, each between -10 and 35.
fn nearness_db(whole: &[i16], torn: &[i16], frames: &[usize]) -> f64 {
    let ratios = frames.iter().filter_map(|n| {
        let frame = n * FRAME..(n + 1) * FRAME;
        let (truth, heard) = (&whole[frame.clone()], &torn[frame]);
        let error: Vec<i16> = truth.iter().zip(heard).map(|(a, b)| a.saturating_sub(*b)).collect();
        (power(truth) > 1e4).then(|| (10.0 * (power(truth) / power(&error).max(1.0)).log10()).clamp(-10.0, 35.0))
    });
    let ratios: Vec<f64> = ratios.collect();
    assert!(ratios.len() > 15, "{} frames of speech", ratios.len());
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

#[test]
fn lost_frames_come_back_from_the_packets_behind_them() {
    let pcm = speech();
    let lost = losses(pcm.len() / FRAME);
    for opus in both() {
        let near = |fec| {
            let packets = encode(&opus, fec, &pcm);
            nearness_db(&decode(&opus, &packets, &[]), &decode(&opus, &packets, &lost), &lost)
        };
        let (with, without) = (near(true), near(false));
        println!("{opus:?}: {with:.1} dB with FEC, {without:.1} dB without");
        assert!(with > without + 3.0, "{opus:?}: {with} dB with FEC, {without} dB without");
        // Silence in the place of what was lost is 0 dB.
        assert!(without > 0.2, "{opus:?}: {without} dB without FEC");
    }
}

/// Two libraries decode and conceal the same packets alike, whichever of them has encoded them.
#[test]
fn each_library_hears_the_other_as_itself() {
    let pcm = speech();
    let frames: Vec<usize> = (0..pcm.len() / FRAME).collect();
    for opus in both() {
        let packets = encode(&opus, true, &pcm);
        for lost in [Vec::new(), losses(frames.len())] {
            let [port, library] = both().map(|opus| decode(&opus, &packets, &lost));
            let near = nearness_db(&port, &library, &frames);
            println!("packets of {opus:?}, {} lost: {near:.1} dB", lost.len());
            assert!(near > if lost.is_empty() { 30.0 } else { 20.0 }, "{opus:?} {}: {near}", lost.len());
        }
    }
}

/// A sender that falls silent (DTX) sends configuration bytes alone, or nothing: neither is heard.
#[test]
fn discontinuous_transmission_is_quiet() {
    const SPOKEN: usize = 250;
    let mut sender = ropus::OpusEncoder::new(RATE_HZ, 1, ropus::OPUS_APPLICATION_VOIP).expect("it is valid");
    sender.set_bitrate(32_000);
    sender.set_dtx(1);
    let mut pcm = speech()[..SPOKEN * FRAME].to_vec();
    pcm.resize(2 * SPOKEN * FRAME, 0);
    let packets: Vec<Vec<u8>> = pcm
        .chunks_exact(FRAME)
        .map(|frame| {
            let mut bytes = vec![0; 400];
            let len = sender.encode(frame, FRAME as i32, &mut bytes, 400).expect("it fits");
            bytes.truncate(len as usize);
            bytes
        })
        .collect();
    let unsent: Vec<usize> = (0..packets.len()).filter(|n| packets[*n].len() <= 2).collect();
    assert!(unsent.len() > 100, "{} packets of DTX", unsent.len());
    for opus in both() {
        for lost in [&[][..], &unsent] {
            let heard = decode(&opus, &packets, lost);
            let (spoken, silent) = heard.split_at((SPOKEN + 25) * FRAME);
            assert!(power(spoken) > 1e5, "{opus:?}: {}", power(spoken));
            assert!(power(silent) < 100.0, "{opus:?}, {} not sent: {}", lost.len(), power(silent));
        }
    }
}

#[test]
fn packets_of_every_length_have_one_configuration() {
    let pcm = speech();
    for opus in both() {
        let (mut encoder, mut decoder) = (Encoder::with(Codec::Opus, &opus), Decoder::with(Codec::Opus, &opus));
        for ms in [10, 20, 30, 40, 50, 60].repeat(20) {
            let (mut bytes, mut heard) = ([0; 1500], [0; 960]);
            let len = encoder.encode(&pcm[ms * 160..][..ms * 16], &mut bytes);
            assert_eq!(Codec::Opus.ticks(&bytes[..len]), Some(ms as u32 * 8), "{opus:?} {ms}");
            assert_eq!(decoder.decode(&bytes[..len], &mut heard), ms * 16, "{opus:?} {ms}");
        }
        assert!(encoder.encode(&pcm[..FRAME], &mut [0; 3]) <= 3, "{opus:?}");
        assert_eq!(encoder.encode(&[], &mut []), 0, "{opus:?}");
    }
}

#[test]
fn any_bytes_decode() {
    let mut draws = Seed(5).stream("fuzz");
    let mut decoder = Decoder::with(Codec::Opus, &system());
    for n in 0..6000 {
        let mut packet = [0; 400];
        packet.iter_mut().for_each(|byte| *byte = draws.bits() as u8);
        let packet = &packet[..draws.index(400)];
        let mut heard = [0; 1920];
        match n % 4 {
            0 => assert!(decoder.conceal(Some(packet), &mut heard[..FRAME])),
            1 => assert!(decoder.conceal(None, &mut heard[..draws.index(1920)])),
            _ => assert_eq!(decoder.decode(packet, &mut heard), Codec::Opus.ticks(packet).unwrap_or(0) as usize * 2),
        }
    }
}

/// Returns two sentences of flite at the level of speech, with silence around.
fn sentences() -> Vec<Vec<i16>> {
    let said = [
        ("slt", "Hello, I would like to change my appointment. It was for Tuesday, and I can only come on Friday."),
        ("rms", "I am calling because the delivery has not arrived yet, and it was promised for last week."),
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let say = |(voice, text): (&str, &str)| {
        let file = folder.path().join(voice);
        let made = Command::new("flite").args(["-voice", voice, "-t", text, "-o"]).arg(&file).status();
        assert!(made.expect("the package flite is installed").success());
        let bytes = std::fs::read(&file).expect("flite wrote it");
        let mut said: Vec<i16> =
            bytes[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        to_speech_level(&mut said, 16_000);
        [vec![0; 8000], said, vec![0; 8000]].concat()
    };
    said.map(say).into()
}

/// Returns P.862.2 of both sentences, without losses and with a tenth lost.
fn scores(opus: &Opus) -> [f64; 2] {
    let mut sums = [0.0; 2];
    let spoken = sentences();
    for pcm in &spoken {
        let packets = encode(opus, true, pcm);
        for (sum, lost) in sums.iter_mut().zip([Vec::new(), losses(packets.len())]) {
            let score = pesq::pesq_wb(pcm, &decode(opus, &packets, &lost)).expect("there is speech");
            *sum += f64::from(score) / spoken.len() as f64;
        }
    }
    sums
}

#[test]
fn libopus_sounds_better_than_the_port() {
    let [port, library] = both().map(|opus| scores(&opus));
    println!("P.862.2 of the port {port:.2?}, of libopus {library:.2?}");
    assert!(library[0] > port[0] + 0.05 && library[1] > port[1] + 0.2, "the port {port:?}, libopus {library:?}");
}

#[test]
fn versions_are_read_and_old_ones_refused() {
    for (said, expect) in [
        ("libopus 1.3.1", Ok("1.3.1")),
        ("libopus 1.5.2-12-gabcdef", Ok("1.5.2-12-gabcdef")),
        ("libopus 1.3-fixed", Ok("1.3-fixed")),
        ("libopus 2.0", Ok("2.0")),
        ("libopus 1.2.1", Err("has version 1.2.1: 1.3 or newer is needed")),
        ("libopus unknown", Err("has the version \"unknown\", which is no number")),
        ("libother 9", Err("calls itself \"libother 9\", not libopus")),
        ("", Err("calls itself \"\", not libopus")),
    ] {
        assert_eq!(version_of(said).as_deref().map_err(String::as_str), expect, "{said:?}");
    }
}

#[test]
fn the_choice_is_told_with_its_reason() {
    let chosen = |opus| choose(&Media { opus, ..Media::default() }).about().clone();
    assert_eq!((chosen(OpusChoice::Port).name, chosen(OpusChoice::Port).fallback_reason), ("ropus", None));
    for choice in [OpusChoice::Auto, OpusChoice::Libopus] {
        let About { name, version, fallback_reason } = chosen(choice);
        assert_eq!((name, fallback_reason), ("libopus", None), "{version}");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
    }
}

#[test]
fn a_library_that_cannot_be_used_is_replaced_by_the_port() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("garbage"), [7; 5000]).expect("the folder is writable");
    std::fs::write(file("stand_in.c"), STAND_IN).expect("the folder is writable");
    for (name, version, encoded) in
        [("old", "libopus 1.1.2", "-1"), ("mute", "libopus 1.5", "-1"), ("wild", "libopus 1.5", "9999")]
    {
        let (version, encoded) = (format!("-DVERSION=\"{version}\""), format!("-DENCODED={encoded}"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", &version, &encoded, "-o"]).arg(file(name)).arg(file("stand_in.c"));
        assert!(compiler.status().expect("there is a C compiler").success(), "{name}");
    }
    for (path, why) in [
        (file("absent"), "cannot be opened: "),
        (file("garbage"), "cannot be opened: "),
        ("libm.so.6".into(), "libm.so.6 is no libopus: "),
        (file("old"), "old has version 1.1.2: 1.3 or newer is needed"),
        (file("mute"), "mute does not code as Opus should"),
        (file("wild"), "wild does not code as Opus should"),
    ] {
        let settings = Media { opus: OpusChoice::Libopus, opus_library: Some(path.clone()) };
        let opus = choose(&settings);
        let said = opus.about().fallback_reason.clone().expect("a reason");
        assert!(opus.about().name == "ropus" && said.contains(why), "{}: {said}", path.display());
        assert!(!encode(&opus, true, &speech()[..FRAME])[0].is_empty());
    }
}
