//! Kokoro voices: tests that need no model.

use super::*;

#[test]
fn a_name_tells_language_and_gender() {
    let check = |name: &str, expect: Option<(&str, &str, bool)>| {
        let found = voice_of(name).map(|voice| (voice.tongue.language, voice.tongue.country, voice.female));
        assert_eq!(found, expect, "{name}");
    };
    check("af_heart", Some(("en", "US", true)));
    check("bm_george", Some(("en", "GB", false)));
    check("pm_alex", Some(("pt", "BR", false)));
    for name in ["jf_alpha", "zf_xiaobei", "ax_heart", "af_", "af", "af_../../x", "", "éf_x"] {
        check(name, None);
    }
}

#[test]
fn samples_rise_from_silence_and_are_numbers() {
    let said = samples(&[0.5; 1200]).expect("they are numbers");
    let at = |at: usize| said[CLICK + at];
    assert!(said[..CLICK].iter().all(|sample| *sample == 0), "a click is left");
    assert_eq!((at(0), at(60), at(119), at(120), at(199)), (0, 8191, 16_246, 16_383, 16_383));
    assert_eq!(samples(&[2.0; 1100]).map(|said| said[1099]), Ok(32_767));
    assert_eq!(samples(&[0.0, f32::NAN]), unusable("its samples are not numbers"));
}

#[test]
fn what_is_missing_or_broken_is_named() {
    let folder = std::env::temp_dir().join(format!("ringer-kokoro-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(VOICES)).expect("the temporary folder is writable");
    let load = || Kokoro::load(&folder).err().map(|why| why.0).unwrap_or_default();
    let missing = load();
    std::fs::write(folder.join(NETWORK), b"hello, world").expect("writable");
    let broken = load();
    for name in ["bf_emma.bin", "af_heart.bin", "jf_alpha.bin", "af_sky.json"] {
        std::fs::write(folder.join(VOICES).join(name), b"").expect("writable");
    }
    let found: Vec<String> = voices(&folder).into_iter().map(|voice| voice.name).collect();
    std::fs::remove_dir_all(&folder).expect("it was made here");
    assert!(missing.contains("model.onnx: No such file"), "{missing}");
    assert!(broken.ends_with("model.onnx: it is no ONNX network, or was cut"), "{broken}");
    assert_eq!(found, ["af_heart", "bf_emma"]);
}
